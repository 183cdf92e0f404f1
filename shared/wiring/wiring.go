// Package wiring puts the services together over the ports: the same way on AWS,
// over an endpoint, and on one machine.
//
// Guarantees: nothing is started here; what Build returns holds no goroutine. A
// gateway's services link no model.
package wiring

import (
	"errors"
	"log/slog"
	"time"

	"laneway/shared/blob"
	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/cron"
	"laneway/shared/diag"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/loop"
	"laneway/shared/model/profile"
	"laneway/shared/model/retry"
	"laneway/shared/notify"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/queueing"
	"laneway/shared/rpc"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/token"
	"laneway/shared/transcript"
	"laneway/shared/upload"
)

// Ports are the adapters. Blobs may be nil: then rows over transcript.MaxRow are
// refused.
type Ports struct {
	Store  table.Store
	Queue  queue.Sender
	Timers queue.Timers
	Blobs  blob.Store
	// Uploads signs the addresses of uploads; nil: files come in frames only.
	Uploads upload.Signer
	Poster  push.Poster
	Dead    queue.DeadLetterStore // nil: dead letters are not reached from here
}

// Settings hold for all services. Zero values are the defaults of each.
type Settings struct {
	Times        claim.Times
	Clock        clock.Clock
	NewID        id.Source
	Log          *slog.Logger
	Metrics      lane.Metrics  // nil: nothing counts
	Pacing       time.Duration // least time between two deltas to a connection
	MaxFrame     int           // bytes of a frame that is sent
	MaxPayload   int64         // bytes of a frame that clients may send
	ConnLife     time.Duration // how long a connection's record counts
	TickInterval time.Duration // told to clients
	Unreachable  time.Duration // how long a new connection may not be reachable yet
	BusyWait     time.Duration // how long a command waits for a session
	CacheBytes   int           // of transcripts that a warm process keeps; 0: 16 MB; -1: none
	Version      string
	Diagnostics  diag.Thresholds
	Reset        session.Resets    // when sessions start over by themselves; zero: never
	QueueRules   queueing.Settings // of sessions that say nothing; zero: queueing.Default
	Inbound      queueing.Inbound  // how long texts wait for more of their sender; zero: not
	Children     rpc.Children      // nil: runs start no others
	Cron         CronSettings
}

// Core is what every function needs.
type Core struct {
	Ports
	Settings
	Tokens      *token.Watch
	Connections *connection.Service
	Claims      *claim.Service
	Lanes       *lane.Service
	Stream      *stream.Service
	Jobs        *cron.Service
	Notify      *notify.Service
	Transcripts *transcript.Log
	Files       *upload.Service // nil: there are no blobs
}

const defaultCache = 16 << 20

// Build makes the core.
func Build(p Ports, s Settings) (*Core, error) {
	if p.Store == nil || p.Queue == nil || p.Timers == nil || p.Poster == nil {
		return nil, errors.New("wiring: store, queue, timers and poster are required")
	}
	if s.Clock == nil {
		s.Clock = clock.System{}
	}
	if s.NewID == nil {
		s.NewID = id.UUID
	}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	s.Times = s.Times.WithDefaults()
	p.Store = claim.Patient(p.Store, s.Clock, s.Times.Retry)
	c := &Core{Ports: p, Settings: s}
	c.Tokens = &token.Watch{Table: p.Store, Clock: s.Clock}
	c.Connections = &connection.Service{Store: p.Store, Clock: s.Clock, Life: s.ConnLife, IDs: s.NewID, Tokens: c.Tokens, Poster: p.Poster}
	c.Claims = claim.New(claim.Service{Store: p.Store, Clock: s.Clock, NewID: s.NewID, Times: s.Times, Log: s.Log})
	c.Lanes = lane.New(lane.Service{Store: p.Store, Queue: p.Queue, Timers: p.Timers, Clock: s.Clock, NewID: s.NewID, Times: s.Times, Log: s.Log, Metrics: s.Metrics})
	c.Transcripts = &transcript.Log{Store: p.Store, Blobs: p.Blobs}
	if p.Blobs != nil {
		c.Files = upload.New(upload.Service{Store: p.Store, Blobs: p.Blobs, Signer: p.Uploads, Clock: s.Clock, NewID: s.NewID})
	}
	switch {
	case s.CacheBytes == 0:
		c.Transcripts.Cache = &transcript.Cache{Max: defaultCache}
	case s.CacheBytes > 0:
		c.Transcripts.Cache = &transcript.Cache{Max: s.CacheBytes}
	}
	var err error
	c.Stream, err = stream.New(stream.Config{
		Store: p.Store, Poster: p.Poster, Connections: c.Connections, Clock: s.Clock, Logger: s.Log,
		Pacing: s.Pacing, MaxFrame: s.MaxFrame,
	})
	if err != nil {
		return nil, err
	}
	if c.Jobs, err = c.jobs(); err != nil {
		return nil, err
	}
	c.Notify, err = notify.New(notify.Config{
		Store: p.Store, Poster: p.Poster, Timers: p.Timers, Lanes: c.Lanes, Stream: c.Stream, Connections: c.Connections, Jobs: c.Jobs,
		Clock: s.Clock, NewID: s.NewID, Times: s.Times, Log: s.Log, MaxFrame: s.MaxFrame, Unreachable: s.Unreachable,
	})
	return c, err
}

// Gateway makes the service behind the WebSocket.
func (c *Core) Gateway(auth rpc.Auth, dir rpc.Directory) (*rpc.Gateway, error) {
	ender, err := c.ender()
	if err != nil {
		return nil, err
	}
	return rpc.New(rpc.Config{
		Ender: ender, Dead: c.Dead, Diagnostics: c.Diagnostics, Reset: c.Reset, Queue: c.QueueRules, Inbound: c.Inbound, Children: c.Children,
		Store: c.Store, Connections: c.Connections, Lanes: c.Lanes, Claims: c.Claims, Notify: c.Notify, Log: c.Transcripts, Files: c.Files, Jobs: c.Jobs,
		Auth: auth, Directory: dir, Clock: c.Clock, NewID: c.NewID, Logger: c.Log, Version: c.Version,
		MaxPayload: c.MaxPayload, MaxReply: c.MaxFrame, TickInterval: c.TickInterval, BusyWait: c.BusyWait,
	})
}

// Watch makes the service behind the watchdog. caps are the lanes as they are served,
// nil: queue.Definitions; metrics may be nil.
func (c *Core) Watch(caps []queue.Def, metrics diag.Metrics) (*diag.Service, error) {
	return diag.New(diag.Config{
		Store: c.Store, Lanes: c.Lanes, Thresholds: c.Diagnostics, Times: c.Times, Caps: caps,
		Operators: c.Notify, Metrics: metrics, Clock: c.Clock, NewID: c.NewID, Log: c.Log,
	})
}

// RunnerConfig is what a runner has beside the core.
type RunnerConfig struct {
	Models     loop.Models
	Agents     loop.Agents
	Chains     loop.Chains // nil: Models alone
	Preferred  func(agentID string) loop.Preferred
	RunTimeout time.Duration
	StepNeed   time.Duration
	Reserve    time.Duration
	MaxSteps   int64
	Retry      retry.Config
	MemoryMB   int              // of the function; 0: none
	Measure    func(run.Status) // of runs that ended; nil: none
	// FallbackSkip is how long a session passes by a fallback that refused its
	// credential; 0: not at all.
	FallbackSkip time.Duration
}

// Runner makes the service behind the lanes.
func (c *Core) Runner(r RunnerConfig) (*loop.Runner, error) {
	return loop.New(loop.Config{
		Store: c.Store, Lanes: c.Lanes, Claims: c.Claims, Log: c.Transcripts, Stream: c.Stream, Files: c.Files,
		Models: r.Models, Agents: r.Agents, Chains: r.Chains, Preferred: r.Preferred, Cooldowns: &profile.Book{Store: c.Store, Clock: c.Clock}, Ends: c.Notify, Clock: c.Clock, NewID: c.NewID, Logger: c.Log,
		RunTimeout: r.RunTimeout, StepNeed: r.StepNeed, Reserve: r.Reserve, MaxSteps: r.MaxSteps, Retry: r.Retry, MemoryMB: r.MemoryMB, Measure: r.Measure,
		Tokens: c.Tokens,
		Skips:  profile.NewSkips(c.Clock, r.FallbackSkip),
	})
}
