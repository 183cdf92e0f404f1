package cron_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/cron"
	"laneway/shared/lane"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

// dies is a process over a store that dies at its n-th call, before or after it.
func (b *bench) dies(n int, how faulty.Fault) (*cron.Service, *lane.Service) {
	b.t.Helper()
	store := faulty.New(b.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
		if c.N == n {
			return how
		}
		return faulty.None
	}})
	s := b.service(store)
	l, ok := s.Lanes.(*lane.Service)
	if !ok {
		b.t.Fatal("no lanes")
	}
	return s, l
}

// eachDeath calls do with every place at which a process can die, until it does not
// reach the place any more.
func eachDeath(t *testing.T, do func(t *testing.T, n int, how faulty.Fault) (died bool)) {
	t.Helper()
	for _, how := range []faulty.Fault{faulty.DieBefore, faulty.DieAfter} {
		for n := 0; ; n++ {
			if n == 40 {
				t.Fatal("it never ends")
			}
			if !do(t, n, how) {
				if n < 2 {
					t.Fatalf("only %d calls", n)
				}
				break
			}
		}
	}
}

func TestF26_AProcessThatDiesWhileItFiresMakesOneRun(t *testing.T) {
	t.Parallel()
	eachDeath(t, func(t *testing.T, n int, how faulty.Fault) bool {
		t.Helper()
		b := fast(t)
		j := b.add(every(time.Hour), missed("skip"))
		slot := b.due(j.ID)
		s, _ := b.dies(n, how)
		_, err := s.Fire(t.Context(), cron.Slot{Tenant: tenant, JobID: j.ID, At: slot})
		// Another process finds it, by the event that comes again or by itself.
		if n%2 == 0 {
			b.Clock.Advance(11 * time.Second)
			b.fire(j.ID, slot)
		} else {
			b.Clock.Advance(2 * time.Minute)
			_, err := b.jobs.Reconcile(t.Context())
			must(t, err)
		}
		runID := cron.RunID(j.ID, slot)
		b.at(runID)
		if m := b.Meta(); m.Seq != 1 || len(m.Pending) != 1 {
			t.Fatalf("died at call %d (%d): %d runs accepted", n, how, m.Seq)
		}
		b.runs(runID, ok())
		b.past(j.ID, "ok")
		if got := b.next(j.ID); got <= 0 || got > time.Hour {
			t.Fatalf("died at call %d: due in %v", n, got)
		}
		if late, err := b.jobs.Due(t.Context(), b.Clock.Now()); err != nil || len(late) > 0 {
			t.Fatalf("died at call %d: still due %v, %v", n, late, err)
		}
		return err != nil
	})
}

func TestF27_AProcessThatDiesWhileItTellsAnEndTellsItOnce(t *testing.T) {
	t.Parallel()
	eachDeath(t, func(t *testing.T, n int, how faulty.Fault) bool {
		t.Helper()
		b := fast(t)
		j := b.add(every(time.Hour), webhook("http://127.0.0.1:1/"))
		runID := b.fires(j.ID)
		h := b.begins(runID)
		must(t, h.Commit(t.Context(), terminal(b, h, ok())))
		s, _ := b.dies(n, how)
		err := s.Ended(t.Context(), b.Status(runID))
		b.Settle()
		b.past(j.ID, "ok")
		if w := b.job(j.ID).Wire(false); w.State.RunningRunID != "" || b.next(j.ID) != time.Hour {
			t.Fatalf("died at call %d: %+v", n, w.State)
		}
		b.inStep(j.ID)
		if hooks := b.timers.take(); len(hooks) == 0 {
			t.Fatalf("died at call %d: the webhook is forgotten", n)
		}
		return err != nil
	})
}

// A run out of turn whose process died is carried out, and locks its job at no time.
func TestF28_AProcessThatDiesInARunOutOfTurn(t *testing.T) {
	t.Parallel()
	eachDeath(t, func(t *testing.T, n int, how faulty.Fault) bool {
		t.Helper()
		b := fast(t)
		j := b.add(every(time.Hour))
		b.Clock.Advance(time.Minute)
		s, _ := b.dies(n, how)
		_, err := s.Run(t.Context(), tenant, j.ID, "")
		marked := b.job(j.ID).Running
		b.Clock.Advance(2 * time.Minute)
		_, rerr := b.jobs.Reconcile(t.Context())
		must(t, rerr)
		if marked != nil {
			b.runs(marked.RunID, ok())
			b.past(j.ID, "ok")
		}
		if b.job(j.ID).Running != nil {
			t.Fatalf("died at call %d: %+v", n, b.job(j.ID).Running)
		}
		f, ferr := b.jobs.Run(t.Context(), tenant, j.ID, "")
		if ferr != nil || f.Reason != "" {
			t.Fatalf("died at call %d: next %+v, %v", n, f, ferr)
		}
		b.runs(f.RunID, ok())
		if got := b.next(j.ID); got != 57*time.Minute {
			t.Fatalf("died at call %d: due in %v", n, got)
		}
		return err != nil
	})
}

// Whatever the store does: every slot is one run or one entry, a job has one place
// among the due ones at most, and no run is left behind.
func TestJobsAtRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 15 {
		b := fast(t)
		bad := faulty.New(b.Store, faulty.Config{
			Seed: rng.Uint64(), Conflict: 0.1, Throttle: 0.1, LostRequest: 0.05, LostAnswer: 0.1, Repeated: 0.05, ReadThrottle: 0.02,
		})
		s := b.service(bad)
		j := b.add(every(time.Minute))
		var ran []string
		for range 60 {
			switch rng.IntN(6) {
			case 0, 1:
				b.Clock.Advance(time.Duration(rng.IntN(90)) * time.Second)
			case 2, 3:
				tried(t, func() error {
					_, err := s.Fire(t.Context(), cron.Slot{Tenant: tenant, JobID: j.ID})
					return err
				})
			case 4:
				tried(t, func() error {
					_, err := s.Reconcile(t.Context())
					return err
				})
			case 5:
				if r := b.job(j.ID).Running; r != nil && r.Accepted {
					h := b.begins(r.RunID)
					must(t, h.Commit(t.Context(), terminal(b, h, ok())))
					st := b.Status(r.RunID)
					tried(t, func() error { return s.Ended(t.Context(), st) })
					tried(t, func() error { return s.Ended(t.Context(), st) })
					b.Settle()
					ran = append(ran, r.RunID)
				}
			}
			if r := b.job(j.ID).Running; r != nil && slices.Contains(ran, r.RunID) {
				t.Fatalf("run %s is under way again", r.RunID)
			}
			b.onePlace(j.ID)
		}
		past, err := b.jobs.History(t.Context(), tenant, j.ID)
		must(t, err)
		slots := map[string]bool{}
		for _, e := range past {
			if e.RunID != "" {
				ran = slices.DeleteFunc(ran, func(id string) bool { return id == e.RunID })
			}
			key := fmt.Sprint(e.RunID, e.RunAtMs)
			if slots[key] {
				t.Fatalf("twice in the history: %+v", e)
			}
			slots[key] = true
		}
		if len(ran) > 0 {
			t.Fatalf("not in the history: %v of %v", ran, past)
		}
	}
}

// tried calls until the store lets it through.
func tried(t *testing.T, do func() error) {
	t.Helper()
	for range 200 {
		err := do()
		if err == nil {
			return
		}
		if !errors.Is(err, faulty.ErrInjected) {
			t.Fatal(err)
		}
	}
	t.Fatal("the store never lets it through")
}

// onePlace fails the test where the places of a job among the due ones are not what
// the job says.
func (b *bench) onePlace(id string) {
	b.t.Helper()
	var at []string
	for n := range 4 {
		page, err := b.Store.Query(b.t.Context(), table.Query{Table: table.Jobs, PK: fmt.Sprintf("DUE#%d", n)})
		must(b.t, err)
		for _, it := range page.Items {
			if strings.HasSuffix(it.Key.SK, "#"+id) {
				at = append(at, it.Key.SK)
			}
		}
	}
	if len(at) > 1 || len(at) == 0 && b.job(id).Enabled && b.next(id) != never {
		b.t.Fatalf("places among the due ones: %v", at)
	}
}
