package loop

import (
	"context"

	"laneway/shared/timeout"
)

// leave makes a call to what is not the loop's own: models to choose from, tools,
// prompts, which read files and may run what others wrote. One that goes on for
// timeout.Settle after ctx has ended is left behind, with whatever it would give: f must
// touch nothing of the attempt.
func leave[T any](ctx context.Context, a *attempt, f func() (T, error)) (T, error) {
	type result struct {
		value    T
		err      error
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.value, r.err = f()
	}()
	take := func(r result) (T, error) {
		if r.panicked != nil {
			panic(r.panicked) // where it would have been without the goroutine
		}
		return r.value, r.err
	}
	select {
	case r := <-done:
		return take(r)
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return take(r)
	case <-a.r.Clock.After(timeout.Settle):
	}
	a.r.Logger.Warn("a call was left behind", "session", a.ref.Hash(), "run", a.st.Ref.Run, "phase", a.phase)
	var none T
	return none, context.Cause(ctx)
}
