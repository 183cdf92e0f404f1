package timeout

import (
	"time"

	"laneway/shared/model"
	"laneway/shared/model/watch"
)

// Idle is how long a model's stream may be silent, by the decision table of runtime
// 5.2: the first row that holds decides, and is named.
func Idle(w watch.Windows) Bound {
	return Bound{For: watch.IdleWindow(w), Why: idleRow(w), Explicit: w.RunTimeout > 0}
}

func idleRow(w watch.Windows) string {
	own := w.Endpoint == model.Local || w.Endpoint == model.SelfHosted
	switch {
	case w.ProviderTimeout > 0:
		return "row 1: the provider's timeoutSeconds" + within(w)
	case w.RunTimeout > 0 && w.Cron && own:
		return "row 2: the run's own limit, scheduled, endpoint of one's own"
	case w.RunTimeout > 0 && w.Cron:
		return "row 3: the run's own limit, scheduled, at most 60 s at a cloud endpoint"
	case w.RunTimeout > 0:
		return "row 4: the run's own limit, at most what the endpoint's class allows"
	case w.AgentTimeout > 0:
		return "row 5: the agent's limit, at most what the endpoint's class allows"
	case w.Endpoint == model.Local:
		return "row 6: a local endpoint may be silent"
	case w.Endpoint == model.SelfHosted:
		return "row 7: the class of the endpoint, self-hosted"
	}
	return "row 8: the class of the endpoint, cloud"
}

// within says what else bounds a provider's own timeout.
func within(w watch.Windows) string {
	switch {
	case w.RunTimeout > 0 && w.RunTimeout < w.ProviderTimeout:
		return ", cut to the run's own limit"
	case w.RunTimeout <= 0 && w.AgentTimeout > 0 && w.AgentTimeout < w.ProviderTimeout:
		return ", cut to the agent's limit"
	}
	return ""
}

// FirstEvent is how long a provider may take until it sends anything at all; it holds
// where silence later is allowed, too.
func FirstEvent(w watch.Windows) Bound {
	why := "the class of the endpoint"
	if w.ProviderTimeout > 0 {
		why = "the provider's timeoutSeconds" + within(w)
	}
	return Bound{For: watch.FirstEventWindow(w), Why: why, Explicit: w.RunTimeout > 0}
}

// WhySilence says why a model call that is under way may be silent for so long, from
// what is known of it outside: the run's own limit, and whether a schedule started it.
func WhySilence(limit time.Duration, run Bound, cron bool) string {
	switch {
	case run.Explicit && run.For > 0 && limit == run.For:
		return "the run's own limit"
	case cron && limit == time.Minute:
		return "a scheduled run at a cloud endpoint"
	case limit == 2*time.Minute:
		return "the class of the endpoint, cloud"
	case limit == 5*time.Minute:
		return "the class of the endpoint, self-hosted or local"
	}
	return "the provider's timeoutSeconds, the agent's limit, or what is left of the run"
}
