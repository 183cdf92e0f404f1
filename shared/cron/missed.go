package cron

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Policies for slots that passed while nothing could run them.
const (
	MissedSkip   = "skip"    // they are left out
	MissedOnce   = "once"    // one run for the newest, however late; the default
	missedWithin = "within:" // one run for the newest, if it is not later than a duration
)

// onTime is how late a run may begin and still be in time: what a scheduler that is
// precise to the minute, and the look of the watchdog after it, may take.
const onTime = 3 * time.Minute

// policy says what becomes of late slots.
type policy struct{ most time.Duration } // how late a slot may be run; negative: any time

func parsePolicy(text string) (policy, error) {
	switch text {
	case "", MissedOnce:
		return policy{-1}, nil
	case MissedSkip:
		return policy{onTime}, nil
	}
	span, ok := strings.CutPrefix(text, missedWithin)
	if !ok {
		return policy{}, errors.New("must be skip, once or within:<duration>, as in within:30m")
	}
	d, err := time.ParseDuration(span)
	if days, ok := strings.CutSuffix(span, "d"); ok && err != nil {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d <= 0 {
		return policy{}, errors.New("must be within: and a duration, as in within:30m")
	}
	return policy{max(d, onTime)}, nil
}

func (p policy) allows(late time.Duration) bool { return p.most < 0 || late <= p.most }

// missedRows is how many missed slots get an entry of their own in the history; the
// oldest entry stands for those before it.
const missedRows = 20

// due are the slots of a job that have come.
type due struct {
	newest time.Time   // that may run
	before []time.Time // older ones, the last missedRows of them, oldest first
	count  int64       // of all older ones
}

// dueSlots lists what has come up to now, of which first is the oldest. ok is false
// where first has not come.
func dueSlots(s Schedule, first, now time.Time) (d due, ok bool) {
	if first.After(now) {
		return d, false
	}
	d.newest = first
	for one := true; ; one = false {
		next, more := s.Next(d.newest)
		if !more || next.After(now) {
			return d, true
		}
		if one {
			to, n := s.jump(next, now) // it may have been a long time: go to its end at once
			next, d.count = to, n
		}
		d.before = append(d.before, d.newest)
		if len(d.before) > missedRows {
			d.before = d.before[1:]
		}
		d.newest, d.count = next, d.count+1
	}
}

// jump passes over slots that nobody needs one by one: from one slot to a later one
// with at least missedRows between it and now. n is how many slots were passed, an
// estimate for expressions.
func (s Schedule) jump(from, now time.Time) (to time.Time, n int64) {
	const enough = 10_000 // slots that are cheap to go through
	switch s.kind {
	case kindEvery:
		if n = int64(now.Sub(from)/s.every) - missedRows - 1; n > 0 {
			return from.Add(time.Duration(n) * s.every), n
		}
	case kindCron:
		if now.Sub(from) < enough*time.Second {
			return from, 0
		}
		// How far a few slots reach tells how dense they are.
		const few = 64
		at := from
		for range few {
			next, ok := s.Next(at)
			if !ok || next.After(now) {
				return from, 0
			}
			at = next
		}
		pause := at.Sub(from) / few
		if now.Sub(from)/pause < enough {
			return from, 0
		}
		if next, ok := s.Next(now.Add(-pause * enough / 2)); ok && next.After(from) && !next.After(now) {
			return next, int64(next.Sub(from) / pause)
		}
	}
	return from, 0
}
