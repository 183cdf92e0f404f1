package cron_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/claim"
	"laneway/shared/cron"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/test/backends"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = "acme"

// bench is a world with jobs in it.
type bench struct {
	*lanetest.World
	t      *testing.T
	jobs   *cron.Service
	timers *timers
	sched  *schedules
}

// each runs a test over every store.
func each(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, store table.Store) {
		t.Helper()
		f(t, setup(t, store))
	})
}

func setup(t *testing.T, store table.Store, change ...func(*cron.Config)) *bench {
	t.Helper()
	b := &bench{World: lanetest.New(t, store), t: t, timers: &timers{}, sched: &schedules{}}
	b.jobs = b.service(store, change...)
	b.Ends.Do = func(st run.Status) (bool, error) { return false, b.jobs.Ended(t.Context(), st) }
	return b
}

// service is another process over a store.
func (b *bench) service(store table.Store, change ...func(*cron.Config)) *cron.Service {
	b.t.Helper()
	w := b.Process(store)
	c := cron.Config{
		Store: store, Lanes: w.Lanes, Timers: b.timers, Scheduler: b.sched, Clock: b.Clock, NewID: b.NewID, Times: b.Times,
		Log: slog.New(slog.NewTextHandler(b.Log, nil)), HTTP: cron.AnyClient(),
	}
	for _, f := range change {
		f(&c)
	}
	s, err := cron.New(c)
	must(b.t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// timers keeps what was armed.
type timers struct {
	mu    sync.Mutex
	armed []armed
}

type armed struct {
	after time.Duration
	body  []byte
}

func (q *timers) After(_ context.Context, d time.Duration, body []byte) error {
	if err := queue.CheckDelay(d); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = append(q.armed, armed{d, body})
	return nil
}

func (q *timers) take() []armed {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.armed
	q.armed = nil
	return out
}

// schedules is a scheduler that keeps what was put.
type schedules struct {
	mu   sync.Mutex
	is   []cron.Slot
	fail error
}

func (s *schedules) Put(_ context.Context, slot cron.Slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail == nil && !slices.Contains(s.is, slot) {
		s.is = append(s.is, slot)
	}
	return s.fail
}

func (s *schedules) Delete(_ context.Context, slot cron.Slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.is = slices.DeleteFunc(s.is, func(x cron.Slot) bool { return x == slot })
	return s.fail
}

func (s *schedules) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// ahead is what will be fired after a time.
func (s *schedules) ahead(now time.Time) (out []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.is {
		if x.At.After(now) {
			out = append(out, x.At)
		}
	}
	return out
}

// Definitions of jobs.

type define func(*protocol.CronAddParams)

func every(d time.Duration) define {
	ms := d.Milliseconds()
	return func(p *protocol.CronAddParams) { p.Schedule = protocol.CronSchedule{Kind: "every", EveryMs: &ms} }
}

func expr(e, tz string) define {
	return func(p *protocol.CronAddParams) {
		p.Schedule = protocol.CronSchedule{Kind: "cron", Expr: e, TZ: tz}
	}
}

func at(t string) define {
	return func(p *protocol.CronAddParams) { p.Schedule = protocol.CronSchedule{Kind: "at", At: t} }
}

func missed(policy string) define { return func(p *protocol.CronAddParams) { p.Missed = policy } }

func webhook(url string) define {
	return func(p *protocol.CronAddParams) {
		p.Delivery = &protocol.CronDelivery{Mode: "webhook", To: protocol.Some(url)}
	}
}

func params(defs ...define) *protocol.CronAddParams {
	p := &protocol.CronAddParams{Name: "job", Payload: protocol.CronPayload{Kind: "agentTurn", Message: "do it"}}
	for _, d := range defs {
		d(p)
	}
	return p
}

// add makes a job.
func (b *bench) add(defs ...define) *cron.Job {
	b.t.Helper()
	j, err := b.jobs.Add(b.t.Context(), tenant, params(defs...))
	must(b.t, err)
	return j
}

func (b *bench) job(id string) *cron.Job {
	b.t.Helper()
	j, err := b.jobs.Get(b.t.Context(), tenant, id)
	must(b.t, err)
	return j
}

// gone says whether a job is no more.
func (b *bench) gone(id string) bool {
	b.t.Helper()
	_, err := b.jobs.Get(b.t.Context(), tenant, id)
	if err != nil && !errors.Is(err, cron.ErrUnknown) {
		b.t.Fatal(err)
	}
	return err != nil
}

// next is when a job is due next, from now.
func (b *bench) next(id string) time.Duration {
	b.t.Helper()
	ms := b.job(id).Wire(false).State.NextRunAtMs
	if ms == 0 {
		return never
	}
	return time.UnixMilli(ms).Sub(b.Clock.Now())
}

const never = time.Duration(-1)

// due moves the clock to a job's next slot, and gives it.
func (b *bench) due(id string) time.Time {
	b.t.Helper()
	d := b.next(id)
	if d < 0 {
		b.t.Fatalf("job %s is never due", id)
	}
	b.Clock.Advance(d)
	return b.Clock.Now()
}

// fire fires a slot.
func (b *bench) fire(id string, slot time.Time) cron.Fired {
	b.t.Helper()
	f, err := b.jobs.Fire(b.t.Context(), cron.Slot{Tenant: tenant, JobID: id, At: slot})
	must(b.t, err)
	return f
}

// fires lets a job's next slot come and fires it, where a run must come of it.
func (b *bench) fires(id string) string {
	b.t.Helper()
	slot := b.due(id)
	f := b.fire(id, slot)
	if want := cron.RunID(id, slot); f.RunID != want || f.Reason != "" || f.Repeat {
		b.t.Fatalf("fired %+v, want run %s", f, want)
	}
	return f.RunID
}

// at makes a session the world's own.
func (b *bench) at(runID string) run.Status {
	b.t.Helper()
	st := b.Status(runID)
	b.Ref = session.Ref{Tenant: tenant, Key: st.SessionKey}
	return st
}

// begins claims a run that was accepted.
func (b *bench) begins(runID string) *claim.Holder {
	b.t.Helper()
	b.at(runID)
	h := b.Start()
	if got := h.Meta().Active; got != run.Short(runID) {
		b.t.Fatalf("started %s, want %s", got, runID)
	}
	return h
}

// ends commits the end of a run and settles it.
func (b *bench) ends(h *claim.Holder, o run.Outcome) {
	b.t.Helper()
	must(b.t, h.Commit(b.Ctx(), terminal(b, h, o)))
	b.Settle()
}

// terminal is the end of a run that nobody has told.
func terminal(b *bench, h *claim.Holder, o run.Outcome) claim.Tx {
	return lanetest.Terminal(h, b.Clock.Now(), o)
}

// runs lets a run that was accepted end at once.
func (b *bench) runs(runID string, o run.Outcome) {
	b.t.Helper()
	b.ends(b.begins(runID), o)
}

func ok() run.Outcome {
	return run.Outcome{Kind: run.OK, Payloads: []run.Payload{{Text: "done"}}, Text: "done"}
}

func broken(kind string) run.Outcome {
	return run.Outcome{Kind: run.Failed, Error: "it broke", ErrorKind: kind}
}

// history is the past of a job, the oldest first, as "status/reason" with how many
// slots an entry stands for.
func (b *bench) history(id string) []string {
	b.t.Helper()
	past, err := b.jobs.History(b.t.Context(), tenant, id)
	must(b.t, err)
	slices.Reverse(past)
	out := []string{}
	for _, e := range past {
		s := e.Status
		if e.ErrorReason != "" {
			s += "/" + e.ErrorReason
		}
		if e.Slots > 1 {
			s += fmt.Sprintf(" x%d", e.Slots)
		}
		out = append(out, s)
	}
	return out
}

func (b *bench) past(id string, want ...string) {
	b.t.Helper()
	if got := b.history(id); !slices.Equal(got, append([]string{}, want...)) {
		b.t.Fatalf("history %v, want %v", got, want)
	}
}

// accepted lists the runs of a job that were accepted, by their wake-ups.
func (b *bench) accepted(id string) (out []string) {
	b.t.Helper()
	for _, m := range b.Queue.All() {
		if m.Reason == "accept" && strings.HasSuffix(m.Key, ":cron:"+id) {
			out = append(out, m.Dedup)
		}
	}
	return slices.Compact(out)
}

// inStep fails the test where the scheduler would not fire what is due, and that alone.
func (b *bench) inStep(id string) {
	b.t.Helper()
	var want []time.Time
	if d := b.next(id); d > 0 {
		want = append(want, b.Clock.Now().Add(d))
	}
	if got := b.sched.ahead(b.Clock.Now()); !slices.EqualFunc(got, want, time.Time.Equal) {
		b.t.Fatalf("schedules at %v, want %v", got, want)
	}
}

var _ cron.Accepter = (*lane.Service)(nil)

// drop loses a run's record.
func (b *bench) drop(runID string) {
	b.t.Helper()
	_, err := b.Store.Write(b.t.Context(), table.Op{Kind: table.Delete, Key: run.RefOf(tenant, runID).StatusKey()})
	must(b.t, err)
}

// passes moves the clock with a run at work, whose holder renews its claim meanwhile.
func (b *bench) passes(d time.Duration) {
	b.t.Helper()
	give := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for step := b.Times.Renew; d > 0; d -= step {
		b.Clock.Waiting(b.t, 1) // the holder looks again at a time, and not while this moves
		b.Clock.Advance(min(step, d))
		for m := b.Meta(); m.Lease.Sub(b.Clock.Now()) < b.Times.Lease-step; m = b.Meta() {
			select {
			case <-tick.C:
			case <-give:
				b.t.Fatal("the claim is not renewed")
			}
		}
	}
}

// fast is a bench over a file alone, for tests of many steps.
func fast(t *testing.T, change ...func(*cron.Config)) *bench {
	t.Helper()
	return setup(t, backends.Bolt(t), change...)
}

// spoil changes a text in the stored definition of a job.
func (b *bench) spoil(id, old, now string) {
	b.t.Helper()
	key := table.Key{Table: table.Jobs, PK: tenant + "#J#" + id, SK: "META"}
	it, err := b.Store.Get(b.t.Context(), key)
	must(b.t, err)
	it.Attrs["job"] = []byte(strings.ReplaceAll(string(it.Attrs.Bytes("job")), old, now))
	_, err = b.Store.Write(b.t.Context(), table.Op{Kind: table.Put, Key: key, Item: it.Attrs})
	must(b.t, err)
}

// entries counts the stored items of a job's history.
func (b *bench) entries(id string) (n int) {
	b.t.Helper()
	q := table.Query{Table: table.Jobs, PK: tenant + "#J#" + id, From: "RUN#", To: "RUN$"}
	for {
		page, err := b.Store.Query(b.t.Context(), q)
		must(b.t, err)
		n += len(page.Items)
		if q.After = page.Next; q.After == "" {
			return n
		}
	}
}

// inStepGone fails the test where something is still to be fired, or due, of a job
// that is off or no more.
func (b *bench) inStepGone(id string) {
	b.t.Helper()
	b.sched.mu.Lock()
	defer b.sched.mu.Unlock()
	due, err := b.jobs.Due(b.t.Context(), b.Clock.Now().Add(100_000*time.Hour))
	must(b.t, err)
	for _, slot := range append(due, b.sched.is...) {
		if slot.JobID == id && slot.At.After(b.Clock.Now()) {
			b.t.Fatalf("still due at %v", slot.At)
		}
	}
}
