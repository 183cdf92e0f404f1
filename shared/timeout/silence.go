package timeout

import (
	"strings"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/watch"
)

// Silence is how long a model call may say nothing before it is cut, and the code of the
// rule that says so, for WhySilence; negative: for ever. It is the longer one of the two
// windows of a call; where nothing cuts silence, what is left of the run does (left; 0:
// the run has no end).
func Silence(w watch.Windows, left time.Duration) (limit time.Duration, rule string) {
	idle, first := watch.IdleWindow(w), watch.FirstEventWindow(w)
	switch {
	case idle > 0 && first > idle:
		return first, ruleFirst + cut(w)
	case idle > 0:
		return idle, idleRow(w)
	case left > 0:
		return left, ruleRun
	}
	return -time.Millisecond, ""
}

// Codes of rules: the rows of runtime 5.2 by their numbers, and two more. Behind them
// stands what else cut the time. They are kept in the hot item, so they are short.
const (
	ruleFirst  = "f"
	ruleRun    = "e"
	cutByRun   = "r"
	cutByAgent = "a"
)

var why = map[string]string{
	"1":       "row 1: the provider's timeoutSeconds",
	"2":       "row 2: the run's own limit, scheduled, endpoint of one's own",
	"3":       "row 3: the run's own limit, scheduled, at most 60 s at a cloud endpoint",
	"4":       "row 4: the run's own limit, at most what the endpoint's class allows",
	"5":       "row 5: the agent's limit, at most what the endpoint's class allows",
	"7":       "row 7: the class of the endpoint, self-hosted",
	"8":       "row 8: the class of the endpoint, cloud",
	ruleFirst: "the first sign of life, which may take longer than later ones",
	ruleRun:   "row 6: a local endpoint may be silent, for what is left of the run",
}

var whyCut = map[string]string{
	cutByRun:   ", cut to the run's own limit",
	cutByAgent: ", cut to the agent's limit",
}

// WhySilence says in words what the code of a rule means. It is empty for one that is
// not known.
func WhySilence(rule string) string {
	for code, text := range why {
		if rest, ok := strings.CutPrefix(rule, code); ok {
			return text + whyCut[rest]
		}
	}
	return ""
}

// idleRow is the first row of the decision table that holds.
func idleRow(w watch.Windows) string {
	own := w.Endpoint == model.Local || w.Endpoint == model.SelfHosted
	switch {
	case w.ProviderTimeout > 0:
		return "1" + cut(w)
	case w.RunTimeout > 0 && w.Cron && own:
		return "2"
	case w.RunTimeout > 0 && w.Cron:
		return "3"
	case w.RunTimeout > 0:
		return "4"
	case w.AgentTimeout > 0:
		return "5"
	case w.Endpoint == model.SelfHosted:
		return "7"
	}
	return "8"
}

// cut says what else bounds a provider's own timeout.
func cut(w watch.Windows) string {
	switch {
	case w.RunTimeout > 0 && w.RunTimeout < w.ProviderTimeout:
		return cutByRun
	case w.RunTimeout <= 0 && w.AgentTimeout > 0 && w.AgentTimeout < w.ProviderTimeout:
		return cutByAgent
	}
	return ""
}
