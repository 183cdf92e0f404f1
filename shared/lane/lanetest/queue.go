package lanetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/clock"
	"laneway/shared/lane"
	"laneway/shared/queue"
)

// Sent is a wake-up in a queue.
type Sent struct {
	lane.Wakeup
	Queue        queue.Lane // that it was sent to
	Group, Dedup string
	At           time.Time // when it was sent, or is due
	Timer        bool
}

// Queue is the wake-up port in the hands of a test: nothing is delivered but what
// Take gives away. It checks messages as the adapters do and drops what was sent
// under the same deduplication id within its window.
type Queue struct {
	Clock clock.Clock
	// Fail, if set, may refuse a Send.
	Fail func(Sent) error

	mu    sync.Mutex
	sent  []Sent // not taken yet
	all   []Sent // of all times, dropped ones left out
	dedup map[string]time.Time
	off   bool
}

// Forget makes the queue keep nothing: for benchmarks.
func (q *Queue) Forget() { q.off = true }

var (
	_ queue.Sender = (*Queue)(nil)
	_ queue.Timers = (*Queue)(nil)
)

// ErrDown is a queue that takes nothing.
var ErrDown = errors.New("lanetest: queue is down")

// Send implements queue.Sender.
func (q *Queue) Send(_ context.Context, l queue.Lane, group, dedup string, body []byte) error {
	if err := queue.Check(group, dedup, body); err != nil {
		return err
	}
	w, err := lane.ParseWakeup(body)
	if err != nil {
		return err
	}
	m := Sent{Wakeup: w, Queue: l, Group: group, Dedup: dedup, At: q.Clock.Now()}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.off {
		return nil
	}
	if q.Fail != nil {
		if err := q.Fail(m); err != nil {
			return err
		}
	}
	key := string(l) + " " + group + " " + dedup
	if at, known := q.dedup[key]; known && m.At.Sub(at) < queue.DedupWindow {
		return nil
	}
	if q.dedup == nil {
		q.dedup = make(map[string]time.Time)
	}
	q.dedup[key] = m.At
	q.sent, q.all = append(q.sent, m), append(q.all, m)
	return nil
}

// After implements queue.Timers. Timers that are no wake-ups are refused.
func (q *Queue) After(_ context.Context, d time.Duration, body []byte) error {
	if err := queue.CheckDelay(d); err != nil {
		return err
	}
	w, err := lane.ParseWakeup(body)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	m := Sent{Wakeup: w, Queue: queue.Lane(w.Lane), At: q.Clock.Now().Add(d), Timer: true}
	q.sent, q.all = append(q.sent, m), append(q.all, m)
	return nil
}

// Take gives what was sent and not taken, and keeps nothing: the test delivers it,
// loses it, or delivers it twice. Timers that are not due stay.
func (q *Queue) Take() []Sent {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []Sent
	now := q.Clock.Now()
	q.sent = slices.DeleteFunc(q.sent, func(m Sent) bool {
		due := !m.Timer || !m.At.After(now)
		if due {
			out = append(out, m)
		}
		return due
	})
	return out
}

// One is Take where exactly one message must be there.
func (q *Queue) One(tb testing.TB) Sent {
	tb.Helper()
	got := q.Take()
	if len(got) != 1 {
		tb.Fatalf("%d wake-ups, want one: %+v", len(got), got)
	}
	return got[0]
}

// None fails the test where something was sent.
func (q *Queue) None(tb testing.TB) {
	tb.Helper()
	if got := q.Take(); len(got) > 0 {
		tb.Fatalf("wake-ups that nobody needs: %+v", got)
	}
}

// All is everything that was ever sent.
func (q *Queue) All() []Sent {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.all)
}

// Waiting is what was sent and not taken, timers that are not due included.
func (q *Queue) Waiting() []Sent {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.sent)
}
