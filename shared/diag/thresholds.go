// Package diag finds sessions that do not move, says so, and gets them going: stuck
// ones, which nobody is at, stalled ones, whose run lives and makes no progress, and
// long-running ones, which are only told about.
//
// Guarantees: it looks at the tables alone, so it may run anywhere and be cut at any
// time; messages that arrive are no progress; a session whose run lives and moves is
// left alone; what it does is conditional on the state that it judged, so that a
// session which moved meanwhile is not touched; warnings about the same standstill
// come at growing intervals, recovery is tried at every look; nothing that it started
// outlives a look.
package diag

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// Thresholds say when a session that does not move is noticed, and when it is helped.
// The zero value of each is its default.
type Thresholds struct {
	// Off: sessions are not looked at (diagnostics.enabled: false). The sweep for work
	// that nobody does is not meant by it.
	Off bool
	// Warn is diagnostics.stuckSessionWarnMs; 0: 2 minutes.
	Warn time.Duration
	// Abort is diagnostics.stuckSessionAbortMs: a run without progress for so long is
	// ended. It is at least 5 minutes and three times Warn, also where less is given.
	Abort time.Duration
	// Tool is Abort for a tool that is silent; at least Abort; 0: 15 minutes.
	Tool time.Duration
	// Settle is how long a run has to end by itself after it was told to; 0: 15 s.
	Settle time.Duration
	// Late is how much later than planned a look may come and still act: later than
	// that the machine itself stood still, and every age is wrong; 0: 1 s.
	Late time.Duration
}

// WithDefaults fills the zero values and raises what is too low.
func (t Thresholds) WithDefaults() Thresholds {
	t.Warn = cmp.Or(t.Warn, 2*time.Minute)
	t.Abort = max(t.Abort, 5*time.Minute, 3*t.Warn)
	t.Tool = max(cmp.Or(t.Tool, 15*time.Minute), t.Abort)
	t.Settle = cmp.Or(t.Settle, 15*time.Second)
	t.Late = cmp.Or(t.Late, time.Second)
	return t
}

// ParseThresholds reads the two settings that operators have, in milliseconds; empty
// is the default.
func ParseThresholds(warnMs, abortMs string) (Thresholds, error) {
	var t Thresholds
	for _, v := range []struct {
		name, ms string
		into     *time.Duration
	}{{"stuckSessionWarnMs", warnMs, &t.Warn}, {"stuckSessionAbortMs", abortMs, &t.Abort}} {
		if v.ms == "" {
			continue
		}
		n, err := strconv.ParseInt(v.ms, 10, 64)
		if err != nil || n < 1 || n > int64(maxThreshold/time.Millisecond) {
			return t, fmt.Errorf("diagnostics.%s: want milliseconds, from 1 to %d", v.name, maxThreshold/time.Millisecond)
		}
		*v.into = time.Duration(n) * time.Millisecond
	}
	return t, nil
}

// maxThreshold is longer than any run lasts.
const maxThreshold = 7 * 24 * time.Hour
