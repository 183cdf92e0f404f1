package watch

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"laneway/shared/clock"
	"laneway/shared/model"
)

// Settle is how long a call may take to end that was told to.
const Settle = 2 * time.Second

// ErrLeft is in the chain of the error of a call that did not end although it was told
// to, and was left behind.
var ErrLeft = errors.New("model call left behind")

// leaving makes a call on a goroutine of its own, so that a provider that goes on
// although its context has ended holds nobody for longer than Settle. What it gives
// after that nobody reads, and its signs of life are nobody's.
func leaving(ctx context.Context, c clock.Clock, call func(context.Context) iter.Seq2[model.Part, error]) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		l := &line{ctx: ctx, clock: c, pieces: make(chan piece), left: make(chan struct{})}
		outer := model.Progress(ctx)
		go l.give(call(model.WithProgress(ctx, func() {
			if !l.gone.Load() {
				outer()
			}
		})))
		defer func() { // the consumer may leave before the end
			cancel()
			for more := true; more; {
				_, more = l.next()
			}
		}()
		for {
			p, more := l.next()
			switch {
			case !more:
				return
			case p.panicked != nil:
				panic(p.panicked) // where it would have been without the goroutine
			case !yield(p.part, p.err):
				return
			}
		}
	}
}

// piece is what a call gives: a part, an error, or what it panicked with.
type piece struct {
	part     model.Part
	err      error
	panicked any
}

// line is between the goroutine of a call and the one that ranges over it.
type line struct {
	ctx    context.Context //nolint:containedctx // the call's, whose end starts the wait for it
	clock  clock.Clock
	pieces chan piece
	left   chan struct{}
	gone   atomic.Bool      // nobody reads any more
	late   <-chan time.Time // when the call is left behind; nil: it has not been told to end
}

// next waits for the next piece; false: there is none.
func (l *line) next() (p piece, more bool) {
	if l.gone.Load() {
		return p, false
	}
	select {
	case p, more = <-l.pieces: // also where the call was told to end: what is there needs no wait
		return p, more
	default:
	}
	select {
	case p, more = <-l.pieces:
		return p, more
	case <-l.ctx.Done():
	}
	if l.late == nil {
		l.late = l.clock.After(Settle)
	}
	select {
	case p, more = <-l.pieces:
		return p, more
	case <-l.late:
	}
	l.gone.Store(true)
	close(l.left)
	return piece{err: &model.Error{Class: model.Aborted, Message: "the call did not end when it was cancelled", Err: ErrLeft}}, true
}

// give hands on what a call gives until it ends or nobody reads any more.
func (l *line) give(call iter.Seq2[model.Part, error]) {
	defer close(l.pieces)
	defer func() {
		if p := recover(); p != nil {
			l.hand(piece{panicked: p})
		}
	}()
	for part, err := range call {
		if !l.hand(piece{part: part, err: err}) {
			return
		}
	}
}

func (l *line) hand(p piece) bool {
	select {
	case l.pieces <- p:
		return true
	case <-l.left:
		return false
	}
}
