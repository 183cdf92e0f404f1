package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"laneway/shared/tool"
	"laneway/shared/workspace"
)

const (
	lsDefault = 500  // entries of one answer if the model names no number
	lsMost    = 1000 // entries of one answer at most
)

// Ls is the tool that lists a directory, in pages, sorted by name.
type Ls struct{}

type lsArgs struct {
	Path  string `json:"path"`
	Limit int    `json:"limit"`
	After string `json:"after"`
}

// Spec describes the tool.
func (Ls) Spec() tool.Spec {
	return tool.Spec{
		Name:        "ls",
		Description: "List a directory of the workspace, sorted by name; a directory ends in /. Long lists come in pages.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Directory, relative to the workspace; default is the workspace"},` +
			`"limit":{"type":"integer","minimum":1,"description":"Entries of a page, 500 if not given"},` +
			`"after":{"type":"string","description":"Continue after this name"}}}`),
		Effect: tool.ReadOnly,
	}
}

// Run lists the directory.
func (Ls) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	return inWorkspace(call, func(args lsArgs, dir *workspace.Dir) (tool.Result, error) {
		if args.Path == "" {
			args.Path = "."
		}
		entries, err := dir.ReadDir(args.Path)
		if err != nil {
			return tool.Result{}, err
		}
		limit := lsDefault
		if args.Limit > 0 {
			limit = min(args.Limit, lsMost)
		}
		// The mark need not exist any more: the page begins behind its place.
		after := strings.TrimSuffix(args.After, "/")
		first := 0
		if after != "" {
			first = sort.Search(len(entries), func(i int) bool { return entries[i].Name() > after })
		}
		end := min(first+limit, len(entries))
		r := tool.TextResult(lsText(entries[first:end], len(entries)-end))
		r.Details = map[string]any{"path": args.Path, "entries": end - first, "more": len(entries) - end}
		r.Meta = args.Path
		return r, nil
	})
}

func lsText(entries []fs.DirEntry, more int) string {
	if len(entries) == 0 {
		return "(no entries)"
	}
	var b strings.Builder
	for i, e := range entries {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.ToValidUTF8(e.Name(), "\uFFFD"))
		if e.IsDir() {
			b.WriteByte('/')
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "\n\n[%d more entries. Continue with after=%q]", more, entries[len(entries)-1].Name())
	}
	return b.String()
}
