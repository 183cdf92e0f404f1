package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"laneway/shared/model"
	"laneway/shared/tool"
)

// TestReply_ManyCallsWithLongOutputs: a run of many calls, each with the same id, that is
// told of in full. What is told has no secret and is each call's own; the calls that
// there is no room for are told of in a line; the answer is whole in a frame that every
// connection takes.
func TestReply_ManyCallsWithLongOutputs(t *testing.T) {
	t.Parallel()
	const calls, secret = 60, "ghp_0123456789abcdefghij0123456789abcdef"
	answer := strings.Repeat("<answer> ", 8<<10)
	act := newTool("act", tool.ReadOnly)
	act.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult("of " + string(c.Arguments) + " token " + secret + "\n```\n" + strings.Repeat("\x1b<&>", 20_000)), nil
	}
	w := newWorld(t, act)
	n := 0
	w.model.by(func(model.Request) answerFunc {
		if n++; n > calls {
			return say(answer)
		}
		return callTools(model.Block{ID: "call_1", Name: "act", Arguments: json.RawMessage(fmt.Sprintf(`{"path":"file\n%d","key":%q}`, n, secret))})
	})
	c := w.connect("tool-events")
	w.accept(c, "r1", "hi", verbose("full"))
	w.process(nil).serve()
	f := w.reply(c, "r1")
	got := payloads(f)
	if len(got) == 0 || got[len(got)-1] != answer {
		t.Fatalf("%d payloads; the answer has not come whole", len(got))
	}
	if d := c.dump(); strings.Contains(d, secret) {
		i := strings.Index(d, secret)
		t.Errorf("a secret is told: %q", d[max(i-200, 0):i+60])
	}
	size := 0
	for _, it := range w.dump("r1") {
		if b := it.Attrs.Bytes("out"); b != nil {
			size = len(b)
		}
	}
	if size == 0 || size > 300<<10 {
		t.Errorf("the end takes %d bytes of its record", size)
	}
	told := w.status("r1").Outcome.Payloads
	for i, p := range told[:len(told)-1] {
		if strings.HasPrefix(p.Text, "… and ") {
			continue
		}
		name := fmt.Sprintf("🧩 act: file %d", i+1)
		if line, more, full := strings.Cut(p.Text, "\n"); line != name || full && (!strings.Contains(more, fmt.Sprintf(`file\n%d"`, i+1)) || !strings.HasSuffix(more, "\n````")) {
			t.Errorf("call %d is told of as %.200q", i+1, p.Text)
		}
	}
	if len(told) != calls+1 {
		t.Errorf("told of %d calls", len(told)-1)
	}
}

// TestReply_CallsWithOneID: a model that gives two calls of a message one id. Each is done
// with its own arguments and has its own result, and the conversation stays valid.
func TestReply_CallsWithOneID(t *testing.T) {
	t.Parallel()
	act := newTool("act", tool.Unsafe)
	act.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult("of " + string(c.Arguments)), nil
	}
	w := newWorld(t, act)
	w.afterTools("fine",
		model.Block{ID: "call_1", Name: "act", Arguments: json.RawMessage(`{"path":"a"}`)},
		model.Block{ID: "call_1", Name: "act", Arguments: json.RawMessage(`{"path":"b"}`)})
	c := w.connect()
	for _, id := range []string{"r1", "r2"} { // the next turn repeats the id
		w.accept(c, id, "hi", verbose("on"))
		w.process(nil).serve()
		if got := payloads(w.reply(c, id)); !slices.Equal(got, []string{"🧩 act: a", "🧩 act: b", "fine"}) {
			t.Errorf("%s: payloads %q", id, got)
		}
	}
	if act.count() != 4 {
		t.Errorf("%d calls were done", act.count())
	}
	ids, results := map[string]bool{}, []string{}
	for _, m := range w.model.calls()[3].Messages {
		if m.Role == model.ToolResult {
			ids[m.ToolCallID], results = true, append(results, m.Content[0].Text)
		}
	}
	if len(ids) != 4 || !slices.Equal(results, []string{`of {"path":"a"}`, `of {"path":"b"}`, `of {"path":"a"}`, `of {"path":"b"}`}) {
		t.Errorf("ids %v, results %q", ids, results)
	}
}
