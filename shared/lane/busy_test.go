package lane_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/queue"
	queuebolt "laneway/shared/queue/bolt"
	"laneway/shared/run"
	"laneway/shared/session"
)

// F9: a session with a long backlog, and a message for another one. The latter starts
// while the first run of the former still runs; the backlog goes one at a time.
func TestF9_ABusySessionDelaysNoOther(t *testing.T) {
	t.Parallel()
	each(t, busy)
}

func busy(t *testing.T, w *lanetest.World) {
	t.Helper()
	q, err := queuebolt.Open(queuebolt.Config{Path: filepath.Join(t.TempDir(), "queue.db")})
	if err != nil {
		t.Fatal(err)
	}
	lanes := lane.New(lane.Service{Store: w.Store, Queue: q, Timers: q})
	claims := claim.New(claim.Service{Store: w.Store})
	w.Lanes, w.Claims = lanes, claims

	began := make(chan string, 64)
	goOn := make(chan struct{}) // lets one turn of the busy session end
	var mu sync.Mutex
	inside := make(map[string]int)
	handler := func(ctx context.Context, msg queue.Message) error {
		wake, err := lane.ParseWakeup(msg.Body)
		if err != nil {
			return err
		}
		m, err := session.LoadMeta(ctx, w.Store, wake.Ref())
		if err != nil {
			return err
		}
		d := lane.Decide(m, wake.Lane, time.Now(), claims.Times)
		if d.Do == lane.Settle {
			return lanes.Settle(ctx, m, w.Ends, "settle/"+w.NewID())
		}
		if d.Do != lane.Start {
			return nil
		}
		h, err := claims.Start(ctx, m, d.Run)
		if err != nil {
			return err
		}
		defer h.Close()
		mu.Lock()
		if inside[wake.Key]++; inside[wake.Key] > 1 {
			t.Errorf("%d turns of %s at once", inside[wake.Key], wake.Key)
		}
		mu.Unlock()
		began <- d.Run.Run
		if wake.Key == w.Ref.Key {
			select {
			case <-goOn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		mu.Lock()
		inside[wake.Key]--
		mu.Unlock()
		if err := h.Commit(ctx, lanetest.Terminal(h, time.Now(), run.Outcome{Kind: run.OK})); err != nil {
			return err
		}
		return lanes.Settled(ctx, m.Ref, []string{d.Run.Run}, h.Owner())
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- q.Run(ctx, handler, handler) }()

	for n := range 20 {
		w.Accept(fmt.Sprint("a", n))
	}
	next(t, began, "a0")
	b := *w
	b.Ref.Key = "agent:main:other"
	b.Accept("b0")
	next(t, began, "b0") // while a0 is held
	for n := 1; n < 20; n++ {
		goOn <- struct{}{}
		next(t, began, fmt.Sprint("a", n))
	}
	goOn <- struct{}{}
	for deadline := time.Now().Add(20 * time.Second); !w.Idle() || !b.Idle(); {
		if time.Now().After(deadline) {
			t.Fatal("not idle")
		}
		<-time.After(time.Millisecond)
	}
	stop()
	<-stopped
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

func next(t *testing.T, began <-chan string, want string) {
	t.Helper()
	select {
	case got := <-began:
		if got != want {
			t.Fatalf("%s began, want %s", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not begin", want)
	}
}
