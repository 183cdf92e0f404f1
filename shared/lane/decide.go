package lane

import (
	"time"

	"laneway/shared/claim"
	"laneway/shared/session"
)

// Action is the one thing that the receiver of a wake-up does.
type Action int

// The actions, in the order in which they are considered.
const (
	Settle  Action = iota + 1 // runs ended and not settled, or cut off and not ended
	Leave                     // a live claim (its holder looks again), or nothing to do
	Forward                   // the next run is of another lane: wake it there
	Resume                    // the active run's next attempt
	Start                     // the pending run that is next
	Wait                      // the message that is next is debounced: look again later
)

// Decision is an Action with what it is about.
type Decision struct {
	Do   Action
	Run  session.Pending // Start
	Lane string          // Forward
	For  time.Duration   // Wait
}

// Decide says what the receiver of a wake-up on a lane does about a session. It is
// made again after each claim that failed, from the item that was there.
func Decide(m session.Meta, lane string, now time.Time, t claim.Times) Decision {
	if len(m.Unsettled) > 0 || len(m.Cut()) > 0 {
		return Decision{Do: Settle}
	}
	if m.Owned(now, t.Slack) || m.Asleep(now) {
		return Decision{Do: Leave}
	}
	if m.Active != "" {
		if m.ActiveLane != lane {
			return Decision{Do: Forward, Lane: m.ActiveLane}
		}
		return Decision{Do: Resume}
	}
	p, ok := m.Lowest()
	switch {
	case !ok:
		return Decision{Do: Leave}
	case p.Lane != lane:
		return Decision{Do: Forward, Lane: p.Lane}
	}
	if wait := debounced(m, now); wait > 0 {
		return Decision{Do: Wait, For: wait}
	}
	return Decision{Do: Start, Run: p}
}

// debouncedUntil is until when the message that is next waits for others to come (spec:
// runtime 2.6); zero: it does not. A run of its own right never does.
func debouncedUntil(m session.Meta) time.Time {
	p, ok := m.Lowest()
	if !ok || p.Mode == "" || m.Active != "" {
		return time.Time{}
	}
	return m.Debounce
}

// debounced is how much of that is left; 0: nothing.
func debounced(m session.Meta, now time.Time) time.Duration {
	return max(debouncedUntil(m).Sub(now), 0)
}
