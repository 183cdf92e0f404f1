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
	"laneway/shared/tool"
	"laneway/shared/wiring"
)

// TestL3_TheEndIsOneTransaction: rows, outcome, unsettled, counters and the release.
func TestL3_TheEndIsOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{Text: "hello"}, nil)
		yield(model.Part{Usage: &model.Usage{Input: 11, Output: 7, Total: 18}}, nil)
		yield(done("stop"), nil)
	})
	c := w.connect()
	w.accept(c, "r1", "hi")
	ends := 0
	w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		if !isTerminal(ops) {
			return faulty.None
		}
		ends++
		if transcriptOps(ops) != 2 || ops[0].Key != ref.MetaKey() || len(ops[0].AddTo) != 1 || !removes(ops[0], "own", "act", "can", "pend") {
			t.Errorf("terminal %+v", ops)
		}
		return faulty.None
	})).serve()
	if ends != 1 {
		t.Errorf("%d terminals", ends)
	}
	m := w.meta()
	if m.LastEnd != "ok" || m.LastRun != "r1" || m.TokensIn != 11 || m.TokensOut != 7 || len(m.Unsettled) != 0 || m.Busy {
		t.Errorf("session %+v", m)
	}
	st := w.status("r1")
	if st.Outcome.Text != "hello" || st.ExpiresAt == 0 || st.Checkpoint != nil || st.Input.Message != "" {
		t.Errorf("record %+v", st)
	}
}

func removes(op table.Op, attrs ...string) bool {
	for _, p := range op.Remove {
		attrs = slices.DeleteFunc(attrs, func(a string) bool { return a == p.Attr })
	}
	return slices.Equal(attrs, []string{"pend"}) // which stays
}

// steered makes a run at whose first terminal a message has just been steered in.
func steered(t *testing.T, w *world, c *client, terminal int, act func()) *process {
	t.Helper()
	n := 0
	return w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		if isTerminal(ops) {
			if n++; n == terminal {
				act()
			}
		}
		return faulty.None
	}))
}

// TestL3_AnOkIsRefusedByAnUndeliveredSteer: the message is answered in the same run,
// and its own run id has that outcome.
func TestL3_AnOkIsRefusedByAnUndeliveredSteer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("first answer"), say("second answer"))
	c, other := w.connect(), w.connect()
	w.accept(c, "r1", "hi")
	p := steered(t, w, c, 1, func() {
		if !w.steer(other, "s1", "and this?") {
			t.Error("not steered")
		}
	})
	p.serve()
	if got := text(w.reply(c, "r1")); got != "second answer" {
		t.Errorf("final of the run: %q", got)
	}
	f := w.reply(other, "s1")
	if text(f) != "second answer" || str(f, "payload.runId") != "s1" {
		t.Errorf("final of the message: %v", f)
	}
	var rows []string
	keys := map[string]int{}
	for _, e := range w.rows() {
		rows = append(rows, string(e.Role)+" "+e.Text())
		if e.Key != "" {
			keys[e.Key]++
		}
	}
	want := []string{"user hi", "assistant first answer", "user and this?", "assistant second answer"}
	if !slices.Equal(rows, want) || keys["r1:assistant"] != 1 || keys["s1:user"] != 1 {
		t.Errorf("rows %q, keys %v", rows, keys)
	}
	s := w.status("s1")
	if s.State != run.Ended || s.Outcome == nil || s.Outcome.Kind != run.OK || s.Into != "r1" || s.EndedAt != w.status("r1").EndedAt || s.ExpiresAt == 0 {
		t.Errorf("record of the message: %+v", s)
	}
	if m := w.meta(); m.MailN != 0 || len(m.Unsettled) != 0 || m.Busy {
		t.Errorf("session %+v", m)
	}
	asked := w.model.calls()
	if len(asked) != 2 || len(asked[1].Messages) != 3 {
		t.Errorf("the model was asked %d times", len(asked))
	}
	// The first answer was told as a message of its own.
	ends := c.all(func(f map[string]any) bool {
		return event("agent", "assistant", "")(f) && str(f, "payload.data.text") == "first answer"
	})
	if len(ends) == 0 {
		t.Errorf("the first answer was not told: %s", c.dump())
	}
}

// TestL3_AWithdrawnSteerHoldsNothingUp: it is taken back between the refusal and its
// delivery; the answer stands, and the model is not asked again.
func TestL3_AWithdrawnSteerHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("answer"), say("never"))
	c, other := w.connect(), w.connect()
	w.accept(c, "r1", "hi")
	refused := false
	p := w.process(func(call faulty.Call) faulty.Fault {
		switch {
		case isTerminal(call.Ops) && !refused:
			refused = w.steer(other, "s1", "and this?")
		case call.Ops == nil && refused && w.meta().MailN > 0: // it reads the mailbox
			if !w.stop("s1") {
				t.Error("not withdrawn")
			}
		}
		return faulty.None
	})
	p.serve()
	if got := text(w.reply(c, "r1")); got != "answer" || len(w.model.calls()) != 1 {
		t.Errorf("final %q after %d model calls", got, len(w.model.calls()))
	}
	if rows := w.rows(); len(rows) != 2 || rows[1].Key != "r1:assistant" {
		t.Errorf("rows %+v", rows)
	}
	if st := w.status("s1"); st.Outcome == nil || st.Outcome.Kind != run.Aborted {
		t.Errorf("the withdrawn message: %+v", st.Outcome)
	}
}

// TestL3_AnotherEndMovesSteersBack at their own accept sequence, before what was
// accepted later.
func TestL3_AnotherEndMovesSteersBack(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"error", "abort", "timeout"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			gate := make(chan struct{})
			w.model.on(func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
				if how == "error" {
					select {
					case <-gate:
					case <-ctx.Done():
					}
					fail(model.Auth)(ctx, r, yield)
					return
				}
				hold(gate, "part", "")(ctx, r, yield)
			}, say("to the steer"), say("to the later one"))
			c, other := w.connect(), w.connect()
			w.accept(c, "r1", "hi", func(st *run.Status) { st.Input.TimeoutMs = 60_000 })
			p := w.process(nil)
			i := p.start()
			<-w.model.asked
			if !w.steer(other, "s1", "steer one") || !w.steer(other, "s2", "steer two") {
				t.Fatal("not steered")
			}
			w.accept(other, "r2", "later")
			switch how {
			case "error":
				close(gate)
			case "abort":
				if !w.stop("r1") {
					t.Fatal("not stopped")
				}
				w.clock.Advance(700 * time.Millisecond)
			case "timeout":
				w.pass(59*time.Second, 3)
				w.clock.Advance(2 * time.Second)
			}
			must(t, i.wait())
			m := w.meta()
			var order []string
			for _, x := range m.Pending {
				order = append(order, fmt.Sprint(x.Seq, " ", x.Run))
			}
			if !slices.Equal(order, []string{"2 s1", "3 s2", "4 r2"}) || m.MailN != 0 {
				t.Fatalf("waiting %q, mail %d", order, m.MailN)
			}
			if st := w.status("s1"); st.State != run.Pending || st.Into != "" {
				t.Fatalf("the steer is %+v", st)
			}
			w.model.on(say("never"), say("answer"))
			p.serve()
			for _, id := range []string{"s1", "s2", "r2"} {
				if text(w.reply(other, id)) != "answer" {
					t.Errorf("final of %s: %v", id, w.reply(other, id))
				}
			}
			var users []string
			for _, e := range w.rows() {
				if e.Role == model.User {
					users = append(users, e.Text())
				}
			}
			if !slices.Equal(users, []string{"hi", "steer one", "steer two", "later"}) {
				t.Errorf("messages in the transcript: %q", users)
			}
		})
	}
}

// TestL3_TheLastWriteHasAContextOfItsOwn: the invocation ends while the run is being
// stopped, and the end is stored all the same.
func TestL3_TheLastWriteHasAContextOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(hold(nil, "part", ""))
	c := w.connect()
	w.accept(c, "r1", "hi")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		if isTerminal(ops) {
			cancel()
		}
		return faulty.None
	}))
	wake := w.next()
	i := p.begin(func() error { return p.in(ctx, wake) })
	<-w.model.asked
	w.stop("r1")
	w.clock.Advance(700 * time.Millisecond)
	must(t, i.wait())
	if m := w.meta(); m.LastEnd != "aborted" || len(m.Unsettled) != 0 {
		t.Errorf("session %+v", m)
	}
	if str(w.reply(c, "r1"), "payload.stopReason") != "rpc" {
		t.Errorf("final %v", w.reply(c, "r1"))
	}
}

// TestL4_OneEndUnderRaces: whatever wants to end a run at its own end, there is one
// terminal, and everybody is told the same.
func TestL4_OneEndUnderRaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *world)
		want string
	}{
		"abort just before the end":      {func(w *world) { w.stop("r1") }, "aborted"},
		"stop of all just before it":     {func(w *world) { w.stopAll() }, "aborted"},
		"time-out just before it":        {func(w *world) { w.clock.Advance(61 * time.Second) }, "ok"},
		"nothing":                        {func(*world) {}, "ok"},
		"abort and a steer that is late": {func(w *world) { w.stop("r1"); w.steer(w.connect(), "s1", "x") }, "aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(say("whole answer"))
			cl := w.connect()
			w.accept(cl, "r1", "hi", func(st *run.Status) { st.Input.TimeoutMs = 60_000 })
			p := steered(t, w, cl, 1, func() { c.act(w) })
			p.serve()
			st := w.status("r1")
			if string(st.Outcome.Kind) != c.want {
				t.Fatalf("ended %s", st.Outcome.Kind)
			}
			f := w.reply(cl, "r1")
			ends := len(cl.all(event("agent", "lifecycle", "end"))) + len(cl.all(event("agent", "lifecycle", "error")))
			chats := len(cl.all(event("chat", "", "final"))) + len(cl.all(event("chat", "", "aborted"))) + len(cl.all(event("chat", "", "error")))
			if ends != 1 || chats != 1 {
				t.Errorf("%d ends and %d chat ends: %s", ends, chats, cl.dump())
			}
			rows := w.rows()
			last := rows[len(rows)-1]
			if len(rows) != 2 || last.Text() != "whole answer" || (last.Abort != nil) != (c.want == "aborted") {
				t.Errorf("rows %+v", rows)
			}
			if ok := str(f, "payload.status") == "ok"; ok != (c.want == "ok") {
				t.Errorf("final %v", f)
			}
			if late := cl.all(func(f map[string]any) bool { return f["event"] == "agent" }); str(late[len(late)-1], "payload.stream") != "lifecycle" {
				t.Errorf("an event after the end: %v", late[len(late)-1])
			}
		})
	}
}

// TestL4_ALostAnswerOfTheTerminal is no second end: the write was made, its answer
// lost, and then everything fails that the process tries.
func TestL4_ALostAnswerOfTheTerminal(t *testing.T) {
	t.Parallel()
	for _, fault := range []faulty.Fault{faulty.LostAnswer, faulty.LostRequest, faulty.Conflict, faulty.Throttle} {
		w := newWorld(t)
		w.model.on(say("answer"))
		c := w.connect()
		w.accept(c, "r1", "hi")
		n := 0
		p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
			if isTerminal(ops) && n < 2 {
				n++
				return fault
			}
			return faulty.None
		}))
		p.serve()
		if n != 2 {
			t.Errorf("fault %d happened %d times", fault, n)
		}
		if text(w.reply(c, "r1")) != "answer" || len(w.rows()) != 2 || len(w.model.calls()) != 1 {
			t.Errorf("fault %d: final %v, %d rows", fault, w.reply(c, "r1"), len(w.rows()))
		}
	}
}

// TestF17_CutOffIsNeverOk: a run whose budget is over while its last message is a tool
// call, one whose model reaches its limit inside a call, and one that a user stopped.
func TestF17_CutOffIsNeverOk(t *testing.T) {
	t.Parallel()
	hang := newTool("hang", tool.Unsafe)
	begun := make(chan struct{}, 3)
	hang.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	limit := func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{Text: "I will"}, nil)
		b := block("a", "hang")
		b.Type = model.ToolCall
		yield(model.Part{ToolCall: &b}, nil)
		yield(done("length"), nil)
	}
	for _, c := range []struct {
		name  string
		model answerFunc
		act   func(*world)
		kind  run.OutcomeKind
		final string
		ok    bool
	}{
		{"timeout", callTools(block("a", "hang")), func(w *world) { w.pass(59*time.Second, 3); w.clock.Advance(2 * time.Second) }, run.Timeout, "timeout", true},
		{"max tokens in a call", limit, nil, run.Failed, "error", false},
		{"abort", callTools(block("a", "hang")), func(w *world) { w.stop("r1"); w.clock.Advance(700 * time.Millisecond) }, run.Aborted, "timeout", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, hang)
			w.model.on(c.model)
			cl := w.connect("tool-events")
			w.accept(cl, "r1", "hi", func(st *run.Status) { st.Input.TimeoutMs = 60_000 })
			p := w.process(nil, func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.Retry.MaxRetries = -1 })
			i := p.start()
			if c.act != nil {
				<-begun
				c.act(w)
			}
			must(t, i.wait())
			st := w.status("r1")
			if st.Outcome.Kind != c.kind {
				t.Fatalf("ended %+v", st.Outcome)
			}
			f := w.reply(cl, "r1")
			if str(f, "payload.status") != c.final || f["ok"] != c.ok {
				t.Errorf("final %v", f)
			}
			if got := st.Snapshot().Status; got == "ok" || c.kind == run.Timeout && got != "timeout" {
				t.Errorf("wait says %s", got)
			}
			if starts, results := len(cl.all(event("agent", "tool", "start"))), len(cl.all(event("agent", "tool", "result"))); starts != results {
				t.Errorf("%d starts and %d results were told", starts, results)
			}
			for _, e := range w.rows() {
				if e.ToolCallID == "a" && !strings.Contains(e.Text(), tool.TextAborted) {
					t.Errorf("result %q", e.Text())
				}
			}
			p.serve()
		})
	}
}
