package watch

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/clock"
	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

// deaf is a provider that gives a part, and whatever its context says, goes on only when
// it is freed.
func deaf(free <-chan struct{}, then ...model.Part) call {
	return func(ctx context.Context) iter.Seq2[model.Part, error] {
		return func(yield func(model.Part, error) bool) {
			if !yield(model.Part{Text: "x"}, nil) {
				return
			}
			<-free
			model.Progress(ctx)()
			for _, p := range then {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// TestRuntime51_AfterAbort_AStreamThatDoesNotEnd: row "after abort: 2 s settle": whatever
// told it to end, a call that goes on is left behind then, and is nobody's sign of life.
func TestRuntime51_AfterAbort_AStreamThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		abort time.Duration // 0: nobody aborts
		after time.Duration
		idle  bool
	}{
		{"its caller ends", 30 * s, 32 * s, false},
		{"it is silent for too long", 0, 62 * s, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.abort > 0 {
					time.AfterFunc(row.abort, cancel)
				}
				lives := 0
				ctx = model.WithProgress(ctx, func() { lives++ })
				free, start := make(chan struct{}), time.Now()
				turn := modeltest.Collect(t, watched(ctx, window{first: 120 * s, idle: 60 * s}, deaf(free, model.Part{Text: "late"})))
				if took := time.Since(start); took != row.after {
					t.Errorf("it was left after %s, want %s", took, row.after)
				}
				if !errors.Is(turn.Err, ErrLeft) || errors.Is(turn.Err, model.ErrIdle) != row.idle || turn.Text() != "x" {
					t.Errorf("%q, err = %v", turn.Text(), turn.Err)
				}
				close(free)
				synctest.Wait() // its goroutine ends all the same
				if lives != 0 {
					t.Error("a call that was left behind is a sign of life")
				}
			})
		})
	}
}

// A call that ends in time is waited for.
func TestRuntime51_AfterAbort_AStreamThatEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		free := make(chan struct{})
		time.AfterFunc(10*s, cancel)
		time.AfterFunc(11*s, func() { close(free) })
		start := time.Now()
		turn := modeltest.Collect(t, watched(ctx, windows, deaf(free, model.Part{Done: &model.Done{StopReason: "stop"}})))
		if took := time.Since(start); took != 11*s || turn.Err != nil {
			t.Errorf("ended after %s with %v", took, turn.Err)
		}
	})
}

// Whoever leaves the range does not wait longer either.
func TestRuntime51_AfterAbort_LeavingTheRange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free, start := make(chan struct{}), time.Now()
		for range watched(t.Context(), windows, deaf(free)) {
			break
		}
		if took := time.Since(start); took != Settle {
			t.Errorf("took %s", took)
		}
		close(free)
	})
}

// A panic of an adapter is its caller's, as it was.
func TestAPanicOfACallReachesItsCaller(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("panicked with %v", p)
		}
	}()
	for range watched(t.Context(), windows, func(context.Context) iter.Seq2[model.Part, error] {
		return func(yield func(model.Part, error) bool) {
			yield(model.Part{Text: "x"}, nil)
			panic("broken")
		}
	}) {
		continue
	}
	t.Error("nothing was told")
}

// alarms counts the waits that are begun on the machine's clock.
type alarms struct {
	clock.System

	n int
}

func (a *alarms) After(d time.Duration) <-chan time.Time {
	a.n++
	return a.System.After(d)
}

// A call that has ended is not waited for: no alarm stays behind it.
func TestRuntime51_AfterAbort_AStreamThatHasEnded(t *testing.T) {
	t.Parallel()
	var c alarms
	for range 100 {
		for range leaving(t.Context(), &c, func(context.Context) iter.Seq2[model.Part, error] {
			return func(yield func(model.Part, error) bool) { yield(model.Part{Text: "x"}, nil) }
		}) {
			continue
		}
	}
	if c.n != 0 {
		t.Errorf("%d alarms", c.n)
	}
}
