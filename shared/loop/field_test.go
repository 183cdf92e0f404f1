package loop_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/tool"
)

// users are the user rows' texts, in order.
func (w *world) users() (out []string) {
	w.t.Helper()
	for _, e := range w.rows() {
		if e.Role == model.User {
			out = append(out, e.Text())
		}
	}
	return out
}

// TestF1_AToolOfTenMinutesStarvesNobody: meanwhile a message is accepted, one is steered
// in and the conversation is read, with no time passing; the run keeps its claim and
// appends behind it.
func TestF1_AToolOfTenMinutesStarvesNobody(t *testing.T) {
	t.Parallel()
	begun, gate := make(chan struct{}), make(chan struct{})
	slow := newTool("slow", tool.Unsafe)
	slow.run = func(context.Context, tool.Call) (tool.Result, error) {
		close(begun)
		<-gate
		return tool.TextResult("done at last"), nil
	}
	w := newWorld(t, slow)
	w.model.on(callTools(block("a", "slow")), say("first"), say("second"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	i := w.process(nil).start()
	<-begun
	for range 10 {
		w.lives(time.Minute)
	}
	before := w.clock.Now()
	if !w.steer(c, "s1", "by the way") {
		t.Error("not steered")
	}
	w.accept(c, "r2", "next")
	if got := w.rows(); len(got) != 2 || got[0].Text() != "hi" {
		t.Errorf("read %+v", got)
	}
	if m := w.meta(); m.Token != 1 || m.Active != "r1" || !w.clock.Now().Equal(before) {
		t.Errorf("session %+v", m)
	}
	close(gate)
	must(t, i.wait())
	w.process(nil).serve()
	if got := w.users(); !slices.Equal(got, []string{"hi", "by the way", "next"}) {
		t.Errorf("messages %q", got)
	}
	if st := w.status("r1"); st.Attempt != 1 || st.Outcome.Kind != run.OK {
		t.Errorf("the run was taken over: %+v", st)
	}
}

// lateEnds does something before it answers the clients that wait.
type lateEnds struct {
	loop.Ends
	first func() error
}

func (e lateEnds) Waiters(ctx context.Context, st run.Status) error {
	if err := e.first(); err != nil {
		return err
	}
	return e.Ends.Waiters(ctx, st)
}

// TestF2_WorkBehindTheTurnHoldsNoClaim: what follows the end fails, panics, hangs, or
// dies with its process. The end is out, its record stays as it is, and the next message
// runs at once, without any time passing.
func TestF2_WorkBehindTheTurnHoldsNoClaim(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"fails", "panics", "hangs", "is killed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(say("one"), say("two"))
			c := w.connect()
			w.accept(c, "r1", "hi")
			p, reached, gate := w.process(nil), make(chan struct{}), make(chan struct{})
			p.runner.Ends = lateEnds{p.runner.Ends, func() error {
				close(reached)
				switch how {
				case "fails":
					return errors.New("scripted")
				case "panics":
					panic("scripted")
				case "is killed":
					p.kill()
				}
				<-gate
				return nil
			}}
			if how != "hangs" {
				close(gate)
			}
			i := p.start()
			<-reached
			if how != "hangs" {
				if i.wait() == nil {
					t.Error("acknowledged, though what follows the end was not done")
				}
			}
			ended := w.status("r1")
			if m := w.meta(); m.Owner != "" || m.Active != "" || ended.Outcome == nil || ended.Outcome.Kind != run.OK {
				t.Fatalf("behind the end: %+v, %+v", m, ended.Outcome)
			}
			w.accept(c, "r2", "next")
			before := w.clock.Now()
			must(t, w.process(nil).deliver(w.next()))
			if st := w.status("r2"); st.Outcome == nil || st.Outcome.Kind != run.OK || !w.clock.Now().Equal(before) {
				t.Fatalf("the next message: %+v", st)
			}
			if how == "hangs" {
				close(gate)
				_ = i.wait() // whoever told the end first, it is told once
			}
			w.process(nil).serve()
			// Where the first to tell it was cut off it is told again, the same (W2).
			told := c.all(func(f map[string]any) bool { return f["type"] == "res" && f["id"] == "req-r1" })
			if len(told) == 0 || slices.ContainsFunc(told, func(f map[string]any) bool { return text(f) != "one" }) || text(w.reply(c, "r2")) != "two" {
				t.Errorf("told %s", c.dump())
			}
			if st := w.status("r1"); !reflect.DeepEqual(st.Outcome, ended.Outcome) {
				t.Errorf("the end became %+v", st.Outcome)
			}
		})
	}
}

// TestF3_MessagesInTheMiddleOfARunAreAllTaken: five from two connections, while it
// streams. It is not ended, and each is in the conversation once, in order.
func TestF3_MessagesInTheMiddleOfARunAreAllTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := make(chan struct{})
	w.model.on(hold(gate, "half", " and half"), say("to all of you"))
	a, b := w.connect(), w.connect()
	w.accept(a, "r1", "hi")
	i := w.process(nil).start()
	<-w.model.asked
	want := []string{"hi"}
	for n := range 5 {
		from := a
		if n%2 == 1 {
			from = b
		}
		if !w.steer(from, fmt.Sprint("s", n), fmt.Sprint("message ", n)) {
			t.Fatalf("message %d was not taken", n)
		}
		want = append(want, fmt.Sprint("message ", n))
		w.clock.Advance(40 * time.Millisecond)
	}
	close(gate)
	must(t, i.wait())
	w.process(nil).serve()
	if got := w.users(); !slices.Equal(got, want) {
		t.Errorf("messages %q", got)
	}
	if st := w.status("r1"); st.Outcome.Kind != run.OK || st.Attempt != 1 {
		t.Errorf("the run %+v", st)
	}
	for n := range 5 {
		if st := w.status(fmt.Sprint("s", n)); !st.Done() || st.Into == "" {
			t.Errorf("message %d: %+v", n, st)
		}
	}
}

// queued accepts a message under the rules of a queue mode.
func (w *world) queued(c *client, runID, mode string, limit int) {
	w.t.Helper()
	st := status(c, runID, "message "+runID)
	st.Input.QueueMode = mode
	_, err := w.gw.core.Lanes.Accept(w.t.Context(), lane.Call{Run: st, Rules: func(context.Context) (lane.Rules, error) {
		return lane.Rules{Mode: mode, Cap: limit, Drop: lane.DropSummarize}, nil
	}})
	must(w.t, err)
}

// TestF7_WhatWasQueuedSurvivesRecovery: a run is wedged with nine messages behind it,
// three of them to be collected, and more than the queue holds. Another runner does all
// of it; the wedged one comes back late and changes nothing.
func TestF7_WhatWasQueuedSurvivesRecovery(t *testing.T) {
	t.Parallel()
	begun, thaw := make(chan struct{}), make(chan struct{})
	act := newTool("act", tool.Unsafe)
	act.run = func(context.Context, tool.Call) (tool.Result, error) {
		close(begun)
		<-thaw
		return tool.TextResult("too late"), nil
	}
	w := newWorld(t, act)
	w.model.on(callTools(block("a", "act")), say("fine"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil, frozen)
	i := p.start()
	<-begun
	p.freeze(true)
	var queued []string
	for n := range 9 {
		mode := "followup"
		if n >= 3 && n < 6 {
			mode = "collect"
		}
		w.queued(c, fmt.Sprint("q", n), mode, 7)
		queued = append(queued, fmt.Sprint("q", n))
	}
	w.box.lose()
	w.clock.Advance(lost)
	w.process(nil).serve()
	before := w.dump(append(queued, "r1")...)
	p.freeze(false)
	close(thaw)
	for len(i.err) == 0 { // its time goes on
		p.clock.Advance(time.Second)
		<-time.After(100 * time.Microsecond)
	}
	_ = i.wait() // what a holder says that lost its claim
	if diff := differ(before, w.dump(append(queued, "r1")...)); diff != "" {
		t.Errorf("the one that came back changed %s", diff)
	}
	if act.count() != 1 {
		t.Errorf("the effect was made %d times", act.count())
	}
	all := strings.Join(w.users(), "\n")
	at := -1
	for _, id := range queued {
		if st := w.status(id); !st.Done() || st.Outcome.Kind != run.OK {
			t.Errorf("%s: %+v", id, st.Outcome)
		}
		next := strings.Index(all, "message "+id)
		if next <= at || strings.Count(all, "message "+id) != 1 {
			t.Errorf("%s is not in its place, once, in\n%s", id, all)
		}
		at = next
	}
}

// TestF15_AStopDoesNotWaitInTheLane: a run is in a blocked model call, three wait. A stop
// of the session cuts the call within a second, ends all four, lets no tool begin, and
// the lane is free.
func TestF15_AStopDoesNotWaitInTheLane(t *testing.T) {
	t.Parallel()
	act := newTool("act", tool.Unsafe)
	w := newWorld(t, act)
	cut := make(chan time.Time, 1)
	w.model.by(func(r model.Request) answerFunc {
		if r.Messages[len(r.Messages)-1].Content[0].Text == "after" {
			return say("free")
		}
		return func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
			if !yield(model.Part{Text: "half"}, nil) {
				return
			}
			<-ctx.Done()
			cut <- w.clock.Now()
			callTools(block("a", "act"))(ctx, r, yield) // a model that does not hear
		}
	})
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	i := p.start()
	<-w.model.asked
	for n := range 3 {
		w.accept(c, fmt.Sprint("q", n), "queued")
	}
	w.clock.Waiting(t, 2)
	stopped := w.clock.Now()
	w.stopAll()
	w.clock.Advance(time.Second)
	if took := (<-cut).Sub(stopped); took > time.Second {
		t.Errorf("the model call was cut after %s", took)
	}
	w.until(i)
	p.serve()
	for _, id := range []string{"r1", "q0", "q1", "q2"} {
		if st := w.status(id); !st.Done() || st.Outcome.Kind != run.Aborted {
			t.Errorf("%s: %+v", id, st.Outcome)
		}
	}
	ends := len(c.all(event("agent", "", "")))
	w.accept(c, "after", "after")
	must(t, w.process(nil).deliver(w.next()))
	if text(w.reply(c, "after")) != "free" || act.count() != 0 {
		t.Errorf("the lane: %v; %d tools began", w.reply(c, "after"), act.count())
	}
	for _, f := range c.all(event("agent", "", ""))[ends:] {
		if str(f, "payload.runId") != "after" {
			t.Errorf("told behind the end: %v", f)
		}
	}
}

// TestF15_AStopOfAWaitingRunEndsItAlone: a stop that names it touches no other.
func TestF15_AStopOfAWaitingRunEndsItAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := make(chan struct{})
	w.model.on(hold(gate, "half", " and half"), say("three"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	i := w.process(nil).start()
	<-w.model.asked
	w.accept(c, "r2", "two")
	w.accept(c, "r3", "three")
	if !w.stop("r2") {
		t.Fatal("not stopped")
	}
	close(gate)
	must(t, i.wait())
	w.process(nil).serve()
	if text(w.reply(c, "r1")) != "half and half" || w.status("r2").Outcome.Kind != run.Aborted || text(w.reply(c, "r3")) != "three" {
		t.Errorf("told %s", c.dump())
	}
}
