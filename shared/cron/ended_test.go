package cron_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"laneway/shared/cron"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/timeout"
)

func TestRuntime85_ErrorsPutAJobOffAndTheTenthSwitchesItOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Second * 7))
		hour := time.Hour
		for i, want := range []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, hour, hour, hour, hour, hour} {
			h := b.begins(b.fires(j.ID))
			b.passes(20 * time.Second) // the pause is from the end of the run
			b.ends(h, broken("auth"))
			if got := b.next(j.ID); got != want {
				t.Fatalf("after error %d: due in %v, want %v", i+1, got, want)
			}
			b.inStep(j.ID)
		}
		b.runs(b.fires(j.ID), broken("auth"))
		w := b.job(j.ID).Wire(false)
		if d := w.State.AutoDisabled; w.Enabled || d == nil || d.Reason != "consecutive-failures" || d.ConsecutiveErrors != 10 || d.AtMs != b.Clock.Now().UnixMilli() {
			t.Fatalf("after the tenth error: enabled %v, %+v", w.Enabled, d)
		}
		b.inStep(j.ID)
		if f := b.fire(j.ID, time.Time{}); f.Reason != cron.ReasonDisabled {
			t.Errorf("%+v", f)
		}
		// Switching it on again begins anew.
		yes := true
		_, err := b.jobs.Update(t.Context(), tenant, &protocol.CronUpdateParams{ID: j.ID, Patch: protocol.CronPatch{Enabled: &yes}})
		must(t, err)
		if w := b.job(j.ID).Wire(false); w.State.AutoDisabled != nil || w.State.ConsecutiveErrors != 0 || b.next(j.ID) > 7*time.Second {
			t.Errorf("on again: %+v", w.State)
		}
		b.inStep(j.ID)
	})
}

func TestRuntime85_SuccessResets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(10 * time.Second))
		for range 3 {
			b.runs(b.fires(j.ID), broken("auth"))
		}
		b.runs(b.fires(j.ID), ok())
		if w := b.job(j.ID).Wire(false); w.State.ConsecutiveErrors != 0 || w.State.LastError != "" || b.next(j.ID) != 10*time.Second {
			t.Errorf("state %+v", w.State)
		}
		b.runs(b.fires(j.ID), broken("auth"))
		if got := b.next(j.ID); got != 30*time.Second {
			t.Errorf("due in %v", got)
		}
	})
}

// The pause after an error is for jobs that come sooner.
func TestRuntime85_ALaterSlotStays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(2 * time.Hour))
		b.runs(b.fires(j.ID), broken("auth"))
		if got := b.next(j.ID); got != 2*time.Hour {
			t.Errorf("due in %v", got)
		}
	})
}

func TestTransientErrorsAreTriedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for _, class := range []string{"rate_limit", "overloaded", "network", "timeout", "server_error"} {
			j := b.add(every(time.Hour))
			first := b.Clock.Now()
			for _, want := range []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute} {
				b.runs(b.fires(j.ID), broken(class))
				if got := b.next(j.ID); got != want {
					t.Fatalf("%s: due in %v, want %v", class, got, want)
				}
			}
			b.runs(b.fires(j.ID), broken(class))
			if got := b.Clock.Now().Add(b.next(j.ID)).Sub(first); got != 2*time.Hour {
				t.Fatalf("%s: after three tries more due %v after the beginning", class, got)
			}
			b.past(j.ID, slices.Repeat([]string{"error/" + class}, 4)...)
		}
		// Only if that is sooner than the job comes by itself; then the pause counts.
		j := b.add(every(20 * time.Second))
		b.runs(b.fires(j.ID), broken("network"))
		if got := b.next(j.ID); got != 30*time.Second {
			t.Errorf("due in %v", got)
		}
	})
}

func TestJobsForOneRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		no := false
		keepIt := func(p *protocol.CronAddParams) { p.DeleteAfterRun = &no }
		soon := func() define { return at(b.Clock.Now().Add(time.Minute).Format(time.RFC3339Nano)) }

		j := b.add(soon())
		b.runs(b.fires(j.ID), ok())
		if !b.gone(j.ID) {
			t.Error("a job that is done is still there")
		}
		b.past(j.ID, "ok") // its past is not

		j = b.add(soon(), keepIt)
		b.runs(b.fires(j.ID), ok())
		if w := b.job(j.ID).Wire(false); w.Enabled || b.next(j.ID) != never {
			t.Errorf("kept: %+v", w)
		}

		j = b.add(soon())
		b.runs(b.fires(j.ID), broken("auth"))
		if w := b.job(j.ID).Wire(false); w.Enabled || w.State.AutoDisabled != nil {
			t.Errorf("after a permanent error: %+v", w)
		}

		j = b.add(soon())
		for range 3 {
			b.runs(b.fires(j.ID), broken("overloaded"))
			if !b.job(j.ID).Enabled {
				t.Fatal("off before it was tried again")
			}
		}
		b.runs(b.fires(j.ID), broken("overloaded"))
		if b.job(j.ID).Enabled {
			t.Error("tried a fifth time")
		}

		j = b.add(soon())
		b.runs(b.fires(j.ID), broken("overloaded"))
		b.runs(b.fires(j.ID), ok())
		if !b.gone(j.ID) {
			t.Error("a job whose second try went well is still there")
		}

		j = b.add(soon(), missed("skip"))
		b.Clock.Advance(time.Hour)
		if f := b.fire(j.ID, time.Time{}); f.Reason != cron.ReasonMissed {
			t.Errorf("%+v", f)
		}
		if w := b.job(j.ID).Wire(false); w.Enabled || w.State.LastRunStatus != "skipped" {
			t.Errorf("missed: %+v", w)
		}

		j = b.add(soon())
		b.Clock.Advance(30 * 24 * time.Hour)
		if f := b.fire(j.ID, time.Time{}); f.Reason != "" {
			t.Errorf("a month late: %+v", f)
		}
	})
}

// TestRuntime54_WhatAJobSaysOfATimeLimit: the texts of the rows, in the job and its history.
func TestRuntime54_WhatAJobSaysOfATimeLimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for _, row := range []struct{ name, says, want string }{
			{"deadline", "Request timed out.", "cron: job execution timed out"},
			{"setup watchdog", timeout.CronSetupText, "cron: isolated agent setup timed out before runner start"},
			{"pre-execution watchdog", timeout.CronStalledText("context"), "cron: isolated agent run stalled before execution start (last phase: context)"},
		} {
			j := b.add(every(time.Hour))
			b.runs(b.fires(j.ID), run.Outcome{Kind: run.Timeout, StopReason: "timeout", Error: row.says})
			w := b.job(j.ID).Wire(false)
			if w.State.LastError != row.want || w.State.LastErrorReason != "timeout" || w.State.ConsecutiveErrors != 1 {
				t.Errorf("%s: state %+v", row.name, w.State)
			}
			past, err := b.jobs.History(t.Context(), tenant, j.ID)
			must(t, err)
			if len(past) != 1 || past[0].Status != "error" || past[0].Error != row.want {
				t.Errorf("%s: history %+v", row.name, past)
			}
		}
	})
}

// A skipped slot ends a row of errors.
func TestASkippedSlotResetsErrors(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour), missed("skip"))
		b.runs(b.fires(j.ID), broken("auth"))
		b.Clock.Advance(90 * time.Minute)
		b.fire(j.ID, time.Time{})
		if w := b.job(j.ID).Wire(false); w.State.ConsecutiveErrors != 0 || w.State.ConsecutiveSkipped != 1 || w.State.LastRunStatus != "skipped" {
			t.Errorf("state %+v", w.State)
		}
	})
}

// A zone that a machine does not know any more.
func TestAScheduleThatCannotBeComputedSwitchesTheJobOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(expr("0 13 * * *", "Europe/Berlin"))
		b.spoil(j.ID, "Europe/Berlin", "Europe/Atlantis")
		b.due(j.ID)
		for range 2 {
			if f := b.fire(j.ID, b.Clock.Now()); f.Reason != cron.ReasonNotDue {
				t.Fatalf("%+v", f)
			}
			if got := b.next(j.ID); got != time.Minute {
				t.Fatalf("looked at again in %v", got)
			}
			b.due(j.ID)
		}
		b.fire(j.ID, b.Clock.Now())
		w := b.job(j.ID).Wire(false)
		if d := w.State.AutoDisabled; w.Enabled || d == nil || d.Reason != "schedule-errors" {
			t.Errorf("enabled %v, %+v", w.Enabled, d)
		}
		// One that is known again in time goes on, without a run of the look.
		j = b.add(expr("0 13 * * *", "Europe/Berlin"))
		b.spoil(j.ID, "Europe/Berlin", "Europe/Atlantis")
		b.due(j.ID)
		b.fire(j.ID, b.Clock.Now())
		b.spoil(j.ID, "Europe/Atlantis", "Europe/Berlin")
		b.due(j.ID)
		if f := b.fire(j.ID, b.Clock.Now()); f.Reason != cron.ReasonNotDue {
			t.Errorf("%+v", f)
		}
		if w := b.job(j.ID).Wire(false); w.State.ScheduleErrorCount != 0 || b.next(j.ID) < 20*time.Hour {
			t.Errorf("state %+v", w.State)
		}
	})
}

func TestTheHistoryIsBounded(t *testing.T) {
	t.Parallel()
	b := fast(t, func(c *cron.Config) { c.Lanes = yes{} })
	j := b.add(every(time.Minute))
	for range 2060 {
		runID := b.fires(j.ID)
		must(t, b.jobs.Ended(t.Context(), run.Status{
			Ref: run.RefOf(tenant, runID), RunID: runID, Method: "cron", State: run.Ended, EndedAt: b.Clock.Now().UnixMilli(), Outcome: &run.Outcome{Kind: run.OK},
		}))
	}
	if n := b.entries(j.ID); n > 2000+50 {
		t.Errorf("%d rows are stored", n)
	}
	if n := len(b.history(j.ID)); n != 2000 {
		t.Errorf("%d rows are shown", n)
	}
	b.Clock.Advance(7 * 24 * time.Hour)
	if n := len(b.history(j.ID)); n != 1 { // of the last, at this very time
		t.Errorf("%d rows are shown after a week", n)
	}
}

// yes is lanes that accept everything, for a test of many runs.
type yes struct{}

func (yes) Accept(_ context.Context, c lane.Call) (lane.Accepted, error) {
	return lane.Accepted{Status: c.Run}, nil
}

func (yes) StopRun(context.Context, lane.Stop) (bool, error) { return false, nil }

// An end that is told twice, or after its job was removed, changes nothing.
func TestAnEndIsToldOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour), webhook("http://127.0.0.1:1/"))
		runID := b.fires(j.ID)
		b.runs(runID, ok())
		b.timers.take()
		last := b.job(j.ID).Write
		must(t, b.jobs.Ended(t.Context(), b.Status(runID)))
		if b.job(j.ID).Write != last || len(b.timers.take()) > 0 {
			t.Error("told again")
		}
		runID = b.fires(j.ID)
		must(t, b.jobs.Remove(t.Context(), tenant, j.ID))
		b.runs(runID, ok())
		if !b.Idle() {
			t.Error("the session of a removed job is not idle")
		}
		b.past(j.ID, "ok")
		for _, st := range []run.Status{
			{RunID: "cron:x:1", Method: "agent", Outcome: &run.Outcome{}}, {RunID: "x", Method: "cron", Outcome: &run.Outcome{}}, {RunID: "cron:x:1", Method: "cron"},
		} {
			must(t, b.jobs.Ended(t.Context(), st))
		}
	})
}

// While the end cannot be written the run stays unsettled.
func TestL5_AnEndThatCannotBeWrittenKeepsTheRunUnsettled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour))
		h := b.begins(b.fires(j.ID))
		down := errors.New("down")
		tell := b.Ends.Do
		b.Ends.Do = func(run.Status) (bool, error) { return false, down }
		must(t, h.Commit(t.Context(), lanetest.Terminal(h, b.Clock.Now(), ok())))
		if err := b.Lanes.Settle(t.Context(), b.Meta(), b.Ends, "s"); !errors.Is(err, down) || len(b.Meta().Unsettled) != 1 {
			t.Fatalf("%v, unsettled %v", err, b.Meta().Unsettled)
		}
		b.past(j.ID)
		b.Ends.Do = tell
		b.Settle()
		b.past(j.ID, "ok")
		if len(b.Meta().Unsettled) > 0 {
			t.Errorf("unsettled %v", b.Meta().Unsettled)
		}
	})
}
