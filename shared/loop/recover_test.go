package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/tool"
	"laneway/shared/wiring"
)

// dying is a process that is killed while the model of its run has said something.
func (w *world) dying() *process {
	w.t.Helper()
	p := w.process(nil)
	w.model.by(func(model.Request) answerFunc {
		return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
			yield(model.Part{Text: "half"}, nil)
			p.kill()
			yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "the machine is gone"})
		}
	})
	return p
}

// TestA4_TheMessageStaysInTheRecordUntilItIsARow, and is one row however often the
// runner dies before and behind its first commit.
func TestA4_TheMessageStaysInTheRecordUntilItIsARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect()
	w.accept(c, "r1", "keep me")
	for range 2 {
		if w.dying().start().wait() == nil {
			t.Fatal("a dead process acknowledged")
		}
		if st := w.status("r1"); st.Input.Message != "keep me" || st.UserSeq != 0 || w.meta().Head != 0 {
			t.Fatalf("before the first commit: %+v, head %d", st, w.meta().Head)
		}
		w.clock.Advance(lost)
		w.box.back(letter{lane: "main", body: wakeBody, due: w.clock.Now()})
	}
	w.model.by(nil)
	w.model.on(say("end"))
	w.process(nil).serve()
	rows := w.rows()
	if len(rows) != 2 || rows[0].Key != "r1:user" || rows[0].Text() != "keep me" {
		t.Errorf("rows %+v", rows)
	}
	if st := w.status("r1"); st.Input.Message != "" || st.UserSeq != 1 {
		t.Errorf("behind it: %+v", st)
	}
	if text(w.reply(c, "r1")) != "end" {
		t.Error("no answer")
	}
}

var wakeBody = []byte(`{"t":"default","k":"` + key + `","l":"main"}`)

// TestR3_TheFourthAttemptWithoutProgressEndsTheRun, and its lane goes on.
func TestR3_TheFourthAttemptWithoutProgressEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.accept(c, "r2", "next")
	w.box.lose()
	for n := range 3 {
		w.box.back(letter{lane: "main", body: wakeBody, due: w.clock.Now()})
		if w.dying().start().wait() == nil {
			t.Fatal("a dead process acknowledged")
		}
		if m := w.meta(); m.Stalled != int64(n+1) || m.Attempt != int64(n+1) {
			t.Fatalf("attempt %d: %+v", n+1, m)
		}
		w.clock.Advance(lost)
	}
	asked := len(w.model.calls())
	w.model.by(nil)
	w.model.on(say("next answer"))
	w.process(nil).serve()
	st := w.status("r1")
	if st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != "no_progress" {
		t.Fatalf("ended %+v", st.Outcome)
	}
	f := w.reply(c, "r1")
	if f["ok"] != false || str(f, "error.details.reason") != "no_progress" {
		t.Errorf("final %v", f)
	}
	if text(w.reply(c, "r2")) != "next answer" || len(w.model.calls()) != asked+1 {
		t.Errorf("the lane: %v after %d model calls", w.reply(c, "r2"), len(w.model.calls()))
	}
}

// TestR3_CleanCheckpointsDoNotCount.
func TestR3_CleanCheckpointsDoNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("end"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	for n := range 8 {
		must(t, p.handle(w.next(), w.clock.Now().Add(10*time.Second))) // too little for a step
		if m := w.meta(); m.Stalled != 0 || m.Attempt != int64(n+1) || m.Owner != "" {
			t.Fatalf("session %+v", m)
		}
	}
	p.serve()
	if text(w.reply(c, "r1")) != "end" {
		t.Errorf("final %v", w.reply(c, "r1"))
	}
}

// TestR3_ARunThatCannotBeLoadedDoesNotHoldItsLane: a row of its past is gone.
func TestR3_ARunThatCannotBeLoadedDoesNotHoldItsLane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("one"), say("two"))
	c := w.connect()
	w.accept(c, "r0", "first")
	w.process(nil).serve()
	_, err := w.store.Write(t.Context(), table.Op{Kind: table.Delete, Key: table.Key{Table: table.Sessions, PK: ref.TranscriptPK(w.meta().SessionID), SK: "000000000001"}})
	must(t, err)
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	p.serve()
	st := w.status("r1")
	if st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != "no_progress" || w.meta().Head != 4 { // its message and its error
		t.Errorf("ended %+v at head %d", st.Outcome, w.meta().Head)
	}
	if f := w.reply(c, "r1"); f["ok"] != false {
		t.Errorf("final %v", f)
	}
}

// TestF5_RecoveredWithin90Seconds of a kill in the middle of a stream, with default
// settings, the wake-up lost, and nothing cleaned by age.
func TestF5_RecoveredWithin90Seconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	gate := make(chan struct{})
	w.model.by(func(model.Request) answerFunc { return hold(gate, "half", "") })
	i := p.start()
	<-w.model.asked
	w.pass(20*time.Second, 2) // its holder renews meanwhile
	killed := w.clock.Now()
	p.kill()
	close(gate)
	if i.wait() == nil {
		t.Fatal("a dead process acknowledged")
	}
	w.box.lose()
	w.accept(c, "r2", "second")
	var started time.Duration
	w.model.by(func(r model.Request) answerFunc {
		if r.Messages[len(r.Messages)-1].Content[0].Text == "second" {
			started = w.clock.Now().Sub(killed)
		}
		return say("answer")
	})
	w.process(nil).serve()
	if started == 0 || started > 90*time.Second {
		t.Errorf("the next message ran after %s", started)
	}
	for _, id := range []string{"r1", "r2"} {
		if text(w.reply(c, id)) != "answer" {
			t.Errorf("final of %s: %v", id, w.reply(c, id))
		}
	}
	shown := c.all(event("agent", "assistant", ""))
	if last := shown[len(shown)-1]; str(last, "payload.data.text") != "answer" {
		t.Errorf("shown at last: %v", last)
	}
}

// TestF5_ExpiryIsNeverReadAsUnlocked: an item that could be cleaned is as good as any.
func TestF5_ExpiryIsNeverReadAsUnlocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := make(chan struct{})
	w.model.on(hold(gate, "half", " and half"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	i := p.start()
	<-w.model.asked
	for _, k := range []table.Key{ref.MetaKey(), run.RefOf(session.DefaultTenant, "r1").StatusKey()} {
		_, err := w.store.Write(t.Context(), table.Op{Kind: table.Update, Key: k, If: table.Exists(), Set: []table.SetOp{{Path: table.P(table.TTLAttr), Value: int64(1)}}})
		must(t, err)
	}
	before := w.meta()
	other := w.process(nil)
	must(t, other.deliver(letter{lane: "main", body: wakeBody}))
	_, err := other.core.Lanes.Sweep(t.Context())
	must(t, err)
	if m := w.meta(); m.Owner != before.Owner || m.Token != before.Token || len(w.box.take()) != 0 {
		t.Fatalf("taken over: %+v", m)
	}
	close(gate)
	must(t, i.wait())
	if text(w.reply(c, "r1")) != "half and half" {
		t.Errorf("final %v", w.reply(c, "r1"))
	}
}

// TestF16_AWaitSeesOnlyTheLastEnd: an attempt errs, 40 seconds pass, the next one is
// ok; another time the process dies in between.
func TestF16_AWaitSeesOnlyTheLastEnd(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies: ", dies), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c, other := w.connect(), w.connect()
			w.accept(c, "r1", "hi")
			wake := w.next()
			wait := func(id string) []byte {
				frame, err := w.gw.core.Notify.Wait(t.Context(), run.RefOf(session.DefaultTenant, "r1"), "r1", run.Waiter{ConnectionID: other.id, RequestID: id}, 120*time.Second)
				must(t, err)
				return frame
			}
			if f := wait("w1"); f != nil {
				t.Fatalf("answered at once: %s", f)
			}
			if dies {
				p := w.dying()
				if p.deliver(wake) == nil {
					t.Fatal("a dead process acknowledged")
				}
				w.box.back(wake)
				w.clock.Advance(40 * time.Second)
				w.model.by(nil)
				w.model.on(say("answer"))
				w.process(nil).serve()
			} else {
				w.model.on(func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
					yield(model.Part{}, &model.Error{Class: model.ServerError, Message: "busy", RetryAfter: 40 * time.Second})
				}, say("answer"))
				p := w.process(nil)
				i := p.begin(func() error { return p.deliver(wake) })
				if took := w.until(i); took < 40*time.Second {
					t.Errorf("over after %s", took)
				}
				p.serve()
			}
			got := other.all(func(f map[string]any) bool { return f["id"] == "w1" })
			if len(got) != 1 || str(got[0], "payload.status") != "ok" {
				t.Fatalf("the wait got %v", got)
			}
			var again map[string]any
			must(t, json.Unmarshal(wait("w2"), &again))
			a, _ := json.Marshal(got[0]["payload"])
			if b, _ := json.Marshal(again["payload"]); string(a) != string(b) {
				t.Errorf("a second wait got\n%s\nnot\n%s", b, a)
			}
			if ends := len(c.all(event("agent", "lifecycle", "error"))); ends != 0 {
				t.Errorf("%d errors were told", ends)
			}
		})
	}
}

// TestF18_RunnerDiesAndTheWaitEnds with its window, and with nothing but that.
func TestF18_RunnerDiesAndTheWaitEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, other := w.connect(), w.connect()
	w.accept(c, "r1", "hi")
	wake := w.next()
	frame, err := w.gw.core.Notify.Wait(t.Context(), run.RefOf(session.DefaultTenant, "r1"), "r1", run.Waiter{ConnectionID: other.id, RequestID: "w"}, 30*time.Second)
	must(t, err)
	if frame != nil {
		t.Fatalf("answered at once: %s", frame)
	}
	if w.dying().deliver(wake) == nil {
		t.Fatal("a dead process acknowledged")
	}
	w.clock.Advance(31 * time.Second)
	for _, l := range w.box.take() {
		must(t, w.gw.deliver(l)) // timers: the wake-up does not come again
	}
	got := other.all(func(f map[string]any) bool { return f["type"] == "res" })
	if b, _ := json.Marshal(got); string(b) != `[{"id":"w","ok":true,"payload":{"runId":"r1","status":"timeout"},"type":"res"}]` {
		t.Errorf("the wait got %s", b)
	}
}

// TestF23_AConversationStaysValid whatever happened in the middle of a call. The fake
// model refuses what a provider would.
func TestF23_AConversationStaysValid(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"abort", "kill", "timeout"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var p *process
			begun := make(chan struct{}, 1)
			act := newTool("act", tool.Unsafe)
			act.spec.Sequential = true
			w := newWorld(t, act)
			act.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				begun <- struct{}{}
				if how == "kill" {
					p.kill()
					return tool.TextResult("did"), nil
				}
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			c := w.connect()
			w.model.on(callTools(block("a", "act"), block("b", "act")), say("one"), say("two"))
			w.accept(c, "r1", "hi", func(st *run.Status) { st.Input.TimeoutMs = 60_000 })
			p = w.process(nil)
			i := p.start()
			<-begun
			switch how {
			case "abort":
				w.stop("r1")
				w.clock.Advance(700 * time.Millisecond)
				must(t, i.wait())
			case "timeout":
				w.pass(59*time.Second, 3)
				w.clock.Advance(2 * time.Second)
				must(t, i.wait())
			case "kill":
				if i.wait() == nil {
					t.Fatal("a dead process acknowledged")
				}
				w.clock.Advance(lost)
			}
			act.run = nil
			w.process(nil).serve()
			stored := w.rows()
			w.accept(c, "r2", "go on")
			w.process(nil).serve()
			if f := w.reply(c, "r2"); f["ok"] != true {
				t.Fatalf("the next message: %v", f)
			}
			again := w.rows()
			a, _ := json.Marshal(stored)
			if b, _ := json.Marshal(again[:len(stored)]); string(a) != string(b) {
				t.Errorf("rows changed:\n%s\n%s", a, b)
			}
			results := map[string]int{}
			for _, e := range again {
				if e.Role == model.ToolResult {
					results[e.ToolCallID]++
				}
			}
			if results["a"] != 1 || results["b"] != 1 {
				t.Errorf("results stored: %v", results)
			}
		})
	}
}

// panicking is agents of which one part panics some times.
type panicking struct {
	*world
	where string
	times int
}

func (p *panicking) at(where string) {
	if p.where == where && p.times > 0 {
		p.times--
		panic("a secret of " + where)
	}
}

func (p *panicking) Prompt(ctx context.Context, in loop.PromptInput) (string, error) {
	p.at("prompt")
	return p.world.Prompt(ctx, in)
}

func (p *panicking) Tools(ctx context.Context, s *tool.Scope) (*tool.Registry, error) {
	p.at("tools")
	return p.world.Tools(ctx, s)
}

// TestHandle_APanicLosesNothing: the claim is given back, nothing of the attempt lives
// on, the wake-up comes again and the run goes on.
func TestHandle_APanicLosesNothing(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"model", "prompt", "tools"} {
		for _, times := range []int{1, 9} {
			t.Run(fmt.Sprint(where, " ", times, " times"), func(t *testing.T) {
				t.Parallel()
				act := newTool("act", tool.ReadOnly)
				act.run = func(context.Context, tool.Call) (tool.Result, error) { panic("a tool") }
				w := newWorld(t, act)
				pan := &panicking{world: w, where: where, times: times}
				w.model.by(func(r model.Request) answerFunc {
					return func(ctx context.Context, _ model.Request, yield func(model.Part, error) bool) {
						yield(model.Part{Text: "text"}, nil)
						pan.at("model")
						if r.Messages[len(r.Messages)-1].Role != model.ToolResult {
							callTools(block("a", "act"))(ctx, r, yield)
							return
						}
						say(" end")(ctx, r, yield)
					}
				})
				c := w.connect()
				w.accept(c, "r1", "hi")
				p := w.process(nil, func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.Agents = pan })
				l := w.next()
				err := p.deliver(l)
				if err == nil || strings.Contains(err.Error(), "secret") {
					t.Fatalf("got %v", err)
				}
				if m := w.meta(); m.Owner != "" || m.Active != "r1" {
					t.Fatalf("session %+v", m)
				}
				w.box.back(l)
				p.serve()
				st := w.status("r1")
				if ok := st.Outcome.Kind == run.OK; ok != (times == 1) {
					t.Errorf("ended %+v", st.Outcome)
				}
				if times == 9 && st.Outcome.ErrorKind != "no_progress" {
					t.Errorf("ended %+v", st.Outcome)
				}
				w.reply(c, "r1")
			})
		}
	}
}

// TestHandle_SlowAndBrokenConnectionsHoldNothingUp: neither the one that started the
// run nor one that waits keeps the run unsettled, and the lane with it.
func TestHandle_SlowAndBrokenConnectionsHoldNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("one"), say("two"))
	c, bad := w.connect(), w.connect()
	w.accept(bad, "r1", "hi")
	w.accept(c, "r2", "next")
	frame, err := w.gw.core.Notify.Wait(t.Context(), run.RefOf(session.DefaultTenant, "r1"), "r1", run.Waiter{ConnectionID: bad.id, RequestID: "w"}, 10*time.Minute)
	must(t, err)
	if frame != nil {
		t.Fatal("answered at once")
	}
	// The clock may run away from the holder here: its end stays its own for long.
	p := w.process(nil, func(_ *process, s *wiring.Settings, _ *wiring.RunnerConfig) { s.Times.Answer = 10 * time.Minute })
	broken := true
	p.posts = func(to push.Target, _ []byte) error {
		if broken && to.ConnectionID == bad.id {
			return push.ErrFailed
		}
		return nil
	}
	l := w.box.take()
	w.box.back(l[1])
	i := p.begin(func() error { return p.deliver(l[0]) })
	w.until(i)
	if m := w.meta(); len(m.Unsettled) != 0 || m.Active != "" {
		t.Fatalf("session %+v", m)
	}
	p.serve()
	if text(w.reply(c, "r2")) != "two" {
		t.Error("the lane does not go on")
	}
	broken = false
	for range 60 {
		w.clock.Advance(30 * time.Second)
		for _, l := range w.box.take() {
			must(t, p.deliver(l))
		}
	}
	if text(w.reply(bad, "r1")) != "one" {
		t.Errorf("the final came %s", bad.dump())
	}
	if got := bad.all(func(f map[string]any) bool { return f["id"] == "w" }); len(got) != 1 || str(got[0], "payload.status") != "ok" {
		t.Errorf("the wait got %v", got)
	}
	if n := len(bad.all(event("agent", "lifecycle", "end"))); n != 1 {
		t.Errorf("%d ends", n)
	}
}
