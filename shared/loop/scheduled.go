package loop

import (
	"context"
	"errors"
	"sync"
	"time"

	"laneway/shared/queue"
	"laneway/shared/timeout"
)

// What a scheduled run is at before it asks a model, as its job says where it went no
// further.
const (
	phaseModel     = "model"     // which models may answer
	phaseWorkspace = "workspace" // the agent's workspace and tools
	phaseMessages  = "messages"  // those that wait and belong to the turn
	phaseContext   = "context"   // the system prompt and the conversation
)

// Watchdogs of scheduled runs (spec: runtime 5.4): nobody sits before such a run and
// stops it when nothing happens.
var (
	errSetup    = errors.New("the run's setup timed out")
	errNotBegun = errors.New("the turn asked no model in time")
)

func scheduled(lane string) bool { return lane == string(queue.Cron) }

// setUp loads what the run needs. A scheduled run has a minute for it.
func (a *attempt) setUp(ctx context.Context) error {
	if !scheduled(a.h.Meta().ActiveLane) {
		return a.load(ctx)
	}
	lctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		select {
		case <-a.r.Clock.After(timeout.CronSetup):
			cancel(errSetup)
		case <-lctx.Done():
		}
	})
	err := a.load(lctx)
	if err != nil && errors.Is(context.Cause(lctx), errSetup) {
		return errSetup
	}
	return err
}

// endSetup ends a run that could not be set up in time, with nothing but its record.
func (a *attempt) endSetup(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.r.Reserve+settleTime)
	defer cancel()
	a.bare = true
	if err := a.load(last); err != nil {
		return a.abandon(last, err)
	}
	return a.over(last, a.finishTimeout(last, timeout.CronSetupText))
}

// beforeModel is how long the turn may take until it asks a model; 0: as long as it
// wants. A run that has asked one in an earlier attempt has begun.
func (a *attempt) beforeModel() time.Duration {
	if !scheduled(a.st.Lane) || a.chk.Asked {
		return 0
	}
	return timeout.CronBeforeModel(a.budget())
}

// watchBegin ends a turn that asks no model in time.
func (a *attempt) watchBegin(ctx context.Context, limit time.Duration, cancel context.CancelCauseFunc) {
	select {
	case <-a.r.Clock.After(limit):
		select {
		case <-a.asked:
		default:
			cancel(errNotBegun)
		}
	case <-a.asked:
	case <-ctx.Done():
	}
}

// drain is how long what works for the run may take to end when it is told to: longer
// where a scheduled run's time is over, as far as the invocation has it.
func (a *attempt) drain(ctx context.Context) time.Duration {
	if !scheduled(a.st.Lane) || !errors.Is(context.Cause(ctx), errRunTimeout) {
		return timeout.Settle
	}
	if a.deadline.IsZero() {
		return timeout.CronDrain
	}
	left := a.deadline.Sub(a.r.Clock.Now()) - a.r.Reserve - timeout.Settle
	return max(min(timeout.CronDrain, left), timeout.Settle)
}
