package wiring

import (
	"net/http"
	"time"

	"laneway/shared/cron"
)

// CronSettings hold for scheduled runs.
type CronSettings struct {
	// Scheduler fires what is due; nil: whoever looks for it by itself.
	Scheduler cron.Scheduler
	Zone      *time.Location // of expressions that name none; nil: UTC
	HTTP      *http.Client   // posts webhooks; nil: cron.PublicClient
}

func (c *Core) jobs() (*cron.Service, error) {
	j := c.Cron
	return cron.New(cron.Config{
		Store: c.Store, Lanes: c.Lanes, Timers: c.Timers, Scheduler: j.Scheduler, Zone: j.Zone, HTTP: j.HTTP,
		Clock: c.Clock, NewID: c.NewID, Times: c.Times, Log: c.Log,
	})
}
