package cron

import (
	"errors"
	"strings"
	"time"

	cronexpr "github.com/netresearch/go-cron"
)

// wall is a cron expression in a time zone. The expression is asked about wall time
// only, as if there were no zones; which instant a wall time is, on a day on which the
// clocks change too, is decided here:
//
//   - A time that does not exist that day counts as the moment at which the clocks
//     jump, so that a daily job runs every day. Several such times are one slot.
//   - A time that exists twice counts once, the first time.
//   - An expression that runs in every hour goes on by real time: what does not exist
//     is left out, what exists twice runs twice.
type wall struct {
	expr   cronexpr.Schedule // in UTC
	zone   *time.Location
	hourly bool // the hour is a wildcard
}

// searchYears is how far ahead an expression is looked for: 29 February is up to
// eight years away.
const searchYears = 12

var exprParser = cronexpr.MustNewParser(cronexpr.SecondOptional | cronexpr.Minute | cronexpr.Hour | cronexpr.Dom | cronexpr.Month |
	cronexpr.Dow | cronexpr.Extended | cronexpr.DowOrDom).WithMaxSearchYears(searchYears)

// parseWall reads an expression of five fields, or six with seconds first.
func parseWall(expr string, zone *time.Location) (wall, error) {
	fields := strings.Fields(expr)
	if len(fields) != 5 && len(fields) != 6 || strings.Contains(fields[0], "=") {
		return wall{}, errors.New("want five fields, or six with seconds first")
	}
	spec, err := exprParser.Parse("TZ=UTC " + expr)
	return wall{expr: spec, zone: zone, hourly: strings.Contains(fields[len(fields)-4], "*")}, err
}

// topOfHour says whether an expression runs at minute 0 of hours that it does not
// name: such jobs would all start at once.
func topOfHour(expr string) bool {
	f := strings.Fields(expr)
	if len(f) == 6 {
		if f[0] != "0" {
			return false
		}
		f = f[1:]
	}
	return len(f) == 5 && f[0] == "0" && strings.Contains(f[1], "*")
}

// next is the first slot after a time; ok is false where there is none.
func (w wall) next(after time.Time) (slot time.Time, ok bool) {
	// Where the clocks change within a day, wall time that has passed may come again,
	// and what was jumped over counts from now on: look from that far back.
	least, most := w.offset(after), w.offset(after)
	for _, d := range []time.Duration{-aDay, aDay} {
		o := w.offset(after.Add(d))
		least, most = min(least, o), max(most, o)
	}
	from := naive(after, w.offset(after))
	if most > least {
		from = from.Add(least - most - time.Second)
	}
	for at := from; ; {
		if at = w.expr.Next(at); at.IsZero() {
			return slot, ok
		}
		first, again := w.instants(at)
		for _, t := range []time.Time{first, again} {
			if t.After(after) && (!ok || t.Before(slot)) {
				slot, ok = t, true
			}
		}
		if ok && !first.Before(slot) {
			return slot, true // later wall times are not earlier moments
		}
	}
}

// aDay is a little more than a day: no two changes of a clock are nearer.
const aDay = 26 * time.Hour

// instants gives the moments at which clocks show a wall time, which comes as the
// same numbers in UTC. again is zero but for a time that runs twice; both are zero for
// one that is left out.
func (w wall) instants(at time.Time) (first, again time.Time) {
	before, after := w.offset(at.Add(-aDay)), w.offset(at.Add(aDay))
	early, late := at.Add(-max(before, after)), at.Add(-min(before, after))
	isEarly, isLate := w.offset(early) == at.Sub(early), w.offset(late) == at.Sub(late)
	switch {
	case isEarly && isLate && !early.Equal(late):
		if w.hourly {
			return early, late
		}
		return early, time.Time{}
	case isEarly:
		return early, time.Time{}
	case isLate:
		return late, time.Time{}
	case w.hourly:
		return time.Time{}, time.Time{}
	}
	jump, _ := late.In(w.zone).ZoneBounds()
	return jump.UTC(), time.Time{}
}

// offset is how far clocks are ahead of UTC at a moment.
func (w wall) offset(t time.Time) time.Duration {
	_, seconds := t.In(w.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// naive is what clocks show, as the same numbers in UTC.
func naive(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }
