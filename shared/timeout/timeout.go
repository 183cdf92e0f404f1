// Package timeout has every limit of time that a run is under, in one place (spec:
// runtime 5.1 to 5.4): how long each is, and why that one holds.
//
// Guarantees: it is pure: the same inputs give the same limits on every machine and in
// every attempt of a run, so that what is left of one is carried over attempts and
// never begins anew; and a zero For is always "no limit", never "at once".
package timeout

import (
	"time"

	"laneway/shared/model/watch"
)

// Limits that depend on nothing.
const (
	Run      = 48 * time.Hour // of a run that nobody gave another
	Settle   = watch.Settle   // what works for a run that was aborted gets so long to end
	CronTurn = time.Hour      // of a scheduled run that nobody gave another
)

// Bound is a limit with its reason.
type Bound struct {
	For time.Duration // 0: none
	Why string        // a piece of a sentence for whoever asks
}

// Budget is how long a run may execute. inputMs is what its caller asked for: 0
// nothing, negative no limit. configured is the agent's; 0: nobody configured it,
// negative: no limit.
func Budget(inputMs int64, configured time.Duration) Bound {
	switch {
	case inputMs < 0:
		return Bound{Why: "its caller asked for no limit"}
	case inputMs > 0:
		return Bound{For: time.Duration(inputMs) * time.Millisecond, Why: "its caller asked for it"}
	case configured < 0:
		return Bound{Why: "runs have no limit by configuration"}
	case configured > 0 && configured != Run:
		return Bound{For: configured, Why: "it is configured for all runs"}
	}
	return Bound{For: Run, Why: "the default of runs"}
}

// End is when a run is over its budget: the time since its first attempt began counts,
// whoever was at it, but for what it waited for approvals. Zero: never.
func (b Bound) End(began time.Time, paused time.Duration) time.Time {
	if b.For <= 0 || began.IsZero() {
		return time.Time{}
	}
	return began.Add(b.For + max(paused, 0))
}

// Left is how much of it is left at a time, never less than nothing; none where there
// is no limit (false).
func (b Bound) Left(began time.Time, paused time.Duration, now time.Time) (time.Duration, bool) {
	end := b.End(began, paused)
	if end.IsZero() {
		return 0, false
	}
	return max(end.Sub(now), 0), true
}
