package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/wiring"
)

// Loop 3.5, runtime 7.2: an answer that the output limit cut is continued; the user's
// message is not said again, and the parts are one answer.
func TestContinuation_7_2_OutputLimit(t *testing.T) {
	t.Parallel()
	limit := func(text string) answerFunc {
		return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
			yield(model.Part{Text: text}, nil)
			yield(done("length"), nil)
		}
	}
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash=%v", crash), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(limit("One, "), limit("two, "), say("three."))
			c := w.connect()
			w.accept(c, "r1", "count")
			n := 0
			p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
				if crash && !isTerminal(ops) && len(ops) > 2 {
					if n++; n == 1 {
						return faulty.DieAfter
					}
				}
				return faulty.None
			}))
			if i := p.start(); crash {
				if i.wait() == nil {
					t.Fatal("a dead process acknowledged")
				}
				w.clock.Advance(lost)
				w.box.back(letter{lane: "main", body: wakeBody, due: w.clock.Now()})
				p = w.process(nil)
				w.until(p.start())
			} else {
				w.until(i)
			}
			st := w.status("r1")
			if st.Outcome.Kind != run.OK || st.Outcome.Text != "One, two, three." {
				t.Fatalf("%+v", st.Outcome)
			}
			last := ""
			for _, f := range c.all(event("agent", "assistant", "")) {
				last = str(f, "payload.data.text")
			}
			if last != "One, two, three." {
				t.Errorf("the screen says %q", last)
			}
			calls := w.model.calls()
			final := calls[len(calls)-1].Messages
			users := 0
			for _, m := range final {
				for _, b := range m.Content {
					if m.Role == model.User && b.Text == "count" {
						users++
					}
				}
			}
			if end := final[len(final)-1]; users != 1 || end.Role != model.User || !strings.Contains(end.Content[0].Text, "Continue exactly where it stops") {
				t.Errorf("the last request: %+v", final)
			}
			for _, e := range w.rows() {
				if strings.Contains(e.Text(), "[System:") {
					t.Errorf("the instruction is kept: %q", e.Text())
				}
			}
		})
	}
}

// A call that the limit may have cut is never made; the model is told.
func TestContinuation_7_2_PartialArgumentsAreNeverExecuted(t *testing.T) {
	t.Parallel()
	act := newTool("act", 0)
	w := newWorld(t, act)
	w.model.on(func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		b := block("a", "act")
		b.Type = model.ToolCall
		yield(model.Part{ToolCall: &b}, nil)
		yield(done("length"), nil)
	}, say("never mind"))
	c := w.connect()
	w.accept(c, "r1", "go")
	w.until(w.process(nil).start())
	calls := w.model.calls()
	last := calls[len(calls)-1].Messages
	if st := w.status("r1"); st.Outcome.Text != "never mind" || st.Outcome.ToolCalls != 0 || !strings.Contains(last[len(last)-1].Content[0].Text, "the call was not made") {
		t.Errorf("%+v, %+v", st.Outcome, last)
	}
	if n := len(c.all(event("agent", "tool", "start"))); n != 0 {
		t.Errorf("%d calls were begun", n)
	}
}

// Status events carry what is retried and how often.
func TestRetry_7_2_StatusEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 0
	w.model.by(func(model.Request) answerFunc {
		if n++; n < 3 {
			return fail(model.RateLimit)
		}
		return say("at last")
	})
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.until(w.process(nil).start())
	var got []string
	for _, f := range c.all(event("agent", "run_status", "retrying")) {
		p, _ := f["payload"].(map[string]any)
		d, _ := p["data"].(map[string]any)
		got = append(got, fmt.Sprint(d["reason"], d["attempt"], d["maxAttempts"], d["delayMs"]))
	}
	if !slices.Equal(got, []string{"rate_limit2 10 1000", "rate_limit3 10 2000"}) {
		t.Errorf("%q", got)
	}
}

// Runtime 7.2: a wait that is longer than a minute is made where there is nobody else to
// ask, and not where there is.
func TestRetry_7_2_LongRetryAfter(t *testing.T) {
	t.Parallel()
	busy := func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{}, &model.Error{Class: model.RateLimit, Message: "busy", RetryAfter: 5 * time.Minute})
	}
	for _, row := range []struct {
		name, want string
		models     []string
		least      time.Duration
	}{
		{"without a fallback it is honoured in full", "a/one, a/one", []string{"a/one"}, 5 * time.Minute},
		{"with a fallback: straight to it", "a/one, b/two", []string{"a/one", "b/two"}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, row.models...)
			m.on(t, "a/one", busy, say("at last"))
			m.on(t, "b/two", say("hello"))
			w.accept(w.connect(), "r1", "hi")
			began := w.clock.Now()
			w.process(nil, chained(m), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.Retry.MaxRetries = 0 }).serve()
			took := w.clock.Now().Sub(began)
			if m.asked() != row.want || took < row.least || row.least == 0 && took > 30*time.Second {
				t.Errorf("asked %s in %s", m.asked(), took)
			}
		})
	}
}

// Loop 1.9: a chat is told that a rate limit is waited for.
func TestRetry_7_2_ChatStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(fail(model.RateLimit), say("at last"))
	c := w.connect()
	w.accept(c, "r1", "hi", func(st *run.Status) { st.Method, st.Origin.Kind = "chat.send", run.WaitNone })
	w.until(w.process(nil).start())
	got := c.all(event("chat", "", "status"))
	if len(got) != 1 {
		t.Fatalf("%d status events: %s", len(got), c.dump())
	}
	p, _ := got[0]["payload"].(map[string]any)
	if r, _ := p["retry"].(map[string]any); fmt.Sprintf("%v %v %v %v", r["attempt"], r["maxAttempts"], r["reason"], p["phase"]) != "2 10 rate_limit starting_model" {
		t.Errorf("%v", p)
	}
}
