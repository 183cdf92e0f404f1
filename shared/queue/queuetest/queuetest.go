// Package queuetest is the judge of the queue port: one suite for every adapter.
package queuetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/queue"
)

// What the suite asks of the queues under test.
const (
	Cap         = 4 // handlers of every lane
	MaxReceives = 3 // of lanes and timers
)

// Lanes is the lanes that the queues under test have.
func Lanes() []queue.Def {
	return []queue.Def{{Lane: queue.Main, Concurrency: Cap, MaxReceives: MaxReceives}, {Lane: queue.Cron, Concurrency: Cap, MaxReceives: MaxReceives}}
}

// patience is how long a case waits for what must happen.
const patience = 60 * time.Second

// Fixture is a queue under test, empty and used by one case only.
type Fixture struct {
	queue.Sender
	queue.Timers

	// Receive is the Run of the receiving side.
	Receive func(ctx context.Context, lane, timer queue.Handler) error
	// Dead is the operator's side.
	Dead queue.DeadLetterStore
	// Visibility is the time after which a failed message comes again.
	Visibility time.Duration
	// Differences of the endpoint under test; each that changes a check is
	// printed where it does.
	Differences []Difference
}

// Difference is something in which an emulator is known not to be like AWS.
type Difference string

// DisorderInFlight is that several messages of a group that are received at once
// and put back may come again in another order.
const DisorderInFlight Difference = "messages of a group that were received together come again in any order"

// Run checks an adapter.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	for name, run := range map[string]func(*check){
		"a group is handled in order, one at a time":           (*check).order,
		"a failed head holds back its group, and no other":     (*check).headOfLine,
		"a panic is a failure":                                 (*check).panics,
		"a deduplication id is taken once":                     (*check).dedup,
		"after max receives a message is a dead letter":        (*check).deadLetters,
		"dead letters are redriven and purged":                 (*check).redrive,
		"groups run in parallel up to the cap":                 (*check).parallel,
		"F9 a busy group delays no other":                      (*check).busyGroup,
		"lanes do not share their caps":                        (*check).lanes,
		"timers are not early and come":                        (*check).timers,
		"a failed timer comes again":                           (*check).failedTimer,
		"stop waits for handlers, and what failed comes again": (*check).stop,
		"bodies come as they were sent":                        (*check).bodies,
		"what no queue takes is refused":                       (*check).invalid,
		"an ended context sends nothing":                       (*check).ended,
		"requests are counted":                                 (*check).counted,
		"random failures, as a model of the port has them":     (*check).random,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newCheck(t, open(t)))
		})
	}
}

// Batches checks an adapter that receives several messages at once. It is a case
// alone, because messages behind a failing one are counted as received then, so
// that the numbers of the other cases do not hold.
func Batches(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	newCheck(t, open(t)).batches()
}

// check is one case at work: a test, the queue, and a log of what handlers did.
type check struct {
	*testing.T
	Fixture

	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and made anew with every line
}

func newCheck(t *testing.T, f Fixture) *check {
	t.Helper()
	return &check{T: t, Fixture: f, changed: make(chan struct{})}
}

// differs says whether the endpoint has a difference, and prints that a check is
// changed by it.
func (c *check) differs(d Difference, change string) bool {
	if !slices.Contains(c.Differences, d) {
		return false
	}
	c.Logf("known difference %q: %s", d, change)
	return true
}

// note adds a line to the log of the case.
func (c *check) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *check) log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// until waits for the log to be as done wants it, and gives it.
func (c *check) until(what string, done func(lines []string) bool) []string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	for {
		c.mu.Lock()
		lines, changed := slices.Clone(c.lines), c.changed
		c.mu.Unlock()
		if done(lines) {
			return lines
		}
		select {
		case <-changed:
		case <-ctx.Done():
			c.Fatalf("never came: %s; log: %q", what, lines)
		}
	}
}

// count waits for n lines.
func (c *check) count(n int) []string {
	c.Helper()
	return c.until("all lines", func(lines []string) bool { return len(lines) >= n })
}

// has waits for a line.
func (c *check) has(line string) {
	c.Helper()
	c.until(line, func(lines []string) bool { return slices.Contains(lines, line) })
}

func (c *check) send(lane queue.Lane, group, dedup, body string) {
	c.Helper()
	if err := c.Send(c.Context(), lane, group, dedup, []byte(body)); err != nil {
		c.Fatalf("Send(%s, %s, %s): %v", lane, group, dedup, err)
	}
}

func (c *check) after(d time.Duration, body string) {
	c.Helper()
	if err := c.After(c.Context(), d, []byte(body)); err != nil {
		c.Fatalf("After(%v): %v", d, err)
	}
}

// start runs the receiving side; stop, also called at the end of the test, ends
// it and waits for its end.
func (c *check) start(lane, timer queue.Handler) (stop func()) {
	c.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Receive(ctx, lane, timer) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				c.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			c.Error("Run did not return")
		}
	})
	c.Cleanup(stop)
	return stop
}
