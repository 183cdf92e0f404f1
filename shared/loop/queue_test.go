package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
)

// write accepts a message as chat.send does, in a mode.
func (w *world) write(c *client, runID, text, mode string) run.Disposition {
	w.t.Helper()
	st := status(c, runID, text)
	st.Method = "chat.send"
	acc, err := w.gw.core.Lanes.Accept(w.t.Context(), lane.Call{Run: st, Rules: func(context.Context) (lane.Rules, error) {
		r := lane.DefaultRules
		r.Mode, r.Debounce = mode, 0
		return r, nil
	}})
	must(w.t, err)
	return acc.Status.Disposition
}

// TestF10_AMessageWhileToolCallsArePending: every mode at every moment. A message that
// is steered has what has not begun skipped, and comes before the next model call;
// follow-ups never have a tool skipped. Each call has one result, in source order, and
// the message is in the conversation once.
func TestF10_AMessageWhileToolCallsArePending(t *testing.T) {
	t.Parallel()
	const before, first, batch, final = "before the launch", "while the first of three runs", "when a batch was launched", "during the last text"
	for _, mode := range []string{lane.Steer, lane.Followup, lane.Collect, lane.Interrupt} {
		for _, when := range []string{before, first, batch, final} {
			t.Run(mode+" "+when, func(t *testing.T) {
				t.Parallel()
				var done atomic.Bool
				var act func()
				once := func() {
					if done.CompareAndSwap(false, true) {
						act()
					}
				}
				act3 := newTool("act", tool.Unsafe)
				act3.spec.Sequential = when == first || when == before
				act3.run = func(_ context.Context, call tool.Call) (tool.Result, error) {
					if when == first || when == batch {
						once()
					}
					return tool.TextResult("done " + call.ID), nil
				}
				w := newWorld(t, act3)
				w.model.by(func(r model.Request) answerFunc {
					last := r.Messages[len(r.Messages)-1]
					if last.Role == model.User && last.Content[0].Text == "hi" {
						args := json.RawMessage(`{}`)
						return callTools(model.Block{ID: "c1", Name: "act", Arguments: args}, model.Block{ID: "c2", Name: "act", Arguments: args}, model.Block{ID: "c3", Name: "act", Arguments: args})
					}
					if when == final {
						once()
					}
					return say("well then")
				})
				c, other := w.connect(), w.connect()
				act = func() { w.write(other, "m", "the message", mode) }
				w.accept(c, "r1", "hi")
				w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
					if when == before && ledgerOps(ops) > 0 {
						once()
					}
					return faulty.None
				})).serve()
				if !done.Load() {
					t.Fatal("the message was never sent")
				}
				var order []string
				messages, skipped := 0, 0
				for _, row := range w.rows() {
					switch {
					case row.Role == model.ToolResult:
						order = append(order, row.ToolCallID)
						if row.Text() == tool.TextSkipped {
							skipped++
						}
					case row.Role == model.User && strings.Contains(row.Text(), "the message"):
						messages++
					}
				}
				if fmt.Sprint(order) != "[c1 c2 c3]" {
					t.Errorf("results %v", order)
				}
				if messages != 1 {
					t.Errorf("the message is there %d times", messages)
				}
				want := map[string]int{before: 3, first: 2}[when]
				if mode != lane.Steer {
					want = 0
				}
				if skipped != want {
					t.Errorf("%d calls were skipped, want %d", skipped, want)
				}
				if act3.count()+skipped != 3 && mode != lane.Interrupt {
					t.Errorf("%d calls ran, %d were skipped", act3.count(), skipped)
				}
				st, m := w.status("r1"), w.status("m")
				if m.Outcome == nil || m.Outcome.Kind != run.OK {
					t.Errorf("the message's end: %+v", m.Outcome)
				}
				switch mode {
				case lane.Interrupt:
					if st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != run.StopSuperseded || st.Disposition.RunID != "m" {
						t.Errorf("the run: %+v %+v", st.Outcome, st.Disposition)
					}
				case lane.Steer:
					if st.Outcome.Kind != run.OK || m.Disposition.Kind != lane.IsSteered || m.Disposition.RunID != "r1" {
						t.Errorf("%+v, %+v", st.Outcome, m.Disposition)
					}
				default:
					if st.Outcome.Kind != run.OK || m.Disposition.Kind != lane.IsStarted {
						t.Errorf("%+v, %+v", st.Outcome, m.Disposition)
					}
				}
			})
		}
	}
}

// TestL3_WhatWasSteeredBeforeTheRunnerDiedComesFirst: a turn of collected messages that is
// begun again takes what was steered into it before those that came later.
func TestL3_WhatWasSteeredBeforeTheRunnerDiedComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect()
	gate := make(chan struct{})
	w.model.on(hold(gate, "", "first"))
	w.accept(c, "r0", "zero")
	at := w.process(nil).start()
	<-w.model.asked
	w.write(c, "r1", "one", lane.Collect)
	close(gate)
	must(t, at.wait())
	wake := func() {
		w.box.lose()
		w.box.back(letter{lane: "main", body: wakeBody, due: w.clock.Now()})
	}
	wake()
	if w.dying().start().wait() == nil {
		t.Fatal("a dead process acknowledged")
	}
	if d := w.write(c, "r2", "two", lane.Steer); d.Kind != lane.IsStarted && d.Kind != lane.IsSteered {
		t.Fatalf("not steered: %+v", d)
	}
	w.write(c, "r3", "three", lane.Collect)
	w.model.by(nil)
	w.model.on(say("end"))
	w.clock.Advance(lost)
	wake()
	w.process(nil).serve()
	if got := strings.Join(w.users(), " | "); got != "zero | one | two | three" {
		t.Errorf("users: %s", got)
	}
}
