package sqs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/queue"
	"laneway/shared/queue/sqs"
)

var errNo = errors.New("no")

// ticks is a clock whose waits end when the test says so.
type ticks struct{ tick chan time.Time }

func newTicks() *ticks { return &ticks{tick: make(chan time.Time)} }

func (c *ticks) Now() time.Time                       { return time.Now() }
func (c *ticks) After(time.Duration) <-chan time.Time { return c.tick }

// poll runs a poller of one lane, 4 handlers and batches of up to 10.
func poll(t *testing.T, s *server, change func(*sqs.PollerConfig), lane, timer queue.Handler) (stop func()) {
	t.Helper()
	c := sqs.PollerConfig{
		Lanes: []queue.Def{{Lane: queue.Main, Concurrency: 10, MaxReceives: 5}}, Batch: 10, Visibility: 30 * time.Second,
		Clock: newTicks(), // time stands still
	}
	if lane != nil {
		c.QueueURLs = map[queue.Lane]string{queue.Main: s.URL + "/main"}
	} else {
		c.QueueURLs = map[queue.Lane]string{queue.Main: "unused"}
		c.TimerURL = s.URL + "/timers"
	}
	if change != nil {
		change(&c)
	}
	p, err := sqs.NewPoller(s.client(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, lane, timer) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func TestF30a_ABatchWithAFailureInOneGroup(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.script([]sent{{"g1", "m1"}, {"g1", "m2"}, {"g1", "m3"}, {"g2", "n1"}})
	var handled sync.Map
	stop := poll(t, s, nil, func(_ context.Context, m queue.Message) error {
		handled.Store(string(m.Body), true)
		if string(m.Body) == "m1" {
			return errNo
		}
		return nil
	}, nil)
	lines := s.until("visibility r-m1 30", "visibility r-m2 0", "visibility r-m3 0", "delete r-n1")
	stop()
	for _, m := range []string{"m2", "m3"} {
		if _, ok := handled.Load(m); ok {
			t.Errorf("%s was handled behind a failure", m)
		}
	}
	// The head is put off before those behind it are let go, the last one first.
	var g1 []string
	for _, l := range lines {
		if strings.Contains(l, "r-m") {
			g1 = append(g1, l)
		}
	}
	if want := []string{"visibility r-m1 30", "visibility r-m3 0", "visibility r-m2 0"}; !slices.Equal(g1, want) {
		t.Errorf("%q, want %q", g1, want)
	}
}

func TestMessagesAreKeptWhileTheyAreHandled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.script([]sent{{"g1", "m1"}, {"g1", "m2"}})
	clock := newTicks()
	open := make(chan struct{})
	began := make(chan string, 2)
	stop := poll(t, s, func(c *sqs.PollerConfig) { c.Clock = clock }, func(_ context.Context, m queue.Message) error {
		began <- string(m.Body)
		<-open
		return nil
	}, nil)
	if m := <-began; m != "m1" {
		t.Errorf("%s came first", m)
	}
	clock.tick <- time.Now() // a third of the visibility timeout has passed
	s.until("visibility r-m1 30", "visibility r-m2 30")
	open <- struct{}{}
	<-began
	s.until("delete r-m1")
	clock.tick <- time.Now()
	open <- struct{}{}
	lines := s.until("delete r-m2")
	stop()
	if n := count(lines, "visibility r-m1 30"); n != 1 {
		t.Errorf("a message that was done was kept: %q", lines)
	}
}

func TestStopReleasesWhatIsUndone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.script([]sent{{"g1", "m1"}, {"g1", "m2"}, {"g2", "n1"}})
	var began sync.WaitGroup
	began.Add(2)
	stop := poll(t, s, nil, func(ctx context.Context, m queue.Message) error {
		began.Done()
		<-ctx.Done()
		if m.Group == "g2" {
			return nil // done in time
		}
		return ctx.Err()
	}, nil)
	began.Wait()
	stop()
	lines := s.until("visibility r-m1 0", "visibility r-m2 0", "delete r-n1")
	if slices.Contains(lines, "delete r-m1") || slices.Contains(lines, "delete r-m2") {
		t.Errorf("deleted without being done: %q", lines)
	}
}

func TestReceivesThatFailAreTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.fail(failure{500, "InternalFailure"}, failure{400, "OverLimit"}, failure{403, "AccessDenied"})
	s.script([]sent{{"g1", "m1"}})
	clock := newTicks()
	stop := poll(t, s, func(c *sqs.PollerConfig) { c.Clock = clock }, func(context.Context, queue.Message) error { return nil }, nil)
	for range 3 {
		clock.tick <- time.Now() // nothing is asked before
	}
	s.until("delete r-m1")
	stop()
}

func TestStopInAPause(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.fail(failure{500, "InternalFailure"})
	stop := poll(t, s, nil, func(context.Context, queue.Message) error { return nil }, nil)
	stop()
}

// A batch is never larger than there are free handlers, and no more than that
// run at once.
func TestCapHoldsOverBatches(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.script([]sent{{"a", "1"}, {"b", "2"}}, []sent{{"c", "3"}}, []sent{{"d", "4"}, {"e", "5"}})
	var busy, most atomic.Int32
	began, open := make(chan struct{}, 5), make(chan struct{})
	stop := poll(t, s, func(c *sqs.PollerConfig) { c.Lanes[0].Concurrency = 3 }, func(context.Context, queue.Message) error {
		n := busy.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		began <- struct{}{}
		<-open
		busy.Add(-1)
		return nil
	}, nil)
	for range 3 {
		<-began
	}
	open <- struct{}{}
	open <- struct{}{}
	<-began
	<-began
	close(open)
	s.until("delete r-1", "delete r-2", "delete r-3", "delete r-4", "delete r-5")
	stop()
	if most.Load() != 3 {
		t.Errorf("%d handlers at once", most.Load())
	}
}

func TestTimersOfABatchDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.script([]sent{{"", "a"}, {"", "b"}, {"", "c"}})
	var all sync.WaitGroup
	all.Add(3)
	stop := poll(t, s, nil, nil, func(_ context.Context, m queue.Message) error {
		if m.Lane != "" || m.Group != "" {
			t.Errorf("timer %+v", m)
		}
		all.Done()
		all.Wait()
		if string(m.Body) == "b" {
			return errNo
		}
		return nil
	})
	s.until("delete r-a", "visibility r-b 30", "delete r-c")
	stop()
}

func count(lines []string, line string) int {
	n := 0
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}
