// Package clocktest is a clock that stands still until a test moves it.
//
// Guarantees: Now changes by Advance and Set alone; a wait ends when the clock has
// reached its time, in the order of those times; Advance returns when every wait that
// was due has been told. Short waits, such as pauses between two tries, end at once:
// see Manual.Short.
package clocktest

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// Manual implements clock.Clock.
type Manual struct {
	// Short is the longest wait that ends at once, without moving the clock.
	Short time.Duration

	mu      sync.Mutex
	now     time.Time
	waits   []wait
	armed   int
	changed chan struct{} // closed and replaced with every new wait
}

type wait struct {
	at time.Time
	c  chan time.Time
}

// New is a clock that shows a fixed time in the past.
func New() *Manual { return At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) }

// At is a clock that shows a time.
func At(now time.Time) *Manual {
	return &Manual{Short: 250 * time.Millisecond, changed: make(chan struct{}), now: now}
}

// Now implements clock.Clock.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// After implements clock.Clock.
func (m *Manual) After(d time.Duration) <-chan time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan time.Time, 1)
	if d <= m.Short {
		c <- m.now
		return c
	}
	m.waits = append(m.waits, wait{m.now.Add(d), c})
	m.armed++
	close(m.changed)
	m.changed = make(chan struct{})
	return c
}

// Advance moves the clock and ends the waits that are due.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	slices.SortStableFunc(m.waits, func(a, b wait) int { return a.at.Compare(b.at) })
	for len(m.waits) > 0 && !m.waits[0].at.After(m.now) {
		m.waits[0].c <- m.now
		m.waits = m.waits[1:]
	}
}

// Waiting blocks until at least n waits are under way; it fails the test where that
// does not happen.
func (m *Manual) Waiting(tb testing.TB, n int) {
	tb.Helper()
	give := time.After(10 * time.Second)
	for {
		m.mu.Lock()
		have, changed := len(m.waits), m.changed
		m.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-changed:
		case <-give:
			tb.Fatalf("%d waits on the clock, want %d", have, n)
		}
	}
}

// Armed is how many waits there have been in all: it grows when somebody who was told
// waits again.
func (m *Manual) Armed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.armed
}

// Pending is how many waits are under way, those included that nobody listens to any
// more.
func (m *Manual) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waits)
}
