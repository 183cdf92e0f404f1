// Package notify tells clients what a run's own stream does not: the end of a run
// to everybody who waits for it, the deadline of a wait, the challenge of a new
// connection, and what a stream could not deliver in time.
//
// Guarantees: a waiter is always answered, by its run's end or its deadline, and
// always with the same answer: an answerer writes the answer into the waiter's row
// before it posts, later answerers post what is written there (W2). A second frame
// comes only after a crash or a freeze in between. A wait costs no compute while it
// waits (W1). A timer that is late, early by clock skew, or repeated changes nothing.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/stream"
	"laneway/shared/table"
)

// Connections is what notify needs of a connection's record.
type Connections interface {
	Close(ctx context.Context, connectionID string) error
	Subscribers(ctx context.Context, tenant, sessionKey string) ([]connection.Subscriber, error)
}

// Config of a Service. Fields without a note are required.
type Config struct {
	Store       table.Store
	Poster      push.Poster
	Timers      queue.Timers
	Lanes       *lane.Service
	Stream      *stream.Service
	Connections Connections

	Jobs  Jobs        // nil: there are none
	Clock clock.Clock // nil: the machine's
	NewID id.Source   // nil: UUIDs
	Times claim.Times
	Log   *slog.Logger // nil: the default logger
	// Unreachable is how long a new connection may answer "gone" before it can be posted
	// to: API Gateway does until the function behind $connect has returned. 0: not at all.
	Unreachable time.Duration
	MaxFrame    int           // bytes of a frame; 0: protocol.MaxFrameOut
	Tick        time.Duration // how often an open waiter's connection gets a tick; 0: 4 minutes
}

// Service tells.
type Service struct {
	Config

	sure table.Store // for writes that may be sent again
}

// New checks c and fills its defaults.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Poster == nil || c.Timers == nil || c.Lanes == nil || c.Stream == nil || c.Connections == nil {
		return nil, errors.New("notify: store, poster, timers, lanes, stream and connections are required")
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.NewID == nil {
		c.NewID = id.UUID
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = protocol.MaxFrameOut
	}
	if c.Tick == 0 {
		c.Tick = 4 * time.Minute
	}
	c.Times = c.Times.WithDefaults()
	return &Service{Config: c, sure: claim.Sure(c.Store, c.Clock, c.Times.Retry)}, nil
}

// Timer kinds beside lane.TimerWake.
const (
	timerWait      = "wait"      // look at a waiter's deadline
	timerChallenge = "challenge" // greet a new connection
	timerPost      = "post"      // send what could not be sent
	timerTell      = "tell"      // send to a tenant's operators
)

type timer struct {
	Kind     string   `json:"kind"`
	Tenant   string   `json:"t,omitempty"`
	Run      string   `json:"run,omitempty"` // short id
	RunID    string   `json:"id,omitempty"`  // whole, of a wait
	Conn     string   `json:"c,omitempty"`
	Callback string   `json:"cb,omitempty"`
	Request  string   `json:"r,omitempty"`
	Deadline int64    `json:"until,omitempty"` // ms
	Nonce    string   `json:"nonce,omitempty"`
	Frames   [][]byte `json:"f,omitempty"`
	Tries    int      `json:"n,omitempty"`
}

func (s *Service) after(ctx context.Context, d time.Duration, t timer) error {
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return s.Timers.After(ctx, min(max(d, 0), queue.MaxDelay), b)
}

// HandleTimer does what a timer came for.
func (s *Service) HandleTimer(ctx context.Context, body []byte) error {
	var t timer
	if err := json.Unmarshal(body, &t); err != nil {
		return fmt.Errorf("timer: %w", err)
	}
	switch t.Kind {
	case lane.TimerWake:
		var w lane.Timer
		if err := json.Unmarshal(body, &w); err != nil {
			return fmt.Errorf("timer: %w", err)
		}
		return s.Lanes.Forward(ctx, w.Wakeup)
	case timerWait:
		return s.deadline(ctx, t)
	case timerChallenge:
		return s.challenge(ctx, t)
	case timerPost:
		return s.late(ctx, t)
	case timerTell:
		return s.tell(ctx, t)
	}
	if known, err := s.jobTimer(ctx, t.Kind, body); known {
		return err
	}
	return fmt.Errorf("timer: unknown kind %q", t.Kind)
}

// post sends a frame once. A connection that is gone is forgotten, and counts as
// told: there is nobody left to tell.
func (s *Service) post(ctx context.Context, w run.Waiter, frame []byte) error {
	err := s.Poster.Post(ctx, target(w), frame)
	if errors.Is(err, push.ErrGone) {
		return s.Connections.Close(ctx, w.ConnectionID)
	}
	return err
}
