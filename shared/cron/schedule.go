package cron

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"laneway/shared/protocol"
)

// Kinds of schedules.
const (
	kindAt    = "at"
	kindEvery = "every"
	kindCron  = "cron"
)

// Schedule is a job's schedule, ready to be asked for its slots. It holds no state and
// gives the same slots on every machine.
type Schedule struct {
	once    time.Time // of at
	every   time.Duration
	anchor  time.Time
	wall    wall
	stagger time.Duration
	kind    string
}

// topStagger is the window over which jobs that run at the top of every hour are
// spread.
const topStagger = 5 * time.Minute

// NewSchedule reads a schedule. An expression without a zone is in zone; jobID decides
// where in its stagger window a job runs. The error is a *FieldError whose field is a
// member of the schedule.
func NewSchedule(s protocol.CronSchedule, jobID string, zone *time.Location) (Schedule, error) {
	if s.TZ != "" {
		z, err := time.LoadLocation(s.TZ)
		if err != nil || s.TZ == "Local" {
			return Schedule{}, field("tz", "unknown time zone %q: want a name such as Europe/Berlin", s.TZ)
		}
		zone = z
	}
	out := Schedule{kind: s.Kind}
	switch s.Kind {
	case kindAt:
		at, _, err := ParseAt(s.At, s.TZ)
		if err != nil {
			return out, field("at", "%v", err)
		}
		out.once = at
	case kindEvery:
		if s.EveryMs == nil || *s.EveryMs < minEvery.Milliseconds() {
			return out, field("everyMs", "must be >= %d", minEvery.Milliseconds())
		}
		if *s.EveryMs > maxEvery.Milliseconds() {
			return out, field("everyMs", "must be <= %d", maxEvery.Milliseconds())
		}
		out.every, out.anchor = time.Duration(*s.EveryMs)*time.Millisecond, time.UnixMilli(0)
		if s.AnchorMs != nil {
			out.anchor = time.UnixMilli(*s.AnchorMs)
		}
	case kindCron:
		w, err := parseWall(s.Expr, zone)
		if err != nil {
			return out, field("expr", "%q is not a cron expression: %v", s.Expr, err)
		}
		out.wall = w
		window := time.Duration(0)
		switch {
		case s.StaggerMs != nil:
			window = time.Duration(min(*s.StaggerMs, maxEvery.Milliseconds())) * time.Millisecond
		case topOfHour(s.Expr):
			window = topStagger
		}
		out.stagger = staggerOf(jobID, window)
	default:
		return out, field("kind", "must be at, every or cron")
	}
	return out, nil
}

const (
	// minEvery keeps a job from doing nothing but being started.
	minEvery = time.Second
	// maxEvery is far beyond any use and within what time can be computed with.
	maxEvery = 100 * 365 * 24 * time.Hour
)

// staggerOf is a job's place in a stagger window: the same for as long as it lives.
func staggerOf(jobID string, window time.Duration) time.Duration {
	ms := uint64(window.Milliseconds())
	if ms == 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(jobID))
	return time.Duration(uint64(binary.BigEndian.Uint32(sum[:4]))%ms) * time.Millisecond
}

// Next is the first slot after a time; ok is false where no more come.
func (s Schedule) Next(after time.Time) (slot time.Time, ok bool) {
	switch s.kind {
	case kindAt:
		return s.once, s.once.After(after)
	case kindEvery:
		if after.Before(s.anchor) {
			return s.anchor, true
		}
		since := after.Sub(s.anchor)
		return s.anchor.Add(since - since%s.every + s.every), true
	}
	slot, ok = s.wall.next(after.Add(-s.stagger))
	return slot.Add(s.stagger), ok
}

// recurs says whether a schedule has more than one slot.
func (s Schedule) recurs() bool { return s.kind != kindAt }

// Layouts of a time of day without a zone.
var atLayouts = []string{"2006-01-02T15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// ParseAt reads an ISO 8601 time. One without a zone is in tz, which may be empty: then
// it is UTC, and assumed says so. A time that does not exist in the zone is the moment
// at which its clocks jump, one that exists twice is the first.
func ParseAt(text, tz string) (at time.Time, assumed bool, err error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Truncate(time.Millisecond), false, nil
		}
	}
	zone := time.UTC
	if tz != "" {
		if zone, err = time.LoadLocation(tz); err != nil {
			return at, false, fmt.Errorf("unknown time zone %q", tz)
		}
	}
	for _, layout := range atLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			first, _ := wall{zone: zone}.instants(at)
			return first, tz == "", nil
		}
	}
	return at, false, errors.New("want a time such as 2026-12-24T18:00 or 2026-12-24T18:00:00+01:00")
}
