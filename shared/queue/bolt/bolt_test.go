package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"laneway/shared/queue"
)

// Time in these tests is that of a synctest bubble: it moves when everybody waits.

func open(t *testing.T, cfg Config) *Queue {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "queue.db")
	}
	q, err := Open(cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return q
}

// run starts Run and gives what ends it, waits for it and closes the queue.
func run(t *testing.T, q *Queue, lane, timer queue.Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx, lane, timer) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func send(t *testing.T, q *Queue, group, dedup string) {
	t.Helper()
	if err := q.Send(t.Context(), queue.Main, group, dedup, []byte(group+"/"+dedup)); err != nil {
		t.Fatalf("Send(%s, %s): %v", group, dedup, err)
	}
}

// journal is what handlers saw, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) addf(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	if got := j.all(); !slices.Equal(got, want) {
		t.Errorf("handled %q, want %q", got, want)
	}
}

func TestRedeliveryWaitsForTheVisibilityTimeoutAndHoldsTheGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Config{Visibility: 7 * time.Second})
		start := time.Now()
		var j journal
		stop := run(t, q, func(_ context.Context, m queue.Message) error {
			j.addf("%s#%d@%v", m.Body, m.Receives, time.Since(start))
			if string(m.Body) == "g/1" && m.Receives == 1 {
				return errors.New("no")
			}
			return nil
		}, nil)
		send(t, q, "g", "1")
		send(t, q, "g", "2")
		synctest.Wait()
		send(t, q, "other", "1")
		advance(8 * time.Second)
		stop()
		j.want(t, "g/1#1@0s", "other/1#1@0s", "g/1#2@7s", "g/2#1@7s")
		closeQueue(t, q)
	})
}

func TestDedupIsForgottenAfterItsWindowAndItsMemoryIsFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Config{})
		var j journal
		stop := run(t, q, func(_ context.Context, m queue.Message) error {
			j.addf("%s", m.Body)
			return nil
		}, nil)
		send(t, q, "g", "1")
		advance(queue.DedupWindow - time.Nanosecond)
		send(t, q, "g", "1")
		send(t, q, "h", "1") // another group is another id, as on SQS
		synctest.Wait()
		j.want(t, "g/1", "h/1")
		advance(time.Nanosecond)
		send(t, q, "g", "1")
		synctest.Wait()
		j.want(t, "g/1", "h/1", "g/1")
		for i := range 1000 {
			send(t, q, "g", fmt.Sprint("burst", i))
		}
		advance(queue.DedupWindow)
		synctest.Wait()
		l := q.lanes[queue.Main]
		l.mu.Lock()
		if len(l.seen.ids) != 0 || len(l.seen.order.values) != 0 || len(l.groups) != 0 || l.aging {
			t.Errorf("%d ids, %d in order, %d groups, aging %v are kept by an idle lane",
				len(l.seen.ids), len(l.seen.order.values), len(l.groups), l.aging)
		}
		l.mu.Unlock()
		stop()
		closeQueue(t, q)
	})
}

func TestTimersFireOnTimeAcrossARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "queue.db")
		start := time.Now()
		var j journal
		handler := func(_ context.Context, m queue.Message) error {
			j.addf("%s#%d@%v", m.Body, m.Receives, time.Since(start))
			return nil
		}
		q := open(t, Config{Path: path})
		for _, d := range []time.Duration{3 * time.Second, 1500 * time.Millisecond, 0, time.Minute, 15 * time.Minute} {
			if err := q.After(t.Context(), d, []byte(d.String())); err != nil {
				t.Fatal(err)
			}
		}
		stop := run(t, q, nil, handler)
		advance(2 * time.Second)
		stop()
		closeQueue(t, q)
		j.want(t, "0s#1@0s", "1.5s#1@1.5s")

		advance(8 * time.Second)
		q = open(t, Config{Path: path})
		stop = run(t, q, nil, handler)
		advance(15 * time.Minute)
		stop()
		closeQueue(t, q)
		j.want(t, "0s#1@0s", "1.5s#1@1.5s", "3s#1@10s", "1m0s#1@1m0s", "15m0s#1@15m0s")

		q = open(t, Config{Path: path})
		stop = run(t, q, nil, handler)
		synctest.Wait()
		stop()
		closeQueue(t, q)
		if n := len(j.all()); n != 5 {
			t.Errorf("%d timers handled, want 5: done ones are removed", n)
		}
	})
}

func TestATimerIsNotEarlyAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "queue.db")
		start := time.Now()
		q := open(t, Config{Path: path})
		if err := q.After(t.Context(), 1500*time.Microsecond, []byte("x")); err != nil {
			t.Fatal(err)
		}
		closeQueue(t, q)
		q = open(t, Config{Path: path})
		var j journal
		stop := run(t, q, nil, func(context.Context, queue.Message) error {
			j.addf("%v", time.Since(start))
			return nil
		})
		advance(time.Second)
		stop()
		closeQueue(t, q)
		j.want(t, "2ms")
	})
}

func TestATimerThatIsDoneLeavesTheDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Config{})
		stop := run(t, q, nil, func(context.Context, queue.Message) error { return nil })
		after := func(d time.Duration) {
			t.Helper()
			if err := q.After(t.Context(), d, []byte("x")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		after(0)
		after(queue.MaxDelay) // the removal of the first rides with it
		if n := timersOnDisk(t, q); n != 1 {
			t.Errorf("%d on disk after the next write, want 1", n)
		}
		after(0)
		advance(cleanAfter)
		synctest.Wait()
		if n := timersOnDisk(t, q); n != 1 {
			t.Errorf("%d on disk after a moment without writes, want 1", n)
		}
		after(0)
		stop()
		if err := q.flush(t.Context()); err != nil { // as Close does
			t.Error(err)
		}
		if n := timersOnDisk(t, q); n != 1 {
			t.Errorf("%d on disk at the end, want 1", n)
		}
		closeQueue(t, q)
	})
}

func TestFailedTimerComesAgainThenIsADeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "queue.db")
		q := open(t, Config{Path: path, Visibility: time.Second, TimerMaxReceives: 3})
		start := time.Now()
		bad := true
		var j journal
		stop := run(t, q, nil, func(_ context.Context, m queue.Message) error {
			j.addf("%s#%d@%v", m.Body, m.Receives, time.Since(start))
			if bad {
				return errors.New("no")
			}
			return nil
		})
		if err := q.After(t.Context(), time.Second, []byte("a")); err != nil {
			t.Fatal(err)
		}
		advance(3 * time.Second)
		synctest.Wait()
		// Off the disk with the letter's own commit: a crash now brings no fourth.
		if n := timersOnDisk(t, q); n != 0 {
			t.Errorf("%d timers are still on disk", n)
		}
		advance(time.Minute)
		j.want(t, "a#1@1s", "a#2@2s", "a#3@3s")
		stop()
		closeQueue(t, q)

		q = open(t, Config{Path: path})
		dead, err := q.DeadLetters(t.Context(), "", 10)
		if err != nil || len(dead) != 1 || string(dead[0].Body) != "a" || dead[0].Receives != 3 || !dead[0].At.Equal(start.Add(3*time.Second)) {
			t.Fatalf("dead letters %+v, %v", dead, err)
		}
		bad = false
		stop = run(t, q, nil, func(_ context.Context, m queue.Message) error {
			j.addf("again %s#%d", m.Body, m.Receives)
			return nil
		})
		if n, err := q.Redrive(t.Context(), ""); n != 1 || err != nil {
			t.Fatalf("Redrive: %d, %v", n, err)
		}
		synctest.Wait()
		stop()
		j.want(t, "a#1@1s", "a#2@2s", "a#3@3s", "again a#1")
		if dead, err := q.DeadLetters(t.Context(), "", 10); len(dead) != 0 || err != nil {
			t.Errorf("after Redrive: %+v, %v", dead, err)
		}
		closeQueue(t, q)
	})
}

func TestDeadLettersAreListedRedrivenPurgedAndAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Config{Visibility: time.Second, Lanes: []queue.Def{{Lane: queue.Main, Concurrency: 2, MaxReceives: 2}, {Lane: queue.Cron, Concurrency: 1, MaxReceives: 1}}})
		var bad sync.Map
		var j journal
		stop := run(t, q, func(_ context.Context, m queue.Message) error {
			j.addf("%s#%d", m.Body, m.Receives)
			if _, ok := bad.Load(string(m.Body)); ok {
				panic("a value that must not be kept")
			}
			return nil
		}, nil)
		bad.Store("g/1", true)
		send(t, q, "g", "1")
		send(t, q, "g", "2")
		advance(time.Minute)
		j.want(t, "g/1#1", "g/1#2", "g/2#1")
		list := func(lane queue.Lane) (bodies []string) {
			t.Helper()
			dead, err := q.DeadLetters(t.Context(), lane, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range dead {
				bodies = append(bodies, string(d.Body))
			}
			return bodies
		}
		if got := list(queue.Main); !slices.Equal(got, []string{"g/1"}) {
			t.Errorf("dead letters %q", got)
		}
		if got := list(queue.Cron); got != nil {
			t.Errorf("dead letters of another lane %q", got)
		}
		bad.Clear()
		if n, err := q.Redrive(t.Context(), queue.Main); n != 1 || err != nil {
			t.Errorf("Redrive: %d, %v", n, err)
		}
		synctest.Wait()
		j.want(t, "g/1#1", "g/1#2", "g/2#1", "g/1#1")

		bad.Store("g/3", true)
		send(t, q, "g", "3")
		advance(time.Minute)
		if n, err := q.Purge(t.Context(), queue.Main); n != 1 || err != nil {
			t.Errorf("Purge: %d, %v", n, err)
		}
		bad.Store("g/4", true)
		send(t, q, "g", "4")
		advance(DeadLetterRetention + time.Hour)
		bad.Store("g/5", true)
		send(t, q, "g", "5")
		advance(time.Minute)
		if got := list(queue.Main); !slices.Equal(got, []string{"g/5"}) {
			t.Errorf("dead letters %q: the older is past its retention", got)
		}
		stop()
		closeQueue(t, q)
	})
}

func TestPanicIsAFailureAndItsValueIsNotLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := open(t, Config{Visibility: time.Second, Log: slog.New(slog.NewTextHandler(&out, nil))})
		var j journal
		stop := run(t, q, func(_ context.Context, m queue.Message) error {
			j.addf("#%d", m.Receives)
			switch m.Receives {
			case 1:
				panic("sesame")
			case 2:
				_ = m.Body[100*m.Receives]
			}
			return nil
		}, nil)
		send(t, q, "g", "1")
		advance(5 * time.Second)
		stop()
		closeQueue(t, q)
		j.want(t, "#1", "#2", "#3")
		if s := out.String(); strings.Contains(s, "sesame") || !strings.Contains(s, "handler panicked: string") || !strings.Contains(s, "index out of range") {
			t.Errorf("log:\n%s", s)
		}
	})
}

func TestStopWaitsForHandlersAndCountsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Config{Lanes: []queue.Def{{Lane: queue.Main, Concurrency: 1, MaxReceives: 1}}})
		var j journal
		began := make(chan struct{})
		stop := run(t, q, func(ctx context.Context, m queue.Message) error {
			close(began)
			<-ctx.Done()
			advance(time.Second) // a handler that takes its time to end
			j.addf("ended %s", m.Body)
			return ctx.Err()
		}, nil)
		send(t, q, "g", "1")
		send(t, q, "g", "2")
		<-began
		if err := q.Close(); !errors.Is(err, ErrRunning) {
			t.Errorf("Close beside Run: %v", err)
		}
		if err := q.Run(t.Context(), nil, nil); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
		stop()
		j.want(t, "ended g/1")

		stop = run(t, q, func(_ context.Context, m queue.Message) error {
			j.addf("%s#%d", m.Body, m.Receives)
			return nil
		}, nil)
		synctest.Wait()
		stop()
		j.want(t, "ended g/1", "g/1#1", "g/2#1")
		closeQueue(t, q)
		if err := q.Send(t.Context(), queue.Main, "g", "3", []byte("x")); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("Send after Close: %v", err)
		}
		if err := q.After(t.Context(), 0, []byte("x")); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("After after Close: %v", err)
		}
		if err := q.Run(t.Context(), nil, nil); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("Run after Close: %v", err)
		}
		closeQueue(t, q)
	})
}

// A group with a backlog takes one handler; another group's message starts at
// once while there is a second, and takes turns where there is none.
func TestF9_ABusyGroupDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		handlers int
		want     time.Duration // until b starts, when each message takes 30 s
	}{{1, 30 * time.Second}, {2, 0}} {
		t.Run(strconv.Itoa(c.handlers), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := open(t, Config{Lanes: []queue.Def{{Lane: queue.Main, Concurrency: c.handlers, MaxReceives: 5}}})
				start := time.Now()
				var j journal
				stop := run(t, q, func(_ context.Context, m queue.Message) error {
					j.addf("%s@%v", m.Body, time.Since(start))
					advance(30 * time.Second)
					return nil
				}, nil)
				for i := range 20 {
					send(t, q, "a", strconv.Itoa(i))
				}
				synctest.Wait()
				send(t, q, "b", "0")
				advance(time.Hour)
				stop()
				closeQueue(t, q)
				var a []string
				for _, l := range j.all() {
					if strings.HasPrefix(l, "b/0@") {
						if want := fmt.Sprintf("b/0@%v", c.want); l != want {
							t.Errorf("%s, want %s", l, want)
						}
						continue
					}
					a = append(a, l)
				}
				for i, l := range a {
					if !strings.HasPrefix(l, fmt.Sprintf("a/%d@", i)) {
						t.Errorf("message %d of a is %s", i, l)
					}
				}
				if len(a) != 20 {
					t.Errorf("%d messages of a", len(a))
				}
			})
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	for name, c := range map[string]Config{
		"neither DB nor Path": {},
		"lane without cap":    {Path: path, Lanes: []queue.Def{{Lane: "x", MaxReceives: 1}}},
		"lane twice":          {Path: path, Lanes: []queue.Def{{Lane: "x", Concurrency: 1, MaxReceives: 1}, {Lane: "x", Concurrency: 1, MaxReceives: 1}}},
		"negative visibility": {Path: path, Visibility: -1},
	} {
		if q, err := Open(c); err == nil {
			t.Errorf("%s: accepted", name)
			closeQueue(t, q)
		}
	}
	q := open(t, Config{Path: path}) // and a refused Open lets go of the file
	closeQueue(t, q)
}

func closeQueue(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func timersOnDisk(t *testing.T, q *Queue) (n int) {
	t.Helper()
	err := q.db.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket(bucketTimers).Stats().KeyN
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }
