package timeout

import (
	"strings"
	"time"
)

// Limits of a scheduled run beside its own (spec: runtime 5.4).
const (
	// CronSetup is how long its runner may take, from when it holds the run to when its
	// turn begins. Waiting in the lane is before that.
	CronSetup = time.Minute
	// CronDrain is how long what works for it may take to end when its time is over; the
	// end is recorded behind that.
	CronDrain = 15 * time.Second
)

// What a job says of a run that one of its limits ended.
const (
	CronDeadlineText = "cron: job execution timed out"
	CronSetupText    = "cron: isolated agent setup timed out before runner start"
	cronStalledText  = "cron: isolated agent run stalled before execution start"
)

// CronStalledText is what a job says of a run whose turn asked no model in time; phase is
// the last thing that it was at.
func CronStalledText(phase string) string {
	return cronStalledText + " (last phase: " + phase + ")"
}

// CronText is what a job says of a run that ended with a text because time was over: a
// watchdog's own words, else those of the deadline.
func CronText(text string) string {
	if text == CronSetupText || strings.HasPrefix(text, cronStalledText) {
		return text
	}
	return CronDeadlineText
}

// CronBeforeModel is how long a scheduled run's turn may take until it asks a model.
func CronBeforeModel(run Bound) time.Duration {
	const most = time.Minute
	if run.For <= 0 {
		return most
	}
	return max(min(run.For/2, most), time.Second)
}

// longest is what a timer can hold, in seconds: a longer limit is none.
const longest = 2_147_000

// CronMs is the limit of a scheduled run as its record has it. A job that says nothing
// has the default, one that says 0 none.
func CronMs(seconds *float64) int64 {
	switch {
	case seconds == nil:
		return CronTurn.Milliseconds()
	case *seconds <= 0 || *seconds > longest:
		return -1
	}
	return max(int64(*seconds*1000), 1)
}
