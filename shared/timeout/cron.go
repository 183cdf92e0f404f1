package timeout

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
