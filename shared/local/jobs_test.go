package local

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	pushlocal "laneway/shared/push/local"
	"laneway/shared/queue"
	tablebolt "laneway/shared/table/bolt"
	"laneway/shared/wiring"
)

// wakes is a queue that tells a test what was sent.
type wakes chan lane.Wakeup

func (w wakes) Send(_ context.Context, _ queue.Lane, _, _ string, body []byte) error {
	m, err := lane.ParseWakeup(body)
	w <- m
	return err
}

func (w wakes) After(context.Context, time.Duration, []byte) error { return nil }

// ticking is a server of which only the ticker runs.
type ticking struct {
	t     *testing.T
	s     *Server
	clock *clocktest.Manual
	wakes wakes
	start func()
}

func tick(t *testing.T) *ticking {
	t.Helper()
	store, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(t.TempDir(), "t.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	k := &ticking{t: t, clock: clocktest.New(), wakes: make(wakes, 64)}
	k.clock.Short = 0
	quiet := slog.New(slog.DiscardHandler)
	k.s = &Server{ticker: newTicker(), cfg: Config{Clock: k.clock, Log: quiet, CatchUp: CatchUp{AtOnce: 5, Step: 5 * time.Second}}}
	k.s.core, err = wiring.Build(
		wiring.Ports{Store: store, Queue: k.wakes, Timers: k.wakes, Poster: pushlocal.New(pushlocal.Config{})},
		wiring.Settings{Clock: k.clock, Log: quiet, Cron: wiring.CronSettings{Scheduler: k.s.ticker}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	k.start = func() {
		go func() {
			defer close(done)
			k.s.ticker.run(ctx, k.s)
		}()
	}
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("the ticker does not end")
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k *ticking) add(every time.Duration) string {
	k.t.Helper()
	ms := every.Milliseconds()
	j, err := k.s.core.Jobs.Add(k.t.Context(), "default", &protocol.CronAddParams{
		Name: "n", Schedule: protocol.CronSchedule{Kind: "every", EveryMs: &ms}, Payload: protocol.CronPayload{Kind: "agentTurn", Message: "m"},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return j.ID
}

// fired waits for n runs to be accepted.
func (k *ticking) fired(n int) {
	k.t.Helper()
	for i := range n {
		select {
		case <-k.wakes:
		case <-time.After(20 * time.Second):
			k.t.Fatalf("%d of %d fired", i, n)
		}
	}
}

// passes moves the clock in small steps until a run is accepted, and says for how long.
// The ticker may be between two waits at any step, so one large one could pass it by.
func (k *ticking) passes() (took time.Duration) {
	k.t.Helper()
	const step = 100 * time.Millisecond
	give := time.After(20 * time.Second)
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for {
		select {
		case <-k.wakes:
			return took
		case <-pause.C:
			k.clock.Advance(step)
			took += step
		case <-give:
			k.t.Fatalf("nothing fired within %v", took)
		}
	}
}

// A job that is made while the ticker waits is fired at its time, and not before.
func TestTicker_FiresAtTheTime(t *testing.T) {
	t.Parallel()
	k := tick(t)
	k.start()
	k.clock.Waiting(t, 1) // for a minute: nothing is due
	id := k.add(10 * time.Second)
	if took := k.passes(); took < 10*time.Second {
		t.Errorf("fired after %v", took)
	}
	j, err := k.s.core.Jobs.Get(t.Context(), "default", id)
	if err != nil || j.Running == nil {
		t.Errorf("%+v, %v", j, err)
	}
}

// Of eight jobs that came due while nothing ran, five run at the start and the others
// in steps of five seconds.
func TestRuntime82_CatchingUpIsNoStampede(t *testing.T) {
	t.Parallel()
	k := tick(t)
	for range 8 {
		k.add(time.Hour)
	}
	k.clock.Advance(90 * time.Minute)
	k.start()
	k.fired(5)
	var all time.Duration
	for n := range 3 {
		if all += k.passes(); all < time.Duration(n+1)*5*time.Second {
			t.Errorf("job %d behind the first five after %v", n+1, all)
		}
	}
}
