package cron_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"laneway/shared/cron"
	"laneway/shared/protocol"
)

// What a job cannot be, and which member it is that says so.
func TestJobsThatCannotBe(t *testing.T) {
	t.Parallel()
	b := fast(t)
	turn := func(p *protocol.CronAddParams) {}
	event := func(p *protocol.CronAddParams) {
		p.Payload = protocol.CronPayload{Kind: "systemEvent", Text: "wake up"}
	}
	to := func(target string) define { return func(p *protocol.CronAddParams) { p.SessionTarget = target } }
	agent := func(id string) define {
		return func(p *protocol.CronAddParams) { p.AgentID = protocol.Some(id) }
	}
	delivery := func(d protocol.CronDelivery) define {
		return func(p *protocol.CronAddParams) { p.Delivery = &d }
	}
	for _, c := range []struct {
		name, field string
		defs        []define
	}{
		{"nonsense for an expression", "schedule.expr", []define{expr("nonsense", "")}},
		{"an expression that never comes", "schedule.expr", []define{expr("0 0 30 2 *", "")}},
		{"a zone that is none", "schedule.tz", []define{expr("0 9 * * *", "Europe/Atlantis")}},
		{"the machine's zone by its inner name", "schedule.tz", []define{expr("0 9 * * *", "Local")}},
		{"less than a second", "schedule.everyMs", []define{every(999 * time.Millisecond)}},
		{"more than can be computed", "schedule.everyMs", []define{every(200 * 365 * 24 * time.Hour)}},
		{"a time that is none", "schedule.at", []define{at("tomorrow")}},
		{"a time that was", "schedule.at", []define{at("2026-03-01T11:59")}},
		{"a blank name", "name", []define{every(time.Hour), func(p *protocol.CronAddParams) { p.Name = " \t" }}},
		{"a policy that is none", "missed", []define{every(time.Hour), missed("sometimes")}},
		{"a policy without a duration", "missed", []define{every(time.Hour), missed("within:")}},
		{"a policy of no time", "missed", []define{every(time.Hour), missed("within:0s")}},
		{"a turn in the main session", "payload.kind", []define{every(time.Hour), turn, to("main")}},
		{"an event elsewhere", "payload.kind", []define{every(time.Hour), event, to("isolated")}},
		{"the main session of another agent", "agentId", []define{every(time.Hour), event, agent("other")}},
		{"an agent id that is none", "agentId", []define{every(time.Hour), agent("No Way")}},
		{"a session that is none", "sessionTarget", []define{every(time.Hour), to("session:agent::x")}},
		{"a session of another agent", "sessionTarget", []define{every(time.Hour), agent("main"), to("session:agent:other:x")}},
		{"a blank message", "payload.message", []define{every(time.Hour), func(p *protocol.CronAddParams) { p.Payload.Message = "  " }}},
		{"tools of its own", "payload.toolsAllow", []define{every(time.Hour), func(p *protocol.CronAddParams) { p.Payload.ToolsAllow = []string{"read"} }}},
		{"a channel", "delivery.channel", []define{every(time.Hour), delivery(protocol.CronDelivery{Mode: "announce", Channel: protocol.Some("telegram")})}},
		{"an announcement from the main session", "delivery.mode", []define{every(time.Hour), event, delivery(protocol.CronDelivery{Mode: "announce"})}},
		{"a webhook to nowhere", "delivery.to", []define{every(time.Hour), webhook("https://")}},
		{"a webhook by other means", "delivery.to", []define{every(time.Hour), webhook("ftp://example.com/x")}},
		{"another destination", "delivery.failureDestination", []define{every(time.Hour), delivery(protocol.CronDelivery{Mode: "none", FailureDestination: json.RawMessage(`{"to":"x"}`)})}},
		{"alerts", "failureAlert", []define{every(time.Hour), func(p *protocol.CronAddParams) { p.FailureAlert = &protocol.CronFailureAlert{} }}},
	} {
		_, err := b.jobs.Add(t.Context(), tenant, params(c.defs...))
		var f *cron.FieldError
		if !errors.As(err, &f) || f.Field != c.field || f.Text == "" {
			t.Errorf("%s: %v, want a fault of %s", c.name, err, c.field)
		}
	}
	if all, err := b.jobs.List(t.Context(), tenant); err != nil || len(all) > 0 {
		t.Errorf("what was refused is there: %v, %v", all, err)
	}
}

func TestWhatAJobIsThatDoesNotSay(t *testing.T) {
	t.Parallel()
	b := fast(t)
	w := b.add(every(time.Hour)).Wire(false)
	if !w.Enabled || w.SessionTarget != "isolated" || w.WakeMode != "now" || w.Missed != "once" || w.Delivery.Mode != "announce" || w.DeleteAfterRun || *w.Schedule.AnchorMs != b.Clock.Now().UnixMilli() {
		t.Errorf("agent turn: %+v", w)
	}
	w = b.add(at("2026-12-24T18:00"), func(p *protocol.CronAddParams) {
		p.Payload = protocol.CronPayload{Kind: "systemEvent", Text: "x"}
	}).Wire(false)
	if w.SessionTarget != "main" || w.Delivery.Mode != "none" || !w.DeleteAfterRun {
		t.Errorf("event: %+v", w)
	}
	off := false
	w = b.add(every(time.Hour), func(p *protocol.CronAddParams) { p.Enabled = &off }).Wire(false)
	if w.Enabled || w.State.NextRunAtMs != 0 {
		t.Errorf("off: %+v", w)
	}
	b.inStepGone(w.ID)
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour))
		update := func(p protocol.CronPatch) (*cron.Job, error) {
			return b.jobs.Update(t.Context(), tenant, &protocol.CronUpdateParams{ID: j.ID, Patch: p})
		}
		b.Clock.Advance(20 * time.Minute)
		// A name, a text or the same schedule moves nothing.
		hour := int64(3_600_000)
		got, err := update(protocol.CronPatch{
			Name: "other", Payload: &protocol.CronPayload{Kind: "agentTurn", Message: "do that"},
			Schedule: &protocol.CronSchedule{Kind: "every", EveryMs: &hour},
		})
		must(t, err)
		w := got.Wire(false)
		if w.Name != "other" || w.Payload.Message != "do that" || w.ConfigRevision != "2" || w.UpdatedAtMs != b.Clock.Now().UnixMilli() || b.next(j.ID) != 40*time.Minute {
			t.Errorf("changed: %+v", w)
		}
		b.inStep(j.ID)
		// Another schedule does.
		half := hour / 2
		_, err = update(protocol.CronPatch{Schedule: &protocol.CronSchedule{Kind: "every", EveryMs: &half}})
		must(t, err)
		if got := b.next(j.ID); got != 30*time.Minute {
			t.Errorf("due in %v", got)
		}
		b.inStep(j.ID)
		// Off, and on again.
		no, yes := false, true
		_, err = update(protocol.CronPatch{Enabled: &no})
		must(t, err)
		b.inStep(j.ID)
		b.Clock.Advance(3 * time.Hour)
		_, err = update(protocol.CronPatch{Enabled: &yes})
		must(t, err)
		if got := b.next(j.ID); got != 30*time.Minute || len(b.history(j.ID)) > 0 {
			t.Errorf("on again: due in %v, history %v", got, b.history(j.ID))
		}
		b.inStep(j.ID)
		// What cannot be changes nothing.
		var f *cron.FieldError
		if _, err := update(protocol.CronPatch{Missed: protocol.Some("x")}); !errors.As(err, &f) || b.job(j.ID).Missed != "once" {
			t.Errorf("%v", err)
		}
		_, err = b.jobs.Update(t.Context(), tenant, &protocol.CronUpdateParams{ID: j.ID, ExpectedConfigRevision: "2", Patch: protocol.CronPatch{Name: "x"}})
		if !errors.Is(err, cron.ErrChanged) {
			t.Errorf("an old revision: %v", err)
		}
		for _, id := range []string{"no-such-job", "", strings.Repeat("x", 5000)} {
			if _, err := b.jobs.Update(t.Context(), tenant, &protocol.CronUpdateParams{ID: id}); !errors.Is(err, cron.ErrUnknown) {
				t.Errorf("%.20q: %v", id, err)
			}
		}
	})
}

func TestADeclaredJobIsOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		declared := func(p *protocol.CronAddParams) { p.DeclarationKey = "backup" }
		j := b.add(every(time.Hour), declared)
		b.runs(b.fires(j.ID), ok())
		again := b.add(every(time.Hour), declared)
		if w := again.Wire(false); again.ID != j.ID || w.State.LastRunStatus != "ok" || b.next(j.ID) != time.Hour {
			t.Errorf("%+v", w)
		}
		if other := b.add(every(2*time.Hour), declared); other.ID != j.ID || b.next(j.ID) != 2*time.Hour {
			t.Errorf("due in %v", b.next(j.ID))
		}
		b.inStep(j.ID)
		all, err := b.jobs.List(t.Context(), tenant)
		if err != nil || len(all) != 1 {
			t.Errorf("%d jobs, %v", len(all), err)
		}
	})
}

func TestK2_JobsAreTheirTenants(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		j := b.add(every(time.Hour))
		if _, err := b.jobs.Get(t.Context(), "other", j.ID); !errors.Is(err, cron.ErrUnknown) {
			t.Errorf("get: %v", err)
		}
		if err := b.jobs.Remove(t.Context(), "other", j.ID); !errors.Is(err, cron.ErrUnknown) {
			t.Errorf("remove: %v", err)
		}
		if all, err := b.jobs.List(t.Context(), "other"); err != nil || len(all) > 0 {
			t.Errorf("list: %v, %v", all, err)
		}
		must(t, b.jobs.Remove(t.Context(), tenant, j.ID))
		b.inStepGone(j.ID)
		if all, err := b.jobs.List(t.Context(), tenant); err != nil || len(all) > 0 {
			t.Errorf("list: %v, %v", all, err)
		}
	})
}

// A schedule that could not be put is put later, and a slot whose event never comes is
// fired by whoever reconciles.
func TestReconcile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.sched.breaks(errors.New("throttled"))
		j := b.add(every(time.Hour))
		if got := b.sched.ahead(b.Clock.Now()); len(got) > 0 {
			t.Fatalf("schedules at %v", got)
		}
		if got, err := b.jobs.Reconcile(t.Context()); err == nil || got.Armed > 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		b.sched.breaks(nil)
		if got, err := b.jobs.Reconcile(t.Context()); err != nil || got != (cron.Reconciled{Armed: 1}) {
			t.Fatalf("%+v, %v", got, err)
		}
		b.inStep(j.ID)
		if got, err := b.jobs.Reconcile(t.Context()); err != nil || got != (cron.Reconciled{}) {
			t.Fatalf("again %+v, %v", got, err)
		}
		slot := b.due(j.ID)
		b.Clock.Advance(time.Minute)
		if got, err := b.jobs.Reconcile(t.Context()); err != nil || got.Fired > 0 {
			t.Fatalf("while its event may still come: %+v, %v", got, err)
		}
		b.Clock.Advance(time.Minute)
		if got, err := b.jobs.Reconcile(t.Context()); err != nil || got.Fired != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		b.runs(cron.RunID(j.ID, slot), ok())
		b.past(j.ID, "ok")
		// A job that went before its schedule was put is no matter.
		b.sched.breaks(errors.New("throttled"))
		other := b.add(every(time.Hour))
		must(t, b.jobs.Remove(t.Context(), tenant, other.ID))
		b.sched.breaks(nil)
		if _, err := b.jobs.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := b.jobs.Reconcile(t.Context()); err != nil || got != (cron.Reconciled{}) {
			t.Fatalf("at last %+v, %v", got, err)
		}
	})
}

func TestTooManyJobs(t *testing.T) {
	t.Parallel()
	b := fast(t)
	for range cron.MaxJobs {
		b.add(every(time.Hour))
	}
	if _, err := b.jobs.Add(t.Context(), tenant, params(every(time.Hour))); !errors.Is(err, cron.ErrTooMany) {
		t.Errorf("%v", err)
	}
}
