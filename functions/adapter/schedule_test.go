package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"laneway/functions/adapter"
	"laneway/shared/clock/clocktest"
	"laneway/shared/cron"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/wiring"
)

// fired keeps the slots that it is asked to fire.
type fired struct {
	slots []cron.Slot
	err   error
}

func (f *fired) Fire(_ context.Context, slot cron.Slot) (cron.Fired, error) {
	f.slots = append(f.slots, slot)
	return cron.Fired{RunID: "r"}, f.err
}

// raw is a sample as a function gets it.
func raw(t *testing.T, file string) json.RawMessage {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, file))
	must(t, err)
	return b
}

// TestF26_TheSlotIsTheSchedulesTime: where the endpoint fills it in; else the job's
// schedule says which it is.
func TestF26_TheSlotIsTheSchedulesTime(t *testing.T) {
	t.Parallel()
	event := func(slot string) json.RawMessage {
		return json.RawMessage(`{"tenant":"acme","jobId":"j","slot":"` + slot + `","executionId":"e","attempt":"1"}`)
	}
	for _, c := range []struct {
		slot string
		want time.Time
	}{
		{"2026-12-24T18:00:00Z", time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)},
		{"2026-12-24T18:00:00.250Z", time.Date(2026, 12, 24, 18, 0, 0, 250e6, time.UTC)},
		{"<aws.scheduler.scheduled-time>", time.Time{}},
	} {
		f := &fired{}
		must(t, (&adapter.Schedule{Jobs: f, Log: quiet}).Handle(t.Context(), event(c.slot)))
		if len(f.slots) != 1 || f.slots[0].Tenant != "acme" || f.slots[0].JobID != "j" || !f.slots[0].At.Equal(c.want) {
			t.Errorf("%s: %+v", c.slot, f.slots)
		}
	}
	for _, bad := range []json.RawMessage{
		event(""), event("tomorrow"), json.RawMessage(`{"tenant":"","jobId":"j","slot":"<x>"}`), json.RawMessage(`{"tenant":"acme","slot":"<x>"}`),
		json.RawMessage(`{"tenant":"a#J#b","jobId":"j","slot":"<x>"}`), json.RawMessage(`{"tenant":"acme","jobId":"j","slot":"<x>","more":1}`), json.RawMessage(`[]`),
	} {
		f := &fired{}
		if err := (&adapter.Schedule{Jobs: f, Log: quiet}).Handle(t.Context(), bad); !errors.Is(err, adapter.ErrSlotEvent) || len(f.slots) > 0 {
			t.Errorf("%s: %v, fired %v", bad, err, f.slots)
		}
	}
}

// TestF26_AnEventComesAgainOnlyWhereThatHelps: a job that is no more is no failure.
func TestF26_AnEventComesAgainOnlyWhereThatHelps(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for err, want := range map[error]error{nil: nil, cron.ErrUnknown: nil, down: down} {
		j := &adapter.Schedule{Jobs: &fired{err: err}, Log: quiet}
		if got := j.Handle(t.Context(), raw(t, "scheduler.json")); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Errorf("fire: %v, handle: %v", err, got)
		}
	}
}

// TestF26_TheSameEventThreeTimes is the whole way from the event to the lane: together,
// 11 s apart and 20 min apart, with a time that the endpoint has not filled in.
func TestF26_TheSameEventThreeTimes(t *testing.T) {
	t.Parallel()
	c := clocktest.New()
	s := setup(t, func(set *wiring.Settings) { set.Clock = c })
	p, perr := protocol.Decode[protocol.CronAddParams]("cron.add", json.RawMessage(`{"name":"n","schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":"m"}}`))
	if perr != nil {
		t.Fatal(perr)
	}
	job, err := s.core.Jobs.Add(t.Context(), "default", &p)
	must(t, err)
	h := &adapter.Schedule{Jobs: s.core.Jobs, Log: quiet}
	event := strings.NewReplacer("6f0d1c52-0000-4000-8000-000000000004", job.ID, "2026-12-24T18:00:00Z", "<aws.scheduler.scheduled-time>").Replace(string(raw(t, "scheduler.json")))
	c.Advance(time.Hour)
	for _, apart := range []time.Duration{0, 0, 0, 11 * time.Second, 20 * time.Minute} {
		c.Advance(apart)
		must(t, h.Handle(t.Context(), []byte(event)))
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if len(s.queue.wakes) != 1 {
		t.Fatalf("%d wake-ups", len(s.queue.wakes))
	}
	w, err := lane.ParseWakeup(s.queue.wakes[0])
	if err != nil || w.Lane != "cron" || w.Key != "agent:main:cron:"+job.ID {
		t.Errorf("%+v, %v", w, err)
	}
}

// reconciler says what it did.
type reconciler struct {
	did cron.Reconciled
	err error
	n   int
}

func (r *reconciler) Reconcile(context.Context) (cron.Reconciled, error) {
	r.n++
	return r.did, r.err
}

// The watchdog fires jobs that nobody has fired, once a minute; a failure of that does
// not keep it from looking at sessions.
func TestWatchdog_ReconcilesJobs(t *testing.T) {
	t.Parallel()
	r := &reconciler{err: errors.New("down"), did: cron.Reconciled{Fired: 1}}
	sw := &sweeper{}
	w := &adapter.Watchdog{Lanes: sw, Jobs: r, Clock: clocktest.New(), Log: quiet}
	if err := w.Handle(t.Context(), sample[scheduleEvent](t, "watchdog.json")); !errors.Is(err, r.err) || r.n != 1 || sw.swept != 1 {
		t.Errorf("%v, reconciled %d times, looked %d times", err, r.n, sw.swept)
	}
}
