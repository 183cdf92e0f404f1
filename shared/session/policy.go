package session

import (
	"fmt"
	"strconv"
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

// defaultHour is when the day of a session begins.
const defaultHour = 4

// ParseReset reads a policy: "daily", "daily@HOUR", "idle:MINUTES", or both behind a
// comma; empty, or "none": never.
func ParseReset(s string) (ResetPolicy, error) {
	var p ResetPolicy
	if s = strings.TrimSpace(s); s == "" || s == "none" {
		return p, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(part), "@", ":"), ":")
		n, err := strconv.Atoi(value)
		switch {
		case name == ResetDaily && value == "":
			p.Daily, p.Hour = true, defaultHour
		case name == ResetDaily && err == nil:
			p.Daily, p.Hour = true, min(max(n, 0), 23)
		case name == ResetIdle && err == nil && n > 0:
			p.Idle = time.Duration(n) * time.Minute
		default:
			return ResetPolicy{}, fmt.Errorf("reset policy %q: want daily, daily@HOUR, idle:MINUTES, or both behind a comma", part)
		}
	}
	return p, nil
}

// Stale says whether a session is to start over, and which reason came first: of one
// that began at a time, or was started over then, and had its last message at another.
func (p ResetPolicy) Stale(began, last, now time.Time) (reason string, stale bool) {
	boundary := time.Date(now.Year(), now.Month(), now.Day(), p.Hour, 0, 0, 0, now.Location())
	if boundary.After(now) {
		boundary = boundary.AddDate(0, 0, -1)
	}
	idleAt := last.Add(p.Idle)
	daily, idle := p.Daily && began.Before(boundary), p.Idle > 0 && now.After(idleAt)
	switch {
	case daily && (!idle || !boundary.After(idleAt)):
		return ResetDaily, true
	case idle:
		return ResetIdle, true
	}
	return "", false
}
