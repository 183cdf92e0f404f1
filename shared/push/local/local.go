// Package local is the push port of one machine: a registry of live connections
// and the sockets behind them.
//
// Guarantees: posts to one connection reach its sink one after another, in the
// order in which their turn came; a slow connection delays no other; a post ends
// within the time limit, waiting for its turn included; a connection that was
// unregistered or closed gets nothing more and answers push.ErrGone. There are
// no goroutines here.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"laneway/shared/meter"
	"laneway/shared/push"
)

// DefaultLimit is the largest message: the stock gateway's payload limit.
const DefaultLimit = 25 << 20

// closeNormal is WebSocket's code for an end that is nobody's fault.
const closeNormal = 1000

// Sink is one live connection as its owner, the WebSocket front, sees it. Write
// must not keep the message; after an error of Write the owner is expected to
// end the connection and unregister it. Close must be callable during a Write
// and must not wait for the peer.
type Sink interface {
	Write(ctx context.Context, message []byte) error
	Close(code int, reason string) error
}

// Config is what New takes; its zero value is usable.
type Config struct {
	// Limit is the largest message in bytes; zero: DefaultLimit. With the limits
	// of API Gateway it is push.MaxFrame.
	Limit int
	// Timeout bounds a post; zero: push.PostTimeout.
	Timeout time.Duration
}

// Registry implements push.Poster for the connections that are registered.
type Registry struct {
	limit   int
	timeout time.Duration

	mu    sync.Mutex // never held while a sink is called
	conns map[string]*conn
}

var _ push.Poster = (*Registry)(nil)

type conn struct {
	sink Sink
	turn chan struct{} // holds a value while a post is in the sink
	gone chan struct{} // closed when unregistered
}

// New makes an empty registry.
func New(c Config) *Registry {
	return &Registry{
		limit:   cmp.Or(max(c.Limit, 0), DefaultLimit),
		timeout: cmp.Or(max(c.Timeout, 0), push.PostTimeout),
		conns:   make(map[string]*conn),
	}
}

// Register makes a connection reachable under id until unregister is called,
// which may be done more than once. An older connection of that id is forgotten;
// its unregister does not touch the new one.
func (r *Registry) Register(id string, sink Sink) (unregister func()) {
	c := &conn{sink: sink, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.conns[id]; old != nil {
		close(old.gone)
	}
	r.conns[id] = c
	return func() { r.remove(id, c) }
}

// remove forgets c, and reports whether it was there.
func (r *Registry) remove(id string, c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns[id] != c {
		return false
	}
	delete(r.conns, id)
	close(c.gone)
	return true
}

// Len is how many connections are live.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

func (r *Registry) find(id string) *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns[id]
}

// Post implements push.Poster.
func (r *Registry) Post(ctx context.Context, to push.Target, message []byte) error {
	c := r.find(to.ConnectionID)
	if c == nil {
		return push.ErrGone
	}
	if len(message) > r.limit {
		return fmt.Errorf("%w: %d bytes", push.ErrTooLarge, len(message))
	}
	m := meter.From(ctx)
	m.Add(meter.PostCalls, 1)
	m.Add(meter.PostUnits, push.Units(len(message)))

	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
	case <-c.gone:
		return push.ErrGone
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for earlier posts: %w", push.ErrFailed, ctx.Err())
	}
	defer func() { <-c.turn }()
	if c.isGone() { // both may have been ready
		return push.ErrGone
	}
	if err := c.sink.Write(ctx, message); err != nil {
		if c.isGone() || errors.Is(err, push.ErrGone) {
			return push.ErrGone
		}
		return fmt.Errorf("%w: %w", push.ErrFailed, err)
	}
	return nil
}

// Close implements push.Poster. What waits for its turn is not delivered.
func (r *Registry) Close(_ context.Context, to push.Target) error {
	c := r.find(to.ConnectionID)
	if c == nil || !r.remove(to.ConnectionID, c) {
		return nil
	}
	if err := c.sink.Close(closeNormal, ""); err != nil && !errors.Is(err, push.ErrGone) {
		return fmt.Errorf("%w: close: %w", push.ErrFailed, err)
	}
	return nil
}

func (c *conn) isGone() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}
