package session

import (
	"fmt"
	"strings"
	"time"
)

// Why a session was started over by itself.
const (
	ResetDaily = "daily"
	ResetIdle  = "idle"
)

// ResetPolicy says when a session starts over by itself, with the message that comes
// next (spec: runtime 3.3). The zero value is never.
type ResetPolicy struct {
	Daily bool
	Hour  int           // of Daily, local time, 0 to 23
	Idle  time.Duration // without a message; 0: this is no reason
}

// Resets are the policies of a gateway. The zero value is never, everywhere.
type Resets struct {
	Base     ResetPolicy
	Types    map[string]ResetPolicy // by Place.Type, in the place of Base
	Channels map[string]ResetPolicy // by Place.Channel, in the place of both
}

// For is the policy of a conversation.
func (r Resets) For(p Place) ResetPolicy {
	if policy, ok := r.Channels[p.Channel]; ok {
		return policy
	}
	if policy, ok := r.Types[p.Type]; ok {
		return policy
	}
	return r.Base
}

// String is the policy as ParseReset reads it.
func (p ResetPolicy) String() string {
	var parts []string
	if p.Daily {
		parts = append(parts, fmt.Sprintf("%s@%d", ResetDaily, p.Hour))
	}
	if p.Idle > 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", ResetIdle, p.Idle/time.Minute))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ",")
}

// Stale says whether a session is to start over, and which reason came first: of one
// that began at a time, or was started over then, and had its last message at another.
// One that was never touched, the zero time, is stale under every policy but never.
func (p ResetPolicy) Stale(began, last, now time.Time) (reason string, stale bool) {
	boundary := p.hourOf(now, 0)
	if boundary.After(now) {
		boundary = p.hourOf(now, -1)
	}
	idleAt := last.Add(p.Idle)
	daily, idle := p.Daily && began.Before(boundary), p.Idle > 0 && now.After(idleAt)
	switch {
	case daily && (!idle || !boundary.After(idleAt)):
		return ResetDaily, true
	case idle:
		return ResetIdle, true
	case p.Daily && last.IsZero():
		return ResetDaily, true
	}
	return "", false
}

// hourOf is the hour of Daily on the day of a time, or so many days from it. Where clocks
// leave the hour out it is the one that they show instead; that is no hour to count from.
func (p ResetPolicy) hourOf(t time.Time, days int) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()+days, p.Hour, 0, 0, 0, t.Location())
}
