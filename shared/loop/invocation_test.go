package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
	"laneway/shared/wiring"
)

// short is functions of two seconds on a clock that goes: 250 ms are kept for the
// last writes, 200 ms a step needs.
func short(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
	rc.StepNeed, rc.Reserve = 200*time.Millisecond, 250*time.Millisecond
}

// TestR1_ARunOverManyInvocations: ten steps of which each takes a second of the clock,
// in functions of three. Nothing is done twice, the numbers of events go on, and the
// client sees nothing of it.
func TestR1_ARunOverManyInvocations(t *testing.T) {
	t.Parallel()
	var w *world
	act := newTool("act", tool.Unsafe)
	act.run = func(context.Context, tool.Call) (tool.Result, error) {
		w.clock.Advance(time.Second)
		return tool.TextResult("ok"), nil
	}
	w = newWorld(t, act)
	const steps = 10
	w.model.by(func(r model.Request) answerFunc {
		n := 0
		for _, m := range r.Messages {
			if m.Role == model.ToolResult {
				n++
			}
		}
		if n == steps {
			return say("the end")
		}
		return func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
			yield(model.Part{Text: fmt.Sprint("step ", n)}, nil)
			callTools(model.Block{ID: fmt.Sprint("c", n), Name: "act", Arguments: fmt.Appendf(nil, `{"n":%d}`, n)})(ctx, r, yield)
		}
	})
	c := w.connect("tool-events")
	w.accept(c, "r1", "hi")
	p := w.process(nil, short)
	invocations := 0
	for w.status("r1").Outcome == nil {
		invocations++
		must(t, p.handle(w.next(), w.clock.Now().Add(3*time.Second)))
	}
	if invocations < 4 || act.count() != steps || len(w.model.calls()) != steps+1 {
		t.Errorf("%d invocations, %d calls, %d model calls", invocations, act.count(), len(w.model.calls()))
	}
	p.serve()
	if st := w.status("r1"); st.Outcome.Steps != steps+1 || st.Outcome.ToolCalls != steps || text(w.reply(c, "r1")) != "the end" {
		t.Errorf("ended %+v", st.Outcome)
	}
	last := 0.0
	for _, f := range c.all(event("agent", "", "")) {
		pl, _ := f["payload"].(map[string]any)
		if seq, _ := pl["seq"].(float64); seq != last+1 {
			t.Fatalf("number %v comes after %v", seq, last)
		} else {
			last = seq
		}
		if d, _ := pl["data"].(map[string]any); d["replace"] == true && !strings.HasPrefix(str(f, "payload.data.text"), "step") && str(f, "payload.data.text") != "the end" {
			t.Errorf("the client sees %v", f)
		}
	}
	for _, phase := range []string{"start", "end"} {
		if n := len(c.all(event("agent", "lifecycle", phase))); n != 1 {
			t.Errorf("%d of lifecycle %s", n, phase)
		}
	}
}

// cut runs the run's next attempt in a function that ends while its model speaks.
func (p *process) cut(l letter) {
	w := p.w
	w.t.Helper()
	i := p.begin(func() error { return p.handle(l, w.clock.Now().Add(time.Minute)) })
	<-w.model.asked
	w.pass(54*time.Second, 3)
	w.clock.Advance(2 * time.Second)
	must(w.t, i.wait())
}

// TestR2_ACutModelCallIsMadeAgain, and its text replaced, not doubled.
func TestR2_ACutModelCallIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(hold(nil, "half an ans", ""), say("the whole answer"))
	c, chat := w.connect(), w.connect()
	must(t, w.gw.core.Connections.Subscribe(t.Context(), chat.id, key))
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	p.cut(w.next())
	if m := w.meta(); m.Owner != "" || m.Active != "r1" || m.Stalled != 0 || m.Head != 1 {
		t.Fatalf("session %+v", m)
	}
	p.serve()
	s := story{world: w, c: c}
	if got := s.shown("r1"); got != "the whole answer" {
		t.Errorf("shown: %q", got)
	}
	chatText := ""
	for _, f := range chat.all(event("chat", "", "delta")) {
		d, _ := f["payload"].(map[string]any)
		if d["replace"] == true {
			chatText = ""
		}
		chatText += str(f, "payload.deltaText")
	}
	if chatText != "the whole answer" {
		t.Errorf("shown by chat: %q", chatText)
	}
	s.numbers(false)
	if rows := w.rows(); len(rows) != 2 || rows[1].Text() != "the whole answer" {
		t.Errorf("rows %+v", rows)
	}
}

// TestR2_StepTooLong: cut although it had a fresh invocation.
func TestR2_StepTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(hold(nil, "half", ""))
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.accept(c, "r2", "next")
	p := w.process(nil)
	l := w.box.take()
	p.cut(l[0])
	p.cut(w.next())
	st := w.status("r1")
	if st.Outcome == nil || st.Outcome.ErrorKind != "step_too_long" {
		t.Fatalf("ended %+v", st.Outcome)
	}
	if f := w.reply(c, "r1"); str(f, "error.details.reason") != "step_too_long" {
		t.Errorf("final %v", f)
	}
	w.model.on(say("next answer"))
	p.serve()
	if text(w.reply(c, "r2")) != "next answer" {
		t.Error("the lane does not go on")
	}
}

// TestR2_CutsOfDifferentStepsAreNoneTooLong.
func TestR2_CutsOfDifferentStepsAreNoneTooLong(t *testing.T) {
	t.Parallel()
	act := newTool("act", tool.ReadOnly)
	w := newWorld(t, act)
	w.model.on(hold(nil, "a", ""), callTools(block("a", "act")), hold(nil, "b", ""), say("end"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	p.cut(w.next())
	l := w.next()
	i := p.begin(func() error { return p.handle(l, w.clock.Now().Add(time.Minute)) })
	<-w.model.asked // the first step again, which calls the tool
	<-w.model.asked // the second one, which is cut
	w.pass(54*time.Second, 3)
	w.clock.Advance(2 * time.Second)
	must(t, i.wait())
	p.serve()
	if text(w.reply(c, "r1")) != "end" {
		t.Errorf("final %v", w.reply(c, "r1"))
	}
}

// TestR1_AShutdownIsACheckpoint: the process is told to end; the run goes on in another.
func TestR1_AShutdownIsACheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(hold(nil, "half", ""), say("end"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	ctx, cancel := context.WithCancel(t.Context())
	wake := w.next()
	i := p.begin(func() error { return p.in(ctx, wake) })
	<-w.model.asked
	cancel()
	must(t, i.wait())
	if m := w.meta(); m.Owner != "" || m.Active != "r1" {
		t.Fatalf("session %+v", m)
	}
	must(t, w.process(nil).deliver(w.next()))
	if text(w.reply(c, "r1")) != "end" {
		t.Errorf("final %v", w.reply(c, "r1"))
	}
}

// TestR1_ALongWaitIsSleptThrough: no claim is held and nothing runs while a provider
// wants nobody to ask; a stop wakes the run.
func TestR1_ALongWaitIsSleptThrough(t *testing.T) {
	t.Parallel()
	later := func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{}, &model.Error{Class: model.RateLimit, Message: "slow down", RetryAfter: 10 * time.Minute})
	}
	for _, how := range []string{"wakes", "stopped", "times out", "stopped while it goes to sleep"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(later, say("awake"))
			c := w.connect()
			w.accept(c, "r1", "hi", func(st *run.Status) {
				if how == "times out" {
					st.Input.TimeoutMs = 300_000
				}
			})
			p := w.process(func(call faulty.Call) faulty.Fault {
				if how == "stopped while it goes to sleep" && call.Ops != nil && setsWake(call) {
					w.stop("r1")
				}
				return faulty.None
			})
			must(t, p.deliver(w.next()))
			begun := w.clock.Now()
			switch m := w.meta(); how {
			case "stopped while it goes to sleep":
				if m.LastEnd != "aborted" {
					t.Errorf("session %+v", m)
				}
				p.serve()
				return
			case "stopped":
				if !m.Asleep(begun) || m.Owner != "" || len(w.box.take()) != 0 {
					t.Fatalf("session %+v", m)
				}
				w.stop("r1")
				must(t, p.deliver(w.next()))
				if str(w.reply(c, "r1"), "payload.stopReason") != "rpc" {
					t.Errorf("final %v", w.reply(c, "r1"))
				}
				return
			}
			p.serve()
			slept := w.clock.Now().Sub(begun)
			f := w.reply(c, "r1")
			if how == "times out" {
				if str(f, "payload.status") != "timeout" || slept < 5*time.Minute || slept > 5*time.Minute+2*time.Second {
					t.Errorf("%v after %s", f, slept)
				}
			} else if text(f) != "awake" || slept < 10*time.Minute || slept > 10*time.Minute+2*time.Second {
				t.Errorf("%v after %s", f, slept)
			}
		})
	}
}

func setsWake(c faulty.Call) bool {
	for _, s := range c.Ops[0].Set {
		if s.Path.Attr == "wake" {
			return true
		}
	}
	return false
}
