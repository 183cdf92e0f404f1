package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"laneway/shared/tool"
	"laneway/shared/workspace"
)

// compareBytes bounds what is read of an old file to tell what changed in it.
const compareBytes = 2 << 20

// Write is the tool that makes or replaces a file. Doing it again with the same
// content has the same effect, so it is repeated after a crash.
type Write struct{}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Spec describes the tool.
func (Write) Spec() tool.Spec {
	return tool.Spec{
		Name:        "write",
		Description: "Create a file of the workspace, or replace all of its content. Directories are made as needed.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","minLength":1,"description":"File, relative to the workspace"},` +
			`"content":{"type":"string","description":"The whole new content"}},"required":["path","content"]}`),
		Effect: tool.Idempotent,
	}
}

// Run writes the file.
func (Write) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	return inWorkspace(call, func(args writeArgs, dir *workspace.Dir) (tool.Result, error) {
		old, known := oldContent(dir, args.Path)
		details := map[string]any{"path": args.Path, "bytes": len(args.Content), "created": false, "changed": false}
		verb := "Unchanged"
		if !known || old != args.Content {
			created, err := dir.Write(args.Path, []byte(args.Content))
			if err != nil {
				return tool.Result{}, err
			}
			details["created"], details["changed"] = created, true
			details["firstChangedLine"] = firstChangedLine(old, args.Content)
			verb = "Replaced"
			if created {
				verb = "Created"
			}
		}
		r := tool.TextResult(fmt.Sprintf("%s %s (%d bytes)", verb, args.Path, len(args.Content)))
		r.Details = details
		r.Meta = args.Path
		return r, nil
	})
}

// oldContent reads what is there. It is not known if it is missing or too large;
// what is wrong with the path is found when it is written.
func oldContent(dir *workspace.Dir, name string) (content string, known bool) {
	f, err := dir.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, compareBytes+1))
	if err != nil || len(raw) > compareBytes {
		return "", false
	}
	return string(raw), true
}

// firstChangedLine counts from 1.
func firstChangedLine(before, after string) int {
	same := 0
	for same < len(before) && same < len(after) && before[same] == after[same] {
		same++
	}
	return 1 + strings.Count(after[:same], "\n")
}
