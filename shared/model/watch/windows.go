package watch

import (
	"time"

	"laneway/shared/model"
)

// The ceilings of each endpoint class (spec: runtime 5.1, 5.2).
const (
	cloudIdle      = 120 * time.Second
	selfHostedIdle = 300 * time.Second
	cloudCronIdle  = 60 * time.Second
	cloudFirst     = 120 * time.Second
	otherFirst     = 300 * time.Second
)

// Windows are what limits the wait for a provider. Zero means absent: "no timeout"
// of a run is no bound.
type Windows struct {
	// ProviderTimeout is the provider's own timeoutSeconds.
	ProviderTimeout time.Duration
	// RunTimeout is the run's timeout if it was given explicitly.
	RunTimeout time.Duration
	// AgentTimeout is the configured timeout of the agent's runs.
	AgentTimeout time.Duration
	// Cron says that a schedule started the run.
	Cron     bool
	Endpoint model.Endpoint
}

// IdleWindow is how long a stream may be silent; 0: for ever. The rows of the
// decision table, the first that holds wins. An endpoint of no known class counts
// as cloud.
func IdleWindow(w Windows) time.Duration {
	own := w.Endpoint == model.Local || w.Endpoint == model.SelfHosted
	switch {
	case w.ProviderTimeout > 0: // row 1
		return w.within(w.ProviderTimeout)
	case w.RunTimeout > 0 && w.Cron && own: // row 2
		return w.RunTimeout
	case w.RunTimeout > 0 && w.Cron: // row 3
		return min(w.RunTimeout, cloudCronIdle)
	case w.RunTimeout > 0: // row 4
		return w.ceiling(w.RunTimeout)
	case w.AgentTimeout > 0: // row 5
		return w.ceiling(w.AgentTimeout)
	case w.Endpoint == model.Local: // row 6
		return 0
	case w.Endpoint == model.SelfHosted: // row 7
		return selfHostedIdle
	}
	return cloudIdle // row 8
}

// ceiling bounds d by what the endpoint's class allows; local has no ceiling.
func (w Windows) ceiling(d time.Duration) time.Duration {
	switch w.Endpoint {
	case model.Local:
		return d
	case model.SelfHosted:
		return min(d, selfHostedIdle)
	case model.Cloud:
	}
	return min(d, cloudIdle)
}

// within bounds d by the run's timeout or, if it has none, the agent's.
func (w Windows) within(d time.Duration) time.Duration {
	switch {
	case w.RunTimeout > 0:
		return min(d, w.RunTimeout)
	case w.AgentTimeout > 0:
		return min(d, w.AgentTimeout)
	}
	return d
}

// FirstEventWindow is how long the provider may take until it sends anything. It
// holds where the idle window is off, too.
func FirstEventWindow(w Windows) time.Duration {
	switch {
	case w.ProviderTimeout > 0:
		return w.within(w.ProviderTimeout)
	case w.Endpoint == model.Local || w.Endpoint == model.SelfHosted:
		return w.within(otherFirst)
	}
	return w.within(cloudFirst)
}
