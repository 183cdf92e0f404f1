package cron_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/cron"
	"laneway/shared/lane/lanetest"
	"laneway/shared/protocol"
	"laneway/shared/run"
)

func TestASlotIsARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour))
		if got := b.next(j.ID); got != time.Hour {
			t.Fatalf("due in %v", got)
		}
		b.inStep(j.ID)
		runID := b.fires(j.ID)
		st := b.Status(runID)
		if st.SessionKey != "agent:main:cron:"+j.ID || st.Lane != "cron" || st.Method != "cron" || st.Input.Message != "do it" || st.Input.TimeoutMs != 3_600_000 {
			t.Errorf("run %+v", st)
		}
		if w := b.job(j.ID).Wire(false); w.State.RunningRunID != runID || b.next(j.ID) != time.Hour {
			t.Errorf("state %+v", w.State)
		}
		b.inStep(j.ID)
		b.runs(runID, ok())
		b.past(j.ID, "ok")
		if w := b.job(j.ID).Wire(false); w.State.RunningRunID != "" || w.State.LastRunStatus != "ok" || b.next(j.ID) != time.Hour {
			t.Errorf("state %+v", w.State)
		}
		if !b.Idle() {
			t.Error("the session is not idle")
		}
	})
}

// Where a job's runs are, and for how long.
func TestTargetsAndTimeouts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		second, none, large := protocol.Some(1.5), protocol.Some(0.0), protocol.Some(1e12)
		for _, c := range []struct {
			name      string
			def       define
			key       string
			timeoutMs int64
			fresh     bool
		}{
			{"an agent turn without a session is isolated, for an hour", func(*protocol.CronAddParams) {}, "", 3_600_000, true},
			{"an agent turn of a session is in it", func(p *protocol.CronAddParams) { p.SessionKey = protocol.Some("work") }, "agent:main:work", 3_600_000, false},
			{"a session by name", func(p *protocol.CronAddParams) { p.SessionTarget = "session:Daily" }, "agent:main:daily", 3_600_000, false},
			{"a session by key, of its agent", func(p *protocol.CronAddParams) { p.SessionTarget = "session:agent:other:x" }, "agent:other:x", 3_600_000, false},
			{"an event is for the main session", func(p *protocol.CronAddParams) {
				p.Payload = protocol.CronPayload{Kind: "systemEvent", Text: "do it"}
			}, "agent:main:main", 3_600_000, false},
			{"seconds", func(p *protocol.CronAddParams) { p.Payload.TimeoutSeconds = second }, "", 1500, true},
			{"0 is none", func(p *protocol.CronAddParams) { p.Payload.TimeoutSeconds = none }, "", -1, true},
			{"as is more than can be counted", func(p *protocol.CronAddParams) { p.Payload.TimeoutSeconds = large }, "", -1, true},
		} {
			j := b.add(every(time.Hour), c.def)
			st := b.Status(b.fires(j.ID))
			if c.key == "" {
				c.key = "agent:main:cron:" + j.ID
			}
			if st.SessionKey != c.key || st.Input.TimeoutMs != c.timeoutMs || (st.Input.SessionID != "") != c.fresh || st.Input.Message != "do it" {
				t.Errorf("%s: %+v", c.name, st)
			}
		}
	})
}

func TestF26_TheSameSlotThreeTimesIsOneRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour))
		slot := b.due(j.ID)
		// Together, and not by the same process.
		var wg sync.WaitGroup
		var mu sync.Mutex
		var got []cron.Fired
		for range 3 {
			wg.Go(func() {
				f, err := b.service(b.Store).Fire(t.Context(), cron.Slot{Tenant: tenant, JobID: j.ID, At: slot})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, f)
			})
		}
		wg.Wait()
		runID, first := cron.RunID(j.ID, slot), 0
		for _, f := range got {
			if f.RunID != runID {
				t.Errorf("fired %+v, want run %s", f, runID)
			}
			if !f.Repeat {
				first++
			}
		}
		if first != 1 {
			t.Errorf("%d accepted it: %+v", first, got)
		}
		b.Clock.Advance(11 * time.Second)
		if f := b.fire(j.ID, slot); f.RunID != runID || !f.Repeat {
			t.Errorf("11 s later: %+v", f)
		}
		b.runs(runID, ok())
		b.Clock.Advance(20 * time.Minute)
		if f := b.fire(j.ID, slot); f.RunID != runID || !f.Repeat {
			t.Errorf("20 min later: %+v", f)
		}
		if all := b.accepted(j.ID); len(all) != 1 || b.Meta().Seq != 1 {
			t.Errorf("accepted %v, sequence %d", all, b.Meta().Seq)
		}
		b.past(j.ID, "ok")
		if second := b.fires(j.ID); second == runID {
			t.Error("two slots, one run")
		}
	})
}

func TestF27_MissedSlotsFollowTheJobsPolicy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for _, c := range []struct {
			policy string
			late   time.Duration // of the newest of three
			runs   bool
			want   []string
		}{
			{"skip", 20 * time.Minute, false, []string{"skipped/missed", "skipped/missed", "skipped/missed"}},
			{"skip", time.Minute, true, []string{"skipped/missed", "skipped/missed"}},
			{"once", 20 * time.Minute, true, []string{"skipped/missed", "skipped/missed"}},
			{"", 20 * time.Minute, true, []string{"skipped/missed", "skipped/missed"}},
			{"within:30m", 29 * time.Minute, true, []string{"skipped/missed", "skipped/missed"}},
			{"within:30m", 31 * time.Minute, false, []string{"skipped/missed", "skipped/missed", "skipped/missed"}},
			{"within:1d", 50 * time.Minute, true, []string{"skipped/missed", "skipped/missed"}},
		} {
			j := b.add(every(time.Hour), missed(c.policy))
			slot := b.Clock.Now().Add(3 * time.Hour)
			b.Clock.Advance(3*time.Hour + c.late)
			f := b.fire(j.ID, time.Time{})
			switch {
			case c.runs && (f.RunID != cron.RunID(j.ID, slot) || f.Reason != ""):
				t.Errorf("%s, %v late: %+v, want a run of the newest slot", c.policy, c.late, f)
			case !c.runs && (f.Reason != cron.ReasonMissed || len(b.accepted(j.ID)) > 0):
				t.Errorf("%s, %v late: %+v, want none", c.policy, c.late, f)
			}
			b.past(j.ID, c.want...)
			if got := b.next(j.ID); got != time.Hour-c.late {
				t.Errorf("%s, %v late: due in %v", c.policy, c.late, got)
			}
			if c.runs {
				b.runs(f.RunID, ok())
				b.past(j.ID, append(c.want, "ok")...)
			}
		}
	})
}

func TestRuntime82_TenMissedSlotsAreOneRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Minute))
		b.Clock.Advance(10*time.Minute + 30*time.Second)
		got, err := b.jobs.Reconcile(t.Context())
		if err != nil || got.Fired != 1 {
			t.Fatalf("reconciled %+v, %v", got, err)
		}
		if all := b.accepted(j.ID); len(all) != 1 {
			t.Fatalf("accepted %v", all)
		}
		b.past(j.ID, slices.Repeat([]string{"skipped/missed"}, 9)...)
		// A week is a few rows too.
		b.runs(cron.RunID(j.ID, b.Clock.Now().Add(-30*time.Second)), ok())
		b.Clock.Advance(6 * 24 * time.Hour)
		b.fire(j.ID, time.Time{})
		past := b.history(j.ID)
		if n := len(past); n > 40 || !slices.ContainsFunc(past, func(s string) bool { return strings.HasPrefix(s, "skipped/missed x86") }) {
			t.Errorf("%d rows: %v", n, past)
		}
	})
}

func TestRuntime83_AJobThatStillRunsLeavesItsSlotOut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(10 * time.Minute))
		runID := b.fires(j.ID)
		h := b.begins(runID)
		b.passes(10 * time.Minute)
		if f := b.fire(j.ID, b.Clock.Now()); f.Reason != cron.ReasonRunning || f.RunID != runID || f.Age != 10*time.Minute {
			t.Errorf("next slot: %+v", f)
		}
		if f, err := b.jobs.Run(t.Context(), tenant, j.ID, ""); err != nil || f.Reason != cron.ReasonRunning || f.RunID != runID || f.Age != 10*time.Minute {
			t.Errorf("out of turn: %+v, %v", f, err)
		}
		b.passes(15 * time.Minute)
		b.ends(h, ok())
		if all := b.accepted(j.ID); len(all) != 1 || b.Meta().Seq != 1 {
			t.Errorf("accepted %v", all)
		}
		b.past(j.ID, "ok", "skipped/already-running x2")
		if got := b.next(j.ID); got != 5*time.Minute {
			t.Errorf("due in %v", got)
		}
		b.inStep(j.ID)
		b.runs(b.fires(j.ID), ok())
	})
}

func TestF28_ADeadRunDoesNotLockItsJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(10 * time.Minute))
		dead := b.fires(j.ID)
		b.begins(dead).Close() // its process is gone, and the lease with it
		b.Clock.Advance(5 * time.Minute)
		if f, err := b.jobs.Run(t.Context(), tenant, j.ID, "due"); err != nil || f.Reason != cron.ReasonNotDue {
			t.Errorf("%+v, %v", f, err)
		}
		if w := b.job(j.ID).Wire(false); w.State.RunningRunID != dead {
			t.Errorf("owner %+v", w.State)
		}
		next := b.fires(j.ID)
		// Whoever looks at the session ends the dead run and starts the next.
		h := b.Resume()
		if m := h.Meta(); !m.Marked() {
			t.Fatal("the dead run is to go on")
		}
		b.ends(h, run.Outcome{Kind: run.Aborted, StopReason: "superseded"})
		b.past(j.ID, "error/interrupted")
		b.runs(next, ok())
		b.past(j.ID, "error/interrupted", "ok")
		if w := b.job(j.ID).Wire(false); w.State.RunningRunID != "" || w.State.LastRunStatus != "ok" || w.State.ConsecutiveErrors != 0 {
			t.Errorf("state %+v", w.State)
		}
	})
}

// A run between two attempts has no live claim either, and is not dead.
func TestF28_ARunThatHasNoClaimForAMomentIsNotDead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(10 * time.Minute))
		runID := b.fires(j.ID)
		slot := b.due(j.ID)
		if f := b.fire(j.ID, slot); f.Reason != cron.ReasonRunning || f.RunID != runID {
			t.Errorf("waiting in its lane: %+v", f)
		}
		h := b.begins(runID)
		must(t, h.Release(t.Context()))
		b.Clock.Advance(10 * time.Minute)
		if f := b.fire(j.ID, b.Clock.Now()); f.Reason != cron.ReasonRunning || f.RunID != runID {
			t.Errorf("between two attempts: %+v", f)
		}
	})
}

// An operator who stops a run has the job idle again, and no error on its record.
func TestF28_StoppingARunReturnsTheJobToIdle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(10 * time.Minute))
		runID := b.fires(j.ID)
		b.runs(runID, run.Outcome{Kind: run.Aborted, StopReason: "rpc"})
		w := b.job(j.ID).Wire(false)
		if w.State.RunningRunID != "" || w.State.ConsecutiveErrors != 0 || b.next(j.ID) != 10*time.Minute {
			t.Errorf("state %+v", w.State)
		}
		b.past(j.ID, "error/aborted")
		if f, err := b.jobs.Run(t.Context(), tenant, j.ID, ""); err != nil || f.Reason != "" {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

// A run whose record is gone is told as interrupted, never as done.
func TestF27_ARunThatVanishedIsInterrupted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(10 * time.Minute))
		runID := b.fires(j.ID)
		b.drop(runID)
		b.fires(j.ID)
		b.past(j.ID, "error/interrupted")
	})
}

// An end that nobody told is found by whoever looks at the job next.
func TestTheNextSlotTellsAnEndThatNobodyTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(10 * time.Minute))
		runID := b.fires(j.ID)
		h := b.begins(runID)
		must(t, h.Commit(t.Context(), lanetest.Terminal(h, b.Clock.Now(), ok())))
		b.Clock.Advance(10 * time.Minute)
		next := b.fire(j.ID, b.Clock.Now())
		if next.Reason != "" || next.RunID == runID {
			t.Fatalf("next slot %+v", next)
		}
		b.past(j.ID, "ok")
		b.Settle() // tells it again
		b.past(j.ID, "ok")
		if w := b.job(j.ID).Wire(false); w.State.RunningRunID != next.RunID {
			t.Errorf("state %+v", w.State)
		}
	})
}

func TestRuntime86_IsolatedRunsHaveSessionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour))
		first := b.fires(j.ID)
		b.runs(first, ok())
		second := b.fires(j.ID)
		a, z := b.Status(first), b.Status(second)
		if a.Input.SessionID == "" || a.Input.SessionID == z.Input.SessionID || a.SessionKey != z.SessionKey {
			t.Errorf("sessions %q and %q of %s and %s", a.Input.SessionID, z.Input.SessionID, a.SessionKey, z.SessionKey)
		}
	})
}

func TestRunOutOfTurn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour))
		b.Clock.Advance(20 * time.Minute)
		f, err := b.jobs.Run(t.Context(), tenant, j.ID, "")
		if err != nil || f.RunID != cron.RunID(j.ID, b.Clock.Now()) || f.Reason != "" {
			t.Fatalf("%+v, %v", f, err)
		}
		b.runs(f.RunID, ok())
		if got := b.next(j.ID); got != 40*time.Minute {
			t.Errorf("a run out of turn moved the next slot to %v", got)
		}
		b.inStep(j.ID)
		no := false
		_, err = b.jobs.Update(t.Context(), tenant, &protocol.CronUpdateParams{ID: j.ID, Patch: protocol.CronPatch{Enabled: &no}})
		must(t, err)
		for mode, want := range map[string]string{"if-enabled": cron.ReasonDisabled, "due": cron.ReasonDisabled} {
			if f, err := b.jobs.Run(t.Context(), tenant, j.ID, mode); err != nil || f.Reason != want {
				t.Errorf("%s: %+v, %v", mode, f, err)
			}
		}
		b.Clock.Advance(time.Minute)
		if f, err = b.jobs.Run(t.Context(), tenant, j.ID, ""); err != nil || f.Reason != "" {
			t.Errorf("by force: %+v, %v", f, err)
		}
		b.runs(f.RunID, broken("auth"))
		if b.next(j.ID) != never {
			t.Error("it is due though it is off")
		}
		if _, err := b.jobs.Run(t.Context(), tenant, "no-such-job", ""); !errors.Is(err, cron.ErrUnknown) {
			t.Errorf("unknown job: %v", err)
		}
		if _, err := b.jobs.Run(t.Context(), "other", j.ID, ""); !errors.Is(err, cron.ErrUnknown) {
			t.Errorf("job of another tenant: %v", err)
		}
	})
}

// A job of one run that is run by hand before its time runs at its time too.
func TestAOneShotRunByHandKeepsItsTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(at(b.Clock.Now().Add(time.Hour).Format(time.RFC3339)))
		b.Clock.Advance(59 * time.Minute)
		f, err := b.jobs.Run(t.Context(), tenant, j.ID, "")
		must(t, err)
		h := b.begins(f.RunID)
		b.passes(time.Minute)
		if f := b.fire(j.ID, b.Clock.Now()); f.Reason != cron.ReasonRunning {
			t.Errorf("at its time %+v", f)
		}
		b.passes(time.Minute)
		b.ends(h, ok())
		if b.gone(j.ID) {
			t.Fatal("it is gone before its run")
		}
		b.Clock.Advance(max(0, b.next(j.ID)))
		if f = b.fire(j.ID, time.Time{}); f.Reason != "" {
			t.Fatalf("after the run by hand %+v", f)
		}
		b.runs(f.RunID, ok())
		if !b.gone(j.ID) {
			t.Errorf("it is still there: %+v", b.job(j.ID))
		}
	})
}

// What was decided is decided, whatever events come: none of them makes a run.
func TestEventsThatAreOldOrOfAnotherSchedule(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(expr("0 13 * * *", "UTC"))
		old := b.Clock.Now().Add(time.Hour)
		_, err := b.jobs.Update(t.Context(), tenant, &protocol.CronUpdateParams{ID: j.ID, Patch: protocol.CronPatch{
			Schedule: &protocol.CronSchedule{Kind: "cron", Expr: "0 15 * * *", TZ: "UTC"},
		}})
		must(t, err)
		b.inStep(j.ID)
		b.Clock.Advance(time.Hour)
		for _, slot := range []time.Time{old, {}, old.Add(-24 * time.Hour)} {
			if f := b.fire(j.ID, slot); f.Reason != cron.ReasonNotDue {
				t.Errorf("event of %s: %+v", slot, f)
			}
		}
		if len(b.accepted(j.ID)) > 0 {
			t.Error("it ran")
		}
		// The scheduler's clock may be ahead of ours.
		b.Clock.Advance(2*time.Hour - 900*time.Millisecond)
		if f := b.fire(j.ID, b.Clock.Now().Add(900*time.Millisecond)); f.Reason != "" {
			t.Errorf("a little early: %+v", f)
		}
		must(t, b.jobs.Remove(t.Context(), tenant, j.ID))
		if _, err := b.jobs.Fire(t.Context(), cron.Slot{Tenant: tenant, JobID: j.ID, At: b.Clock.Now()}); !errors.Is(err, cron.ErrUnknown) {
			t.Errorf("removed: %v", err)
		}
	})
}

func TestRunIDs(t *testing.T) {
	t.Parallel()
	slot := time.UnixMilli(1798135200000)
	if got := cron.RunID("a:b", slot); got != "cron:a:b:1798135200000" {
		t.Error(got)
	}
	if job, at, ok := cron.JobOf("cron:a:b:1798135200000"); job != "a:b" || !at.Equal(slot) || !ok {
		t.Error(job, at, ok)
	}
	for _, bad := range []string{"", "cron:", "cron:a", "cron::1", "x:a:1", "cron:a:b"} {
		if job, _, ok := cron.JobOf(bad); ok {
			t.Errorf("%q is of job %q", bad, job)
		}
	}
}
