package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/table"
)

// Block is how many numbers beyond the last commit a stream may use for what it
// pushes without logging it. They count as reserved by that commit: an attempt
// that follows one which ended without a checkpoint begins Block numbers after
// run.Status.NextEvent, any other one at it.
const Block = 100_000

var (
	errNoObject = errors.New("stream: event data is no JSON object")
	// ErrUnsent is what PushLogged answers when a connection did not take all.
	ErrUnsent = errors.New("stream: events left unsent")
)

// Connections says who listens. *connection.Service is one.
type Connections interface {
	Subscribers(ctx context.Context, tenant, sessionKey string) ([]connection.Subscriber, error)
	Load(ctx context.Context, connectionID string) (connection.Row, error)
	// Close removes a connection that is gone, with its subscriptions.
	Close(ctx context.Context, connectionID string) error
}

// Config is what New takes. Store, Poster, Connections and Clock are needed.
type Config struct {
	Store       table.Store
	Poster      push.Poster
	Connections Connections
	Clock       clock.Clock
	Logger      *slog.Logger // nil: silent

	// Pacing is the least time between two deltas of a text; 0: 75 ms, less than 0:
	// none. The first delta of a message is not held back by it.
	Pacing time.Duration
	// PostTimeout bounds a post; 0: 3 s.
	PostTimeout time.Duration
	// TailWindow is how long Close waits for what is not out yet; 0: 5 s.
	TailWindow time.Duration
	// MaxFrame is the largest frame in bytes; 0: 8 KB less than every adapter takes.
	// At least minFrame counts.
	MaxFrame int
}

const minFrame = 4 << 10

// Service makes the streams of runs.
type Service struct{ c Config }

// New checks c.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Poster == nil || c.Connections == nil || c.Clock == nil {
		return nil, errors.New("stream: Config needs Store, Poster, Connections and Clock")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Pacing = max(cmp.Or(c.Pacing, 75*time.Millisecond), 0)
	c.PostTimeout = cmp.Or(c.PostTimeout, 3*time.Second)
	c.TailWindow = cmp.Or(c.TailWindow, 5*time.Second)
	c.MaxFrame = max(cmp.Or(c.MaxFrame, push.MaxFrame-8<<10), minFrame)
	return &Service{c}, nil
}

// Info says whose events they are.
type Info struct {
	Ref        run.Ref
	RunID      string // the caller's, whole
	SessionKey string
	SessionID  string
	AgentID    string
	Lane       string // named in events unless it is empty or "main"
	Spawned    string // session key of the parent; empty: none
	// Origin is the connection that started the run; nil: none, or it wants no events.
	Origin *run.Waiter
	// OriginUsesChat: the run was started by chat.send, so Origin gets chat deltas.
	OriginUsesChat bool
	Heartbeat      bool

	// Messages counts the assistant messages that earlier attempts committed, and Text
	// is what they said, joined by blank lines: item ids and the text of chat deltas
	// go on from there.
	Messages int
	Text     string
	// Again: an attempt before this one may have told more than Messages and Text
	// say, so the first text that a connection gets replaces what it has.
	Again bool
	// MayPost says whether the run's claim is still trusted (C3); while it says no,
	// nothing is posted. nil: always.
	MayPost func() bool
}

func (i *Info) mayPost() bool { return i.MayPost == nil || i.MayPost() }

// Unsent is a frame that a connection did not take in time.
type Unsent struct {
	To    push.Target
	Frame []byte
	Seq   int64 // of an event; 0: a reply
	// Waiter is whose reply it is; nil: an event.
	Waiter *run.Waiter
}

// UnsentError carries what PushLogged could not deliver; it is an ErrUnsent.
type UnsentError struct{ Unsent []Unsent }

func (e *UnsentError) Error() string { return ErrUnsent.Error() }

// Is makes errors.Is(err, ErrUnsent) true.
func (e *UnsentError) Is(target error) bool { return target == ErrUnsent }
