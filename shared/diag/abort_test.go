package diag_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/diag"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
)

// wedge is a run that lives and does nothing more.
func (b *bench) wedge(w session.Work) *claim.Holder {
	b.t.Helper()
	b.Accept("r1")
	h := b.Start()
	h.Working(w)
	b.commit(h)
	b.Accept("r2")
	b.Queue.Take()
	return h
}

// obeys makes the holder end its run when it sees a mark, as the loop does.
func (b *bench) obeys(h *claim.Holder) (ended <-chan struct{}) {
	done := make(chan struct{})
	seen := make(chan struct{}, 1)
	h.OnChange(func(m session.Meta) {
		if m.Marked() {
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	})
	go func() {
		defer close(done)
		select {
		case <-seen:
		case <-b.t.Context().Done():
			return
		}
		h.Progress(session.ProgressEnded)
		if err := h.Commit(b.t.Context(), lanetest.Terminal(h, b.Clock.Now(), run.Outcome{Kind: run.Aborted, StopReason: h.Meta().CancelWhy})); err != nil {
			b.t.Error(err)
		}
	}()
	return done
}

// TestF6_RecoveryFreesTheLane: a run that is wedged behind its last word becomes
// terminal, its lane starts the next message within one look, and the record says
// requested, then completed, of the same generation.
func TestF6_RecoveryFreesTheLane(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		h := b.wedge(session.Work{Kind: session.WorkModel, Limit: 2 * minute})
		h.Progress(session.ProgressEnded) // everything is said, the final step never returns
		b.commit(h)
		b.live(6*minute - tick)
		b.look()
		if e := b.one(b.ops.take(), stalled); e.str("reason") != "queued_behind_terminal_active_work" || e.Payload["terminalProgressStale"] != true {
			t.Fatalf("before the abort time: %+v", e)
		}
		ended := b.obeys(h)
		b.live(tick)
		b.look()
		<-ended
		events := b.ops.take()
		if want := []string{stalled, "session.recovery.requested", "session.recovery.completed", "session.state"}; !slices.Equal(namesOf(events), want) {
			t.Fatalf("%v", namesOf(events))
		}
		asked, done, state := events[1], events[2], events[3]
		if asked.Payload["allowActiveAbort"] != true || asked.num("stateGeneration") == 0 || asked.num("stateGeneration") != done.num("stateGeneration") {
			t.Errorf("%+v\n%+v", asked, done)
		}
		if done.str("status") != "aborted" || done.str("action") != "abort_embedded_run" || done.num("released") != 1 || done.Payload["stale"] != nil {
			t.Errorf("%+v", done)
		}
		if state.str("prevState") != "processing" || state.str("state") != "idle" || state.str("reason") != "stuck_recovery:aborted" || state.num("queueDepth") != 0 {
			t.Errorf("%+v", state)
		}
		st := b.Status("r1")
		if !st.Done() || st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != run.StopStuck {
			t.Errorf("%+v", st.Outcome)
		}
		b.Settle()
		b.Queue.One(t) // the lane's next wake-up
		b.End(b.Start(), run.OK)
		if st := b.Status("r2"); !st.Done() {
			t.Error("the next message did not run")
		}
	})
}

// TestF6_ARunThatDoesNotReactLosesItsClaim: it is told, it is waited for, and then its
// lane goes on without it as soon as its lease is over.
func TestF6_ARunThatDoesNotReactLosesItsClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		h := b.wedge(session.Work{Kind: session.WorkModel, Limit: 2 * minute})
		b.live(6 * minute)
		began := b.Clock.Now()
		b.look()
		// Time goes on while a store answers, on a busy endpoint by more than a second.
		waited := b.Clock.Now().Sub(began)
		if waited < 15*s || waited > 45*s {
			t.Errorf("waited %v", waited)
		}
		done := b.one(b.ops.take(), "session.recovery.completed")
		if done.str("status") != "released" || done.str("action") != "release_lane" || done.str("outcomeReason") != "stale_lane_task" {
			t.Fatalf("%+v", done)
		}
		if err := h.Commit(t.Context(), claim.Tx{}); err == nil {
			t.Error("the old holder still writes")
		}
		// Looks that come before the end of the lease leave it alone.
		b.Clock.Advance(tick)
		again := b.Clock.Now()
		b.look()
		slow := waited - 15*s + b.Clock.Now().Sub(again)
		if got := namesOf(b.ops.take()); !slices.Equal(got, []string{stuck}) {
			t.Errorf("within the lease: %v", got)
		}
		b.Clock.Advance(b.Times.Lease + b.Times.Slack - tick + 2*s)
		if took := b.Clock.Now().Sub(began) - slow; took > 60*s {
			t.Errorf("the lane was free after %v", took)
		}
		b.Queue.One(t)
		if m := b.Meta(); !m.Marked() || m.CancelWhy != run.StopStuck {
			t.Fatalf("who comes next does not know: %+v", m)
		}
		b.End(b.Resume(), run.Aborted)
		b.Settle()
		b.End(b.Start(), run.OK)
	})
}

// TestStuck70_AModelThatSaysNothing: no event at 119 s, long running at 150 s, stalled
// at 400 s and then aborted, once.
func TestStuck70_AModelThatSaysNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		h := b.Start()
		h.Working(session.Work{Kind: session.WorkModel, Limit: 2 * minute})
		b.live(119 * s)
		b.look()
		b.quiet("at 119 s")
		b.live(31 * s)
		b.look()
		if e := b.one(b.ops.take(), longRunning); e.str("reason") != "active_model_call_without_progress" || e.str("activeWorkKind") != "model_call" {
			t.Errorf("at 150 s: %+v", e)
		}
		if b.Meta().Cancel != "" {
			t.Error("aborted at 150 s")
		}
		b.live(250 * s)
		ended := b.obeys(h)
		b.look()
		<-ended
		events := b.ops.take()
		b.one(events, stalled)
		b.one(events, "session.recovery.requested")
		b.Settle()
		b.Clock.Advance(tick)
		b.look()
		b.quiet("afterwards")
		if n := b.stuckCount(); n != 0 {
			t.Errorf("StuckSessions %v: somebody was at it", n)
		}
	})
}

// TestStuck71_AToolThatSaysNothing: stalled at 8 min and left alone, aborted at 15 min;
// a sign of life begins it anew.
func TestStuck71_AToolThatSaysNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		h := b.Start()
		h.Working(session.Work{Kind: session.WorkTool, Tool: "exec", CallID: "call_1"})
		b.live(10 * minute)
		h.Progress(session.ProgressToolUpdated)
		b.commit(h)
		b.look()
		b.quiet("a tool that says something")
		b.live(8 * minute)
		b.look()
		e := b.one(b.ops.take(), stalled)
		if e.str("classification") != "blocked_tool_call" || e.str("activeToolName") != "exec" || e.str("activeToolCallId") != "call_1" ||
			e.num("activeToolAgeMs") != 18*60_000 || e.num("lastProgressAgeMs") != 8*60_000 || e.str("lastProgressReason") != "tool:updated" {
			t.Errorf("%+v", e)
		}
		if b.Meta().Cancel != "" {
			t.Fatal("aborted at 8 min")
		}
		b.live(7 * minute)
		ended := b.obeys(h)
		b.look()
		<-ended
		if done := b.one(b.ops.take(), "session.recovery.completed"); done.str("status") != "aborted" {
			t.Errorf("%+v", done)
		}
	})
}

// TestStuck74_LongRunningAloneIsNoWarning.
func TestStuck74_LongRunningAloneIsNoWarning(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]int{"alone": 0, "with others behind it": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				b.Accept("r1")
				h := b.Start()
				h.Working(session.Work{Kind: session.WorkModel, Limit: 2 * minute})
				if queue > 0 {
					b.Accept("r2")
				}
				b.live(150 * s)
				b.look()
				if b.log.Count("level=DEBUG msg=session.long_running") != 1-queue || b.log.Count("level=WARN msg=session.long_running") != queue {
					t.Error("level")
				}
			})
		})
	}
}

// A run that showed a sign of life after it was told to end is not touched any more:
// the recovery is stale.
func TestStuck_GenerationCheck(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		h := b.wedge(session.Work{Kind: session.WorkModel, Limit: 2 * minute})
		b.live(6 * minute)
		h.OnChange(func(m session.Meta) {
			if m.Marked() {
				h.Progress(session.ProgressStream)
			}
		})
		before := b.Meta()
		b.look()
		m := b.Meta()
		if m.Token != before.Token || m.Owner != before.Owner {
			t.Fatalf("the claim was taken: %+v", m)
		}
		if b.log.Count("status=skipped") != 1 || b.log.Count("outcomeReason=stale_session_state") != 1 || b.log.Count("stale=true") != 1 {
			t.Error("not told as stale")
		}
		b.commit(h)
	})
}

// What moved between the reading of a look and its act is not touched either.
func TestStuck_AMoveBeforeTheActIsSeen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		h := b.wedge(session.Work{Kind: session.WorkModel, Limit: 2 * minute})
		b.live(6 * minute)
		m := b.Meta()
		h.Progress(session.ProgressStream)
		b.commit(h)
		ok, err := b.Lanes.Interrupt(t.Context(), m, run.StopStuck)
		if err != nil || ok || b.Meta().Cancel != "" {
			t.Fatalf("%v, %v, %q", ok, err, b.Meta().Cancel)
		}
	})
}

// A run that its user stopped and that does not end is helped to.
func TestStuck_AStopThatIsNotSeen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.wedge(session.Work{Kind: session.WorkTool, Tool: "exec", CallID: "1"})
		b.live(10 * minute)
		m := b.Meta()
		ok, err := b.Lanes.Interrupt(t.Context(), m, "rpc")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		b.live(5 * minute)
		b.look()
		if done := b.one(b.ops.take(), "session.recovery.completed"); done.str("status") != "released" {
			t.Errorf("%+v", done)
		}
		if m := b.Meta(); m.CancelWhy != "rpc" || m.Owner != claim.Revoked {
			t.Errorf("%+v", m)
		}
	})
}

// A message that a model waits with is no standstill, neither while its holder pauses
// nor while the run sleeps; once the pause is over it is one.
func TestStuck_RetryWaits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.wedge(session.Work{Kind: session.WorkRetry, Limit: time.Hour})
		b.live(30 * minute)
		b.look()
		if e := b.one(b.ops.take(), longRunning); e.str("reason") != "provider_retry_wait" {
			t.Errorf("%+v", e)
		}
		b.live(31 * minute)
		b.look()
		if e := b.ops.take(); len(e) == 0 || e[0].Name != stalled {
			t.Errorf("after its end: %+v", e)
		}
	})
}

// moving is lanes in which something happens between the reading of a look and its act.
type moving struct {
	*lane.Service
	then func()
}

func (l *moving) SweepEach(ctx context.Context, see func(session.Meta, bool)) (lane.Swept, error) {
	sum, err := l.Service.SweepEach(ctx, see)
	l.then()
	return sum, err
}

// A lane whose run begins while a look is at it is not released: what was judged is
// not what is there.
func TestStuck_ALaneThatMovesIsNotReleased(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		b.Clock.Advance(3 * minute)
		b.look() // its wake-up is on its way
		b.Queue.Take()
		b.ops.take()
		c := b.diag.Config
		c.Lanes = &moving{b.Lanes, func() { b.Frozen().Start() }}
		var err error
		b.diag, err = diag.New(c)
		must(t, err)
		b.stuckCount()
		b.look()
		b.Queue.None(t)
		if b.log.Count("outcomeReason=stale_session_state") != 1 || b.log.Count("stale=true") != 1 {
			t.Error("not told as stale")
		}
		if n := b.stuckCount(); n != 0 {
			t.Errorf("StuckSessions %v", n)
		}
	})
}
