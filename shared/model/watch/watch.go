// Package watch cuts model calls that are silent for too long (spec: runtime 5.2).
//
// Guarantees: whatever the provider sends counts as life, be it text, thinking, a
// piece of a tool call or a keep-alive; time that the consumer spends on a part
// does not count. When a window passes, the call's context is cancelled at once,
// which closes the connection, and the stream ends with one *model.Error of class
// timeout that has model.ErrIdle in its chain. The watching goroutine ends before
// the range does, and so does the call, unless it goes on for Settle after it was told
// to end: then it is left behind, and the error has ErrLeft in its chain.
package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"laneway/shared/clock"
	"laneway/shared/model"
)

// Stream is the Stream of a model.Provider.
type Stream func(context.Context, model.Request) iter.Seq2[model.Part, error]

// Idle makes the call when it is ranged over and watches it: the windows follow
// from w by IdleWindow and FirstEventWindow.
func Idle(ctx context.Context, c clock.Clock, w Windows, stream Stream, r model.Request) iter.Seq2[model.Part, error] {
	return guarded(ctx, c, FirstEventWindow(w), IdleWindow(w), func(ctx context.Context) iter.Seq2[model.Part, error] {
		return stream(ctx, r)
	})
}

// guarded watches a call: first is how long until the first sign of life, idle
// between two; 0 is for ever. call gets a context that ends when one passes.
func guarded(ctx context.Context, c clock.Clock, first, idle time.Duration, call func(context.Context) iter.Seq2[model.Part, error]) iter.Seq2[model.Part, error] {
	if first <= 0 && idle <= 0 {
		return leaving(ctx, c, call)
	}
	return func(yield func(model.Part, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		g := &guard{clock: c, idle: idle, window: first, last: c.Now(), changed: make(chan struct{}, 1)}
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { g.watch(done, func() { cancel(model.ErrIdle) }) })
		defer wg.Wait()
		defer close(done)

		outer := model.Progress(ctx)
		for p, err := range leaving(model.WithProgress(ctx, func() { g.alive(); outer() }), c, call) {
			if window, fired := g.pause(); fired {
				yield(model.Part{}, idleError(window, err))
				return
			}
			if !yield(p, err) || err != nil {
				return
			}
			g.resume()
		}
		if window, fired := g.pause(); fired {
			yield(model.Part{}, idleError(window, nil))
		}
	}
}

// idleError is what the run is told; cause is the adapter's own error, which knows
// whose call it was.
func idleError(window time.Duration, cause error) *model.Error {
	e := &model.Error{
		Class:   model.Timeout,
		Message: fmt.Sprintf("LLM idle timeout (%ss): no response from model", strconv.FormatFloat(window.Seconds(), 'f', -1, 64)),
		Err:     model.ErrIdle,
	}
	if inner, ok := errors.AsType[*model.Error](cause); ok {
		e.Provider, e.Model, e.Status = inner.Provider, inner.Model, inner.Status
	}
	if errors.Is(cause, ErrLeft) {
		e.Err = errors.Join(model.ErrIdle, ErrLeft)
	}
	return e
}

// guard holds when the provider was last heard.
type guard struct {
	clock   clock.Clock
	idle    time.Duration
	changed chan struct{} // the window has changed

	mu      sync.Mutex
	last    time.Time
	window  time.Duration // the one that runs now
	started bool          // something was heard
	paused  bool          // the consumer has the part
	fired   bool
}

// alive notes a sign of life.
func (g *guard) alive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.touch()
}

func (g *guard) touch() {
	g.last = g.clock.Now()
	if g.started {
		return
	}
	g.started = true
	g.window = g.idle
	g.changed <- struct{}{} // sent once, so it never blocks
}

// pause stops the watch while the consumer works, and says whether it was too
// late, and after which window.
func (g *guard) pause() (window time.Duration, fired bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = true
	return g.window, g.fired
}

func (g *guard) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = false
	g.touch()
}

// watch waits for a window to pass and calls cut then.
func (g *guard) watch(done <-chan struct{}, cut func()) {
	for {
		var timer <-chan time.Time // nil, for ever, while no window runs
		if left, on := g.left(); on {
			if left <= 0 {
				cut()
				return
			}
			timer = g.clock.After(left)
		}
		select {
		case <-done:
			return
		case <-g.changed:
		case <-timer:
		}
	}
}

// left is what is left of the window that runs, if one does; when it has passed,
// the guard has fired and nothing that comes later counts.
func (g *guard) left() (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.window <= 0:
		return 0, false
	case g.paused:
		// Looked at again after a whole window; resume sets the time anew.
		return g.window, true
	}
	left := g.last.Add(g.window).Sub(g.clock.Now())
	g.fired = left <= 0
	return left, true
}
