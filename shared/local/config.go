// Package local is the single-machine edition: the same services and the same
// handlers as on AWS, in one process over files, or in several over stores that they
// share.
//
// Guarantees: what was acknowledged survives kill -9 and goes on after the next
// start: over files at once, since the process that has the data lock ends the leases
// of its predecessor, over shared stores when another process finds it. Frames of one connection are accepted in the order in which they
// were sent. Serve returns when its context has ended and everything that it
// started has.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"laneway/shared/agent"
	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/diag"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/model/route"
	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/queueing"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Limits are what a client may send and be sent, and for how long.
type Limits struct {
	First    int64         // bytes of the first message
	Message  int64         // bytes of a message after hello
	Out      int           // bytes of a frame that is sent
	Idle     time.Duration // without a frame in either direction; 0: no limit
	Life     time.Duration // of a connection; 0: no limit
	Parallel bool          // frames of one connection are served in any order
	Pacing   time.Duration // least time between two deltas
}

// The limits of the stock gateway and of API Gateway.
var (
	Stock      = Limits{First: protocol.MaxFirstMessage, Message: protocol.MaxMessageIn, Out: 6 << 20}
	APIGateway = Limits{
		First: protocol.MaxMessageInAPIGateway, Message: protocol.MaxMessageInAPIGateway, Out: push.MaxFrame - 8<<10,
		Idle: 10 * time.Minute, Life: 2 * time.Hour, Parallel: true, Pacing: 250 * time.Millisecond,
	}
)

// LimitsByName finds limits; empty is Stock.
func LimitsByName(name string) (Limits, error) {
	switch name {
	case "", "stock":
		return Stock, nil
	case "apigateway":
		return APIGateway, nil
	}
	return Limits{}, fmt.Errorf("limits %q: want stock or apigateway", name)
}

// sharedLife is how long a connection lives over shared stores where no limit was set.
const sharedLife = 24 * time.Hour

// Config of a Server. Fields without a note are required.
type Config struct {
	Data   string // directory, made where it is missing: stores, workspaces
	Listen string // address; port 0 takes a free one
	Token  string // that clients connect with, beside stored ones
	Limits Limits
	Model  model.Selected
	Models []model.Info
	// Routes finds the models of a configuration once the stores are open, in the place
	// of Model and Models; nil: those. It may read the config table.
	Routes func(context.Context, table.Store) (*route.Set, error)
	// Stores to work over instead of files in Data; nil: those.
	Stores *Stores
	// Advertise is the http address under which other processes over the same shared
	// stores reach this one; empty: that of Listen.
	Advertise string
	// Agents beside main; main gets Workspace unless it is among them.
	Agents    []agent.Spec
	Workspace string // of agent main; empty: in Data
	Shell     bool   // gives agents the tools write and exec

	Clock    clock.Clock  // nil: the machine's
	Log      *slog.Logger // nil: the default logger
	Version  string
	Times    claim.Times
	Lanes    []queue.Def   // nil: queue.Definitions
	Function time.Duration // how long an invocation may last, as on AWS; 0: for ever
	Retry    retry.Config
	// FallbackSkip is how long a session passes by a fallback that refused its
	// credential; 0: not at all.
	FallbackSkip time.Duration
	// Diagnostics say when a session that does not move is noticed.
	Diagnostics diag.Thresholds
	// Reset says when sessions start over by themselves; zero: never.
	Reset session.Resets
	// Queue is what becomes of messages that come while a run is at work, in sessions
	// that say nothing; zero: queueing.Default.
	Queue   queueing.Settings
	Inbound queueing.Inbound // how long texts wait for more of their sender; zero: not
	CatchUp CatchUp
	Zone    *time.Location // of the user, and of schedules that name none; nil: the machine's
	NoSync  bool           // for tests: no durability
	// Runner wraps the runner; for tests.
	Runner func(*loop.Runner) *loop.Runner
}

func (c Config) withDefaults() (Config, error) {
	if c.Data == "" || c.Listen == "" {
		return c, errors.New("local: Data and Listen are required")
	}
	if c.Model.Provider == nil && c.Routes == nil {
		return c, errors.New("local: a model is required")
	}
	if c.Limits == (Limits{}) {
		c.Limits = Stock
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Stores != nil && c.Stores.Shared {
		if c.Token == "" {
			return c, errors.New("local: processes over shared stores know each other by the token")
		}
		// A record outlives a process that died with its connections, so it must end by
		// age, and a connection with it.
		c.Limits.Life = cmp.Or(c.Limits.Life, sharedLife)
	}
	c.Version = cmp.Or(c.Version, "dev")
	c.Times = c.Times.WithDefaults()
	c.CatchUp.AtOnce = cmp.Or(c.CatchUp.AtOnce, 5)
	c.CatchUp.Step = cmp.Or(c.CatchUp.Step, 5*time.Second)
	c.Zone = cmp.Or(c.Zone, time.Local)
	return c, nil
}
