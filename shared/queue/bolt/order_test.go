package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/queue"
)

// Whatever fails, panics and overlaps: messages of a group come in order, one at
// a time, each until it succeeded or was given up, and no cap is exceeded.
func TestRandomFailuresKeepOrderAndCap(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, randomFailures(seed))
		})
	}
}

func randomFailures(seed uint64) func(*testing.T) {
	return func(t *testing.T) {
		const groups, perGroup, handlers, receives = 50, 20, 7, 3
		rng := rand.New(rand.NewPCG(seed, 1))
		q := open(t, Config{
			Visibility: 3 * time.Second,
			Lanes:      []queue.Def{{Lane: queue.Main, Concurrency: handlers, MaxReceives: receives}},
		})
		var mu sync.Mutex // guards all below, and rng
		next := make(map[string]int)
		inGroup := make(map[string]bool)
		busy, most, dead := 0, 0, 0
		handler := func(_ context.Context, m queue.Message) error {
			mu.Lock()
			if inGroup[m.Group] {
				t.Errorf("two handlers in group %s", m.Group)
			}
			if want := strconv.Itoa(next[m.Group]); string(m.Body) != want {
				t.Errorf("group %s: got message %s, want %s", m.Group, m.Body, want)
			}
			inGroup[m.Group] = true
			busy++
			most = max(most, busy)
			took, outcome := time.Duration(rng.IntN(2000))*time.Millisecond, rng.IntN(4)
			mu.Unlock()

			advance(took)

			mu.Lock()
			defer mu.Unlock()
			inGroup[m.Group] = false
			busy--
			if outcome < 2 && m.Receives == receives {
				dead++
			}
			if outcome >= 2 || m.Receives == receives {
				next[m.Group]++
			}
			switch outcome {
			case 0:
				return errors.New("no")
			case 1:
				panic("no")
			}
			return nil
		}
		stop := run(t, q, handler, nil)
		for i := range perGroup {
			for g := range groups {
				if err := q.Send(t.Context(), queue.Main, fmt.Sprint("g", g), strconv.Itoa(i), []byte(strconv.Itoa(i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		advance(24 * time.Hour)
		stop()
		letters, err := q.DeadLetters(t.Context(), queue.Main, groups*perGroup)
		if err != nil || len(letters) != dead {
			t.Errorf("%d dead letters, want %d, %v", len(letters), dead, err)
		}
		closeQueue(t, q)
		for g := range groups {
			if n := next[fmt.Sprint("g", g)]; n != perGroup {
				t.Errorf("group %d: %d of %d messages", g, n, perGroup)
			}
		}
		if most != handlers {
			t.Errorf("at most %d handlers at once, want %d", most, handlers)
		}
	}
}

func TestAHundredThousandGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const groups = 100_000
		q := open(t, Config{})
		var j sync.Map
		stop := run(t, q, func(_ context.Context, m queue.Message) error {
			advance(time.Millisecond)
			if _, twice := j.Swap(m.Group, true); twice {
				t.Errorf("group %s twice", m.Group)
			}
			return nil
		}, nil)
		start := time.Now()
		for g := range groups {
			if err := q.Send(t.Context(), queue.Main, strconv.Itoa(g), "1", []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		advance(groups/16*time.Millisecond + time.Millisecond)
		stop()
		n := 0
		j.Range(func(any, any) bool { n++; return true })
		if n != groups {
			t.Errorf("%d groups handled %v after the start", n, time.Since(start))
		}
		closeQueue(t, q)
	})
}

func TestTimersOfManyCallersShareCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Config{Path: filepath.Join(t.TempDir(), "q.db")})
		const n = 500
		var fired sync.Map
		stop := run(t, q, nil, func(_ context.Context, m queue.Message) error {
			fired.Store(string(m.Body), time.Now())
			return nil
		})
		before := q.db.Stats()
		start := time.Now()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if err := q.After(t.Context(), time.Duration(i)*time.Millisecond, []byte(strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		after := q.db.Stats()
		// A commit writes a leaf, the free list and the meta page at least.
		if writes := after.TxStats.GetWrite() - before.TxStats.GetWrite(); writes >= 3*n {
			t.Errorf("%d page writes for %d timers: no commit was shared", writes, n)
		}
		advance(time.Minute)
		stop()
		for i := range n {
			at, ok := fired.Load(strconv.Itoa(i))
			if !ok {
				t.Fatalf("timer %d never fired", i)
			}
			if got, _ := at.(time.Time); got.Sub(start) != time.Duration(i)*time.Millisecond {
				t.Errorf("timer %d fired after %v", i, got.Sub(start))
			}
		}
		closeQueue(t, q)
	})
}

// BenchmarkSendToHandler is the latency of a wake-up on an idle lane.
func BenchmarkSendToHandler(b *testing.B) {
	q, err := Open(Config{Path: filepath.Join(b.TempDir(), "q.db")})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	began, done := make(chan struct{}), make(chan error)
	go func() {
		done <- q.Run(ctx, func(context.Context, queue.Message) error {
			began <- struct{}{}
			return nil
		}, nil)
	}()
	for i := 0; b.Loop(); i++ {
		if err := q.Send(ctx, queue.Main, "g", strconv.Itoa(i), []byte("x")); err != nil {
			b.Fatal(err)
		}
		<-began
	}
	cancel()
	if err := errors.Join(<-done, q.Close()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAfter is what a caller waits for a timer to be on disk.
func BenchmarkAfter(b *testing.B) {
	q, err := Open(Config{Path: filepath.Join(b.TempDir(), "q.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := q.After(b.Context(), queue.MaxDelay, []byte("x")); err != nil {
				b.Error(err)
			}
		}
	})
	if err := q.Close(); err != nil {
		b.Fatal(err)
	}
}
