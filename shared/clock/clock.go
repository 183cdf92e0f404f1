// Package clock gives time to code that must be testable without waiting.
//
// Guarantees: Now is wall time in UTC with a monotonic reading where the
// implementation has one; After and Ticker never fire early. Production code
// takes a Clock; only main functions choose System.
package clock

import (
	"context"
	"time"
)

// Clock is the time a component lives in.
type Clock interface {
	Now() time.Time
	// After returns a channel that gets one value when d has passed. Stopping
	// is by letting it go: waiters select on their context beside it.
	After(d time.Duration) <-chan time.Time
}

// System is the machine's clock.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now() }

// After implements Clock.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Millis is t as the wire has it: milliseconds since the epoch.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// FromMillis is the inverse of Millis, in UTC; zero gives the zero time.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Sleep waits for d or until ctx ends, and returns ctx's error in that case.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.After(d):
		return nil
	}
}
