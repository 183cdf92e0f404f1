package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"laneway/shared/chars"
	"laneway/shared/clock"
	"laneway/shared/model"
	"laneway/shared/tool"
	"laneway/shared/tool/builtin"
)

type fixedClock struct{ clock.System }

func (fixedClock) Now() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

type runs struct {
	info builtin.RunInfo
	err  error
}

func (r runs) RunInfo(context.Context, tool.Scope) (builtin.RunInfo, error) { return r.info, r.err }

// bench is a workspace with the read-only tools on it.
type bench struct {
	dir   string
	tools *tool.Registry
}

func setup(t *testing.T) bench {
	t.Helper()
	r, err := tool.NewRegistry(builtin.Read{}, builtin.Ls{}, builtin.SessionStatus{
		Clock: fixedClock{},
		Runs:  runs{info: builtin.RunInfo{Model: "demo/demo", ContextWindow: 1000, ContextUsed: 250, Queued: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return bench{dir: t.TempDir(), tools: r}
}

func (b bench) file(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b bench) call(ctx context.Context, name string, args map[string]any) tool.Result {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return tool.Execute(ctx, b.tools, tool.Call{ID: "1", Name: name, Arguments: raw, Scope: tool.Scope{
		AgentID: "main", SessionKey: "agent:main:main", RunID: "r1", Workspace: b.dir,
	}})
}

func text(r tool.Result) string { return r.Content[0].Text }

func TestReadShowsAFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file(t, "notes/a.txt", "one\ntwo\nthree\n")
	r := b.call(t.Context(), "read", map[string]any{"path": "notes/a.txt"})
	if r.IsError || text(r) != "one\ntwo\nthree\n" || r.Details["truncated"] != false {
		t.Errorf("%+v", r)
	}
	r = b.call(t.Context(), "read", map[string]any{"path": "notes/a.txt", "offset": 2, "limit": 1})
	if text(r) != "two\n\n[More follows. Continue with offset=3]" {
		t.Errorf("%q", text(r))
	}
}

func TestReadPagesMakeUpTheFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		piece := rapid.SampledFrom([]string{"a", "é", "😀", "long line "}).Draw(t, "piece")
		return strings.Repeat(piece, rapid.SampledFrom([]int{0, 1, 5, 1_000, 14_000}).Draw(t, "times"))
	}), 1, 3)
	rapid.Check(t, func(rt *rapid.T) {
		content := strings.Join(lines.Draw(rt, "lines"), "\n")
		limit := rapid.IntRange(1, 3).Draw(rt, "limit")
		if content == "" {
			return
		}
		b.file(t, "f", content)
		var got strings.Builder
		for args := (map[string]any{"path": "f", "limit": limit}); ; {
			r := b.call(t.Context(), "read", args)
			if r.IsError {
				rt.Fatalf("%v: %s", args, text(r))
			}
			piece := text(r)
			if len(piece) > 50*1024+100 {
				rt.Fatalf("a page of %d bytes", len(piece))
			}
			if r.Details["truncated"] == false {
				got.WriteString(piece)
				break
			}
			got.WriteString(piece[:strings.LastIndex(piece, "\n\n[More follows.")])
			args["offset"], args["cursor"] = r.Details["nextOffset"], 0
			if c, inside := r.Details["nextCursor"]; inside {
				args["cursor"] = c
			} else {
				got.WriteString("\n")
			}
		}
		if got.String() != content {
			rt.Fatalf("pages make up %d bytes of %d", got.Len(), len(content))
		}
	})
}

func TestReadStopsAt2000Lines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file(t, "f", strings.Repeat("x\n", 2001))
	r := b.call(t.Context(), "read", map[string]any{"path": "f", "limit": 5000})
	if r.Details["lines"] != 2000 || r.Details["nextOffset"] != 2001 {
		t.Errorf("%v", r.Details)
	}
	r = b.call(t.Context(), "read", map[string]any{"path": "f", "offset": 2001})
	if text(r) != "x\n" {
		t.Errorf("%q", text(r))
	}
	r = b.call(t.Context(), "read", map[string]any{"path": "f", "offset": 2002})
	if !r.IsError || !strings.Contains(text(r), "beyond the end") {
		t.Errorf("%q", text(r))
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file(t, "bin", "ELF\x00\x01")
	b.file(t, "dir/x", "")
	for path, want := range map[string]string{
		"../x":        "outside the workspace",
		"/etc/passwd": "outside the workspace",
		"none":        "no such file",
		"bin":         "binary",
		"dir":         "is a directory",
	} {
		r := b.call(t.Context(), "read", map[string]any{"path": path})
		if !r.IsError || !strings.Contains(text(r), want) || strings.Contains(text(r), b.dir) {
			t.Errorf("%s: %s", path, text(r))
		}
	}
}

func TestReadOfAnOptionalFileThatIsMissingIsNoError(t *testing.T) {
	t.Parallel()
	r := setup(t).call(t.Context(), "read", map[string]any{"path": "none", "optional": true})
	if r.IsError || r.Details["status"] != "not_found" {
		t.Errorf("%+v", r)
	}
}

func TestReadShowsImagesByTheirContent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00p", 600)
	b.file(t, "wrong-name.txt", png)
	r := b.call(t.Context(), "read", map[string]any{"path": "wrong-name.txt"})
	if len(r.Content) != 2 || r.Content[1].Type != model.Image || r.Content[1].MimeType != "image/png" || string(r.Content[1].Data) != png {
		t.Errorf("%+v", r.Content)
	}
	b.file(t, "big.png", png+strings.Repeat("x", 3_750_000))
	if r := b.call(t.Context(), "read", map[string]any{"path": "big.png"}); !r.IsError || !strings.Contains(text(r), "larger") {
		t.Errorf("%s", text(r))
	}
}

func TestReadWithoutAWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.dir = ""
	if r := b.call(t.Context(), "read", map[string]any{"path": "x"}); !r.IsError || text(r) != "this run has no workspace" {
		t.Errorf("%+v", r)
	}
}

func TestLsPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5 {
		b.file(t, fmt.Sprintf("f%d", i), "")
	}
	b.file(t, "dir/x", "")
	r := b.call(t.Context(), "ls", nil)
	if text(r) != "dir/\nf0\nf1\nf2\nf3\nf4" {
		t.Errorf("%q", text(r))
	}
	r = b.call(t.Context(), "ls", map[string]any{"limit": 2})
	if text(r) != "dir/\nf0\n\n[4 more entries. Continue with after=\"f0\"]" {
		t.Errorf("%q", text(r))
	}
	r = b.call(t.Context(), "ls", map[string]any{"limit": 2, "after": "f2"})
	if text(r) != "f3\nf4" {
		t.Errorf("%q", text(r))
	}
	if r = b.call(t.Context(), "ls", map[string]any{"path": ".."}); !r.IsError {
		t.Errorf("listed the parent: %q", text(r))
	}
	if r = b.call(t.Context(), "ls", map[string]any{"after": "zz"}); text(r) != "(no entries)" {
		t.Errorf("%q", text(r))
	}
}

func TestSessionStatusTellsTimeAndRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.call(t.Context(), "session_status", nil)
	for _, want := range []string{"Wednesday, 2026-03-04 05:06:07", "Session: agent:main:main", "Model: demo/demo", "250 of 1000 tokens (25%)", "Waiting messages: 2"} {
		if !strings.Contains(text(r), want) {
			t.Errorf("%q is missing in\n%s", want, text(r))
		}
	}
	if r := b.call(t.Context(), "session_status", map[string]any{"sessionKey": "agent:main:other"}); !r.IsError {
		t.Errorf("told of another session: %s", text(r))
	}
}

func TestReadOnlyToolsSayThatTheyAre(t *testing.T) {
	t.Parallel()
	for _, s := range setup(t).tools.Specs() {
		if s.Effect != tool.ReadOnly {
			t.Errorf("%s may not be repeated", s.Name)
		}
		if !chars.Fits(s.Description, 300) {
			t.Errorf("%s: every request pays for its description", s.Name)
		}
	}
}

func TestReadStopsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file(t, "f", strings.Repeat("x\n", 1000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	raw := json.RawMessage(`{"path":"f","offset":900}`)
	_, err := builtin.Read{}.Run(ctx, tool.Call{Name: "read", Arguments: raw, Scope: tool.Scope{Workspace: b.dir}})
	if err == nil {
		t.Error("it read on")
	}
}
