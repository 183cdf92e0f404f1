package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"laneway/shared/model"
	"laneway/shared/tool"
	"laneway/shared/workspace"
)

const (
	readLines = 2000      // lines of one answer
	readBytes = 50 * 1024 // bytes of one answer
	// imageBytes keeps an image, in base64, under the 5 MB that providers take.
	imageBytes = 3_750_000
)

// Read is the tool that shows a file: text by lines, an image as an image.
type Read struct{}

type readArgs struct {
	Path     string `json:"path"`
	Offset   int    `json:"offset"`
	Limit    int    `json:"limit"`
	Cursor   int    `json:"cursor"`
	Optional bool   `json:"optional"`
}

// Spec describes the tool.
func (Read) Spec() tool.Spec {
	return tool.Spec{
		Name: "read",
		Description: "Read a file of the workspace. Text comes in pieces of at most 2000 lines or 50 KiB; " +
			"the end of a piece says how to continue. Images (png, jpg, gif, webp, bmp) are shown.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","minLength":1,"description":"File, relative to the workspace"},` +
			`"offset":{"type":"integer","minimum":1,"description":"First line, from 1"},` +
			`"limit":{"type":"integer","minimum":1,"description":"Number of lines"},` +
			`"cursor":{"type":"integer","minimum":0,"description":"Characters to skip in the first line"},` +
			`"optional":{"type":"boolean","description":"A missing file is no error"}},"required":["path"]}`),
		Effect: tool.ReadOnly,
	}
}

// Run shows the file.
func (Read) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	return inWorkspace(call, func(args readArgs, dir *workspace.Dir) (tool.Result, error) {
		f, err := dir.Open(args.Path)
		if errors.Is(err, fs.ErrNotExist) && args.Optional {
			r := tool.TextResult("No such file: " + args.Path)
			r.Details = map[string]any{"status": "not_found", "path": args.Path}
			return r, nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		defer f.Close()

		start := make([]byte, sniffBytes)
		n, err := io.ReadFull(f, start)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return tool.Result{}, fmt.Errorf("read %s: %w", args.Path, err)
		}
		start = start[:n]
		if mime := imageType(start); mime != "" {
			return readImage(args.Path, mime, start, f)
		}
		if isBinary(start) {
			return tool.Result{}, fmt.Errorf("read %s: it is a binary file", args.Path)
		}
		return readText(ctx, args, io.MultiReader(strings.NewReader(string(start)), f))
	})
}

func readText(ctx context.Context, args readArgs, from io.Reader) (tool.Result, error) {
	page, err := readPage(ctx, from, pageStart{line: max(args.Offset, 1), cursor: args.Cursor}, args.Limit)
	if err != nil {
		return tool.Result{}, fmt.Errorf("read %s: %w", args.Path, err)
	}
	text := page.text
	if text == "" && page.lines == 0 && !page.more {
		text = "(empty file)"
	}
	details := map[string]any{"path": args.Path, "offset": max(args.Offset, 1), "lines": page.lines, "truncated": page.more}
	if page.more {
		details["nextOffset"] = page.next.line
		text += fmt.Sprintf("\n\n[More follows. Continue with offset=%d", page.next.line)
		if page.next.cursor > 0 {
			details["nextCursor"] = page.next.cursor
			text += fmt.Sprintf(" cursor=%d", page.next.cursor)
		}
		text += "]"
	}
	r := tool.TextResult(text)
	r.Details = details
	r.Meta = args.Path
	return r, nil
}

func readImage(name, mime string, start []byte, rest io.Reader) (tool.Result, error) {
	tail, err := io.ReadAll(io.LimitReader(rest, imageBytes+1-int64(len(start))))
	if err != nil {
		return tool.Result{}, fmt.Errorf("read %s: %w", name, err)
	}
	data := slices.Concat(start, tail)
	if len(data) > imageBytes {
		return tool.Result{}, fmt.Errorf("read %s: the image is larger than %d bytes", name, imageBytes)
	}
	r := tool.TextResult(fmt.Sprintf("Image %s (%s, %d bytes)", name, mime, len(data)))
	r.Content = append(r.Content, model.Block{Type: model.Image, MimeType: mime, Data: data})
	r.Details = map[string]any{"path": name, "mimeType": mime, "bytes": len(data)}
	r.Meta = name
	return r, nil
}
