package loop_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/reply"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
	"laneway/shared/wiring"
)

// TestBreaker_AToolThatIsAskedForForEver: the run is ended, and what is kept of it does
// not grow with its loop.
func TestBreaker_AToolThatIsAskedForForEver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls  func(step int) []model.Block
		result func(n int) string
		kind   string
		most   int
	}{
		"one call":           {func(int) []model.Block { return []model.Block{block("a", "act")} }, func(int) string { return "same" }, "tool_loop", 21},
		"ping-pong of three": {func(n int) []model.Block { return []model.Block{arg("a", n%3)} }, func(int) string { return "same" }, "tool_loop", 70},
		"a batch":            {func(int) []model.Block { return []model.Block{arg("a", 1), arg("b", 2)} }, func(int) string { return "same" }, "tool_loop", 42},
		"ever new results":   {func(int) []model.Block { return []model.Block{block("a", "act")} }, strconv.Itoa, "retry_limit", 120},
		"ever new calls":     {func(n int) []model.Block { return []model.Block{arg("a", n)} }, func(int) string { return "same" }, "retry_limit", 120},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act := newTool("act", tool.ReadOnly)
			var made atomic.Int64
			act.run = func(context.Context, tool.Call) (tool.Result, error) {
				return tool.TextResult(c.result(int(made.Add(1)))), nil
			}
			w := newWorld(t, act)
			step := 0
			w.model.by(func(model.Request) answerFunc { step++; return callTools(c.calls(step)...) })
			cl := w.connect()
			w.accept(cl, "r1", "hi")
			largest := 0
			p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
				for _, o := range ops {
					for _, s := range o.Set {
						if b, ok := s.Value.([]byte); ok && s.Path.Attr == run.AttrCheckpoint {
							largest = max(largest, len(b))
						}
					}
				}
				return faulty.None
			}), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.MaxSteps = 120 })
			p.serve()
			st := w.status("r1")
			if st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != c.kind || int(made.Load()) > c.most {
				t.Errorf("ended %+v after %d calls", st.Outcome, made.Load())
			}
			if f := w.reply(cl, "r1"); f["ok"] != false {
				t.Errorf("final %v", f)
			}
			if largest > 2500 {
				t.Errorf("a checkpoint of %d bytes", largest)
			}
			told := false
			for _, r := range w.model.calls() {
				for _, m := range r.Messages {
					told = told || m.Role == model.ToolResult && strings.Contains(m.Content[0].Text, "repeated too often")
				}
			}
			if told != (c.kind == "tool_loop") {
				t.Errorf("the model was told of its loop: %v", told)
			}
			w.accept(cl, "r2", "go on")
			w.model.by(func(model.Request) answerFunc { return say("next") })
			p.serve()
			if text(w.reply(cl, "r2")) != "next" {
				t.Error("the lane does not go on")
			}
		})
	}
}

func arg(id string, n int) model.Block {
	return model.Block{ID: id, Name: "act", Arguments: fmt.Appendf(nil, `{"n":%d}`, n)}
}

// TestModel_AlwaysFailing: each class ends the run once, after as many tries as it is
// worth, with an error that a user may read; text that was shown does not stay.
func TestModel_AlwaysFailing(t *testing.T) {
	t.Parallel()
	for class, tries := range map[model.Class]int{
		model.RateLimit: 10, model.Overloaded: 9, model.ServerError: 9, model.Timeout: 9, model.EmptyResponse: 1,
		model.Auth: 1, model.Billing: 1, model.Format: 1, model.ContextOverflow: 1, model.ModelNotFound: 1,
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.by(func(model.Request) answerFunc {
				return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
					if yield(model.Part{Text: "some text"}, nil) {
						yield(model.Part{}, &model.Error{Class: class, Message: "It does not work."})
					}
				}
			})
			c := w.connect()
			w.accept(c, "r1", "hi")
			quick := func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
				rc.Retry = retry.Config{Base: time.Millisecond}
			}
			p := w.process(nil, quick)
			p.serve()
			if n := len(w.model.calls()); n != tries {
				t.Errorf("asked %d times, want %d", n, tries)
			}
			st := w.status("r1")
			// A model that only has nothing to say did not break: the reply says so in its place.
			says, broken := "It does not work.", true
			if class == model.EmptyResponse {
				says, broken = reply.TextIncomplete, false
			}
			if st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != string(class) || st.Outcome.Error != says {
				t.Errorf("ended %+v", st.Outcome)
			}
			f := w.reply(c, "r1")
			if f["ok"] != !broken || broken && str(f, "error.message") == "" || !broken && (str(f, "payload.status") != "error" || text(f) != says) {
				t.Errorf("final %v", f)
			}
			if status := (&model.Error{Class: class}).HTTPStatus(); broken && status != 0 && get(f, "error.details.status") != float64(status) {
				t.Errorf("final without status %d: %v", status, f)
			}
			for what, want := range map[string]func(map[string]any) bool{"error": event("agent", "lifecycle", "error"), "chat error": event("chat", "", "error")} {
				if n := len(c.all(want)); n != 1 {
					t.Errorf("%s came %d times", what, n)
				}
			}
			w.accept(c, "r2", "again")
			w.model.by(func(model.Request) answerFunc { return say("fine") })
			p.serve()
			if text(w.reply(c, "r2")) != "fine" {
				t.Error("the lane does not go on")
			}
		})
	}
}

// TestModel_AnswersThatAreNone: nothing at all, blanks, only thoughts, a refusal. The
// first three are asked for once more.
func TestModel_AnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts []model.Part
		tries int
		kind  string
	}{
		"nothing":  {[]model.Part{done("stop")}, 2, "empty_response"},
		"blanks":   {[]model.Part{{Text: " \n "}, done("stop")}, 2, "empty_response"},
		"thoughts": {[]model.Part{{Thinking: "hm"}, done("stop")}, 2, "empty_response"},
		"refusal":  {[]model.Part{done("refusal")}, 1, "refusal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.by(func(model.Request) answerFunc {
				return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
					for _, p := range c.parts {
						if !yield(p, nil) {
							return
						}
					}
				}
			})
			cl := w.connect()
			w.accept(cl, "r1", "hi")
			w.process(nil, func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
				rc.Retry = retry.Config{Base: time.Millisecond}
			}).serve()
			st := w.status("r1")
			if n := len(w.model.calls()); n != c.tries || st.Outcome.ErrorKind != c.kind {
				t.Errorf("ended %+v after %d calls", st.Outcome, n)
			}
			// What clients are told is one of the five kinds that they know.
			told := map[string]string{"refusal": "refusal"}[c.kind]
			if told == "" {
				told = "unknown"
			}
			if ends := cl.all(event("chat", "", "error")); len(ends) != 1 || str(ends[0], "payload.errorKind") != told {
				t.Errorf("told %v, want the kind %s", ends, told)
			}
		})
	}
}
