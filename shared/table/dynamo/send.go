package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"laneway/shared/clock"
	"laneway/shared/meter"
	"laneway/shared/table"
)

// send sends one request until its outcome is certain, the tries are used up, or the
// context ends. Conflicts and throttles are certain outcomes, but not after a lost
// answer: they are about the repetition and say nothing about the write before.
func (w *write) send(ctx context.Context) outcome {
	call := w.request()
	for try := 1; ; try++ {
		out := w.once(ctx, call)
		lost := errors.Is(out.err, table.ErrUnknown)
		w.ambiguous = w.ambiguous || lost
		open := out.unsent || lost || w.ambiguous && (errors.Is(out.err, table.ErrConflict) || errors.Is(out.err, table.ErrThrottled))
		if !open {
			return out
		}
		if w.ambiguous && !errors.Is(out.err, table.ErrUnknown) {
			out.err = fmt.Errorf("%w: an earlier answer was lost: %w", table.ErrUnknown, out.err)
		}
		if ctx.Err() != nil || try == w.store.c.Tries || w.ambiguous && !w.repeatable() {
			return out
		}
		if err := clock.Sleep(ctx, w.store.c.Clock, backoff(try)); err != nil {
			out.err = fmt.Errorf("%w: %w", out.err, err)
			return out
		}
	}
}

// backoff is full jitter up to 50, 100, 200 ms and so on, at most 400 ms.
func backoff(try int) time.Duration {
	//nolint:gosec // it spreads load and keeps no secret
	return rand.N(min(50*time.Millisecond<<(try-1), 400*time.Millisecond)) + 1
}

// repeatable: a transaction has a client token; a single op does not, so one that adds
// is not sent twice.
func (w *write) repeatable() bool {
	return w.transaction() || len(w.ops[0].Add) == 0
}

func (w *write) transaction() bool { return len(w.ops) > 1 || w.ops[0].Kind == table.Check }

// once sends the request one time.
func (w *write) once(ctx context.Context, call func(context.Context) error) outcome {
	meter.From(ctx).Add(meter.TableCalls, 1)
	try, cancel := context.WithTimeout(ctx, w.store.c.TryTimeout)
	defer cancel()
	err := call(try)
	if err == nil {
		return outcome{}
	}
	out := classify(err)
	switch ended := ctx.Err(); {
	case ended != nil && !errors.Is(out.err, ended):
		out.err = fmt.Errorf("%w: %w", out.err, ended)
	case ended == nil && isContext(out.err):
		// The try's deadline, not the caller's: it must not look like the caller's.
		out.err = fmt.Errorf("%w: no answer within %v", table.ErrUnknown, w.store.c.TryTimeout)
	}
	w.countFailed(ctx, out)
	return out
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
