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

// Bounds are what limits the wait for a provider. Zero means absent: "no timeout"
// of a run is no bound.
type Bounds struct {
	// Provider is the provider's own timeoutSeconds.
	Provider time.Duration
	// Run is the run's timeout if it was given explicitly.
	Run time.Duration
	// Agent is the configured timeout of the agent's runs.
	Agent time.Duration
	// Cron says that a schedule started the run.
	Cron     bool
	Endpoint model.Endpoint
}

// IdleWindow is how long a stream may be silent; 0: for ever. The rows of the
// decision table, the first that holds wins. An endpoint of no known class counts
// as cloud.
func IdleWindow(b Bounds) time.Duration {
	own := b.Endpoint == model.Local || b.Endpoint == model.SelfHosted
	switch {
	case b.Provider > 0: // row 1
		return b.within(b.Provider)
	case b.Run > 0 && b.Cron && own: // row 2
		return b.Run
	case b.Run > 0 && b.Cron: // row 3
		return min(b.Run, cloudCronIdle)
	case b.Run > 0: // row 4
		return b.ceiling(b.Run)
	case b.Agent > 0: // row 5
		return b.ceiling(b.Agent)
	case b.Endpoint == model.Local: // row 6
		return 0
	case b.Endpoint == model.SelfHosted: // row 7
		return selfHostedIdle
	}
	return cloudIdle // row 8
}

// ceiling bounds d by what the endpoint's class allows; local has no ceiling.
func (b Bounds) ceiling(d time.Duration) time.Duration {
	switch b.Endpoint {
	case model.Local:
		return d
	case model.SelfHosted:
		return min(d, selfHostedIdle)
	case model.Cloud:
	}
	return min(d, cloudIdle)
}

// within bounds d by the run's timeout or, if it has none, the agent's.
func (b Bounds) within(d time.Duration) time.Duration {
	switch {
	case b.Run > 0:
		return min(d, b.Run)
	case b.Agent > 0:
		return min(d, b.Agent)
	}
	return d
}

// FirstEventWindow is how long the provider may take until it sends anything. It
// holds where the idle window is off, too.
func FirstEventWindow(b Bounds) time.Duration {
	switch {
	case b.Provider > 0:
		return b.within(b.Provider)
	case b.Endpoint == model.Local || b.Endpoint == model.SelfHosted:
		return b.within(otherFirst)
	}
	return b.within(cloudFirst)
}
