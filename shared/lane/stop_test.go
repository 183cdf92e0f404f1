package lane_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

func stopRun(t *testing.T, w *lanetest.World, runID string) bool {
	t.Helper()
	ok, err := w.Lanes.StopRun(t.Context(), lane.Stop{Ref: w.Ref, RunID: runID, Reason: "rpc"})
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func stopAll(t *testing.T, w *lanetest.World) []string {
	t.Helper()
	hit, err := w.Lanes.StopAll(t.Context(), lane.Stop{Ref: w.Ref, Reason: "stop"})
	if err != nil {
		t.Fatal(err)
	}
	return hit
}

func wantAborted(t *testing.T, w *lanetest.World, runID, reason string) {
	t.Helper()
	st := w.Status(runID)
	if !st.Done() || st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != reason || st.State != run.Ended {
		t.Errorf("%s: %s, %+v; want aborted by %s", runID, st.State, st.Outcome, reason)
	}
	if st.EndedAt == 0 || time.Unix(st.ExpiresAt, 0).Before(time.UnixMilli(st.EndedAt).Add(24*time.Hour)) {
		t.Errorf("%s: ended at %d, kept until %d", runID, st.EndedAt, st.ExpiresAt)
	}
}

func TestC7_AWaitingRunIsEndedByAnyone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Accept("r2")
		h := w.Start()
		w.Queue.Take()
		if !stopRun(t, w.Process(nil), "r2") {
			t.Fatal("not stopped")
		}
		wantAborted(t, w, "r2", "rpc")
		if m := w.Meta(); len(m.Pending) != 0 || !slices.Equal(m.Unsettled, []string{"r2"}) || m.Active != "r1" || m.Cancel != "" {
			t.Fatalf("session %+v", m)
		}
		w.Queue.One(t)
		w.Settle() // beside the live claim
		if got := w.Ends.Told(); !slices.Equal(got, []string{"r2"}) {
			t.Fatalf("told %v", got)
		}
		if stopRun(t, w, "r2") {
			t.Error("stopped twice")
		}
		w.End(h, run.OK)
		w.Settle()
		if !w.Idle() {
			t.Fatalf("left: %+v", w.Meta())
		}
	})
}

// TestC7_WhatWaitsIsSettledByItsOwnLane: the lane of the run in front of it may have no
// runner to spare before that run ends.
func TestC7_WhatWaitsIsSettledByItsOwnLane(t *testing.T) {
	t.Parallel()
	for reason, stop := range map[string]func(*testing.T, *lanetest.World){
		"rpc":  func(t *testing.T, w *lanetest.World) { stopRun(t, w, "r2") },
		"stop": func(t *testing.T, w *lanetest.World) { stopAll(t, w) },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				c := w.Call("r1")
				c.Run.Lane = "cron"
				if _, err := w.Lanes.Accept(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				w.Start()
				w.Accept("r2")
				w.Queue.Take()
				stop(t, w)
				if got := w.Queue.One(t); got.Queue != queue.Main {
					t.Errorf("woken in lane %s", got.Queue)
				}
				w.Settle()
				wantAborted(t, w, "r2", reason)
			})
		})
	}
}

func TestC7_OnlyOneOfStopAndStartHasARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for n := range 20 {
			id := fmt.Sprint("r", n)
			w.Accept(id)
			var wg sync.WaitGroup
			var h *claim.Holder
			var stopped bool
			m := w.Meta()
			p, _ := m.Lowest()
			wg.Go(func() { h, _ = w.Claims.Start(t.Context(), m, p) })
			wg.Go(func() { stopped = stopRun(t, w, id) })
			wg.Wait()
			switch {
			case h == nil && stopped:
				wantAborted(t, w, id, "rpc")
			case h != nil && stopped:
				if got := w.Meta(); got.Cancel != id {
					t.Fatalf("started and stopped, but not marked: %+v", got)
				}
			default:
				t.Fatalf("started %v, stopped %v: the stop found nothing", h != nil, stopped)
			}
			if h != nil {
				w.End(h, run.Aborted)
			}
			w.Settle()
		}
	})
}

func TestC7_ACancelMarkNamesItsRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Accept("r2")
		h := w.Start()
		w.Queue.Take()
		if !stopRun(t, w, "r1") {
			t.Fatal("not stopped")
		}
		if m := w.Meta(); m.Cancel != "r1" || m.CancelWhy != "rpc" || !m.Marked() {
			t.Fatalf("session %+v", m)
		}
		w.Queue.None(t) // its holder looks by itself
		w.End(h, run.Aborted)
		w.Settle()
		if m := w.Meta(); m.Cancel != "" || m.CancelWhy != "" {
			t.Fatalf("the terminal left the mark: %+v", m)
		}
		h = w.Start()
		if m := w.Meta(); m.Active != "r2" || m.Marked() {
			t.Fatalf("the next run is marked: %+v", m)
		}
		if stopRun(t, w, "r1") {
			t.Error("a run that has ended was stopped")
		}
		if m := w.Meta(); m.Marked() {
			t.Errorf("and the one behind it is marked: %+v", m)
		}
		w.End(h, run.OK)
	})
}

// Between the stop's reading and its mark the run goes to sleep: nobody would see the
// mark. What counts is what the mark met.
func TestC7_AMarkOnARunThatJustFellAsleepWakesIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		w.Queue.Take()
		slept := false
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops != nil && !slept {
				slept = true
				sleep(t, w, h, time.Hour)
			}
			return faulty.None
		}}))
		if !stopRun(t, p, "r1") || !slept {
			t.Fatal("not stopped")
		}
		w.Queue.One(t)
		if d := lane.Decide(w.Meta(), "main", w.Clock.Now(), w.Times); d.Do != lane.Resume {
			t.Fatalf("the wake-up means %+v", d)
		}
	})
}

// sleep commits what puts a run to sleep.
func sleep(t *testing.T, w *lanetest.World, h *claim.Holder, d time.Duration) {
	t.Helper()
	err := h.Commit(t.Context(), claim.Tx{
		Release: true, If: table.Lacks(table.P(session.AttrCancel)),
		Set: []table.SetOp{{Path: table.P(session.AttrWake), Value: w.Clock.Now().Add(d).UnixMilli()}},
	})
	if err != nil {
		t.Error(err)
	}
}

func TestC7_AStopOfARunThatNobodyHoldsWakesIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Frozen().Start()
		w.Queue.Take()
		w.Expire()
		if !stopRun(t, w, "r1") {
			t.Fatal("not stopped")
		}
		w.Queue.One(t)
	})
}

func TestC7_ASessionWideStopIsOneNumberAndAWakeUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for _, id := range []string{"r1", "r2", "r3"} {
			w.Accept(id)
		}
		h := w.Start()
		w.Queue.Take()
		hit := stopAll(t, w)
		if !slices.Equal(hit, []string{"r2", "r3", "r1"}) {
			t.Errorf("hit %v, want those that wait first", hit)
		}
		m := w.Meta()
		if m.Cutoff != 3 || m.CutWhy != "stop" || !m.Marked() || len(m.Pending) != 2 || len(m.Unsettled) != 0 {
			t.Fatalf("session %+v", m)
		}
		w.Queue.One(t)
		w.Accept("r4") // after the stop: not covered
		w.Queue.Take()
		if again := stopRunsOf(w); len(again) != 0 {
			t.Errorf("runs below the cutoff can be started: %v", again)
		}

		w.Settle() // whoever reads them moves them
		wantAborted(t, w, "r2", "stop")
		wantAborted(t, w, "r3", "stop")
		if got := w.Ends.Told(); !slices.Equal(got, []string{"r2", "r3"}) {
			t.Errorf("told %v", got)
		}
		w.End(h, run.Aborted)
		w.Settle()
		if p, ok := lowest(w); !ok || p.Run != "r4" {
			t.Errorf("next is %+v", p)
		}
		if m := w.Meta(); m.Marked() {
			t.Error("still marked")
		}
		if len(stopAll(t, w)) != 1 {
			t.Error("a second stop covers what came since")
		}
	})
}

func lowest(w *lanetest.World) (session.Pending, bool) {
	m := w.Meta()
	return m.Lowest()
}

// stopRunsOf lists pending runs at or below the cutoff that could be claimed.
func stopRunsOf(w *lanetest.World) []string {
	m := w.Meta()
	var bad []string
	for _, p := range m.Cut() {
		h, err := w.Claims.Start(w.Ctx(), m, p)
		if err == nil {
			h.Close()
			bad = append(bad, p.Run)
		}
	}
	return bad
}

func TestC7_AStopOfNothingChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		if hit := stopAll(t, w); len(hit) != 0 {
			t.Errorf("hit %v", hit)
		}
		if stopRun(t, w, "nobody") {
			t.Error("stopped a run that nobody accepted")
		}
		if m := w.Meta(); m.Exists() {
			t.Errorf("a session was made: %+v", m)
		}
		w.Queue.None(t)
	})
}

func TestC7_InterruptEndsWhatItOvertakes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Accept("r2")
		h := w.Start()
		w.Queue.Take()
		c := w.Call("r3")
		c.Interrupt = true
		if _, err := w.Lanes.Accept(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		m := w.Meta()
		if m.Cutoff != 2 || m.CutWhy != run.StopSuperseded || !m.Marked() {
			t.Fatalf("session %+v", m)
		}
		if p, _ := m.Lowest(); p.Run != "r3" {
			t.Fatalf("next is %+v", p)
		}
		w.End(h, run.Aborted)
		w.Settle()
		wantAborted(t, w, "r2", run.StopSuperseded)
		if h = w.Start(); h.Meta().Active != "r3" {
			t.Fatalf("started %s", h.Meta().Active)
		}
		w.End(h, run.OK)
		w.Settle()
		if !w.Idle() {
			t.Fatal("not idle")
		}
	})
}

func TestC5_ALostAnswerOfAStopIsSettled(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(w *lanetest.World){
		"of a run that waits": func(*lanetest.World) {},
		"of the active run":   func(w *lanetest.World) { w.Start() },
	} {
		for what, fault := range map[string]faulty.Fault{"answer lost": faulty.LostAnswer, "request lost": faulty.LostRequest} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				each(t, func(t *testing.T, w *lanetest.World) {
					w.Accept("r1")
					setup(w)
					w.Queue.Take()
					n := 0
					p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
						if c.Ops == nil {
							return faulty.None
						}
						if n++; n == 1 {
							return fault
						}
						return faulty.None
					}}))
					if !stopRun(t, p, "r1") {
						t.Fatal("its caller hears that nothing was stopped")
					}
					if m := w.Meta(); m.Active == "" {
						wantAborted(t, w, "r1", "rpc")
						w.Queue.One(t)
					} else if m.Cancel != "r1" {
						t.Fatalf("session %+v", m)
					}
				})
			})
		}
	}
}

func TestC5_ALostAnswerOfASessionWideStopIsSettled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Queue.Take()
		n := 0
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops == nil {
				return faulty.None
			}
			switch n++; n {
			case 1:
				return faulty.LostAnswer
			case 2: // before it is sent again, somebody else's message comes in
				w.Accept("r2")
				w.Queue.Take()
			}
			return faulty.None
		}}))
		if hit := stopAll(t, p); !slices.Equal(hit, []string{"r1"}) {
			t.Fatalf("hit %v", hit)
		}
		w.Queue.One(t)
		w.Settle()
		wantAborted(t, w, "r1", "stop")
		if p, ok := lowest(w); !ok || p.Run != "r2" {
			t.Errorf("what came after the stop: %+v, %v", p, ok)
		}
	})
}

// A state that the rules don't lead to is told, not turned round for ever.
func TestC7_ADamagedSessionIsAnErrorNotALoop(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		stopAll(t, w)
		w.Queue.Take()
		if _, err := w.Store.Write(t.Context(), table.Op{Kind: table.Delete, Key: run.RefOf(w.Ref.Tenant, "r1").StatusKey()}); err != nil {
			t.Fatal(err)
		}
		err := w.Lanes.Settle(t.Context(), w.Meta(), w.Ends, "s")
		if err == nil || errors.Is(err, table.ErrCondition) {
			t.Fatalf("got %v", err)
		}
		w.Queue.None(t)
	})
}

// A run that is to end already takes nothing more, but what waits in its mailbox goes
// back in line with its end: a session-wide stop covers that too.
func TestC7_ASessionWideStopCoversTheMailOfARunThatIsToEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Start()
		if !steer(t, w, "s1") {
			t.Fatal("not steered")
		}
		if ok, err := w.Lanes.StopRun(t.Context(), lane.Stop{Ref: w.Ref, RunID: "r1", Reason: "rpc"}); err != nil || !ok {
			t.Fatalf("stopped %v, %v", ok, err)
		}
		hit, err := w.Lanes.StopAll(t.Context(), lane.Stop{Ref: w.Ref, Reason: "stop"})
		if err != nil || len(hit) != 1 || hit[0] != "s1" {
			t.Errorf("hit %v, %v", hit, err)
		}
		if m := w.Meta(); m.Cutoff != 2 {
			t.Errorf("cutoff %d, want that of the steered message", m.Cutoff)
		}
	})
}
