package loop

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"laneway/shared/connection"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/timeout"
)

// Why a turn cannot go on.
var (
	errRunTimeout   = errors.New("run timed out")
	errNoTime       = errors.New("too little of the invocation is left for a step")
	errCut          = errors.New("cut by the end of the invocation")
	errStalled      = errors.New("the run made no progress in several attempts")
	errTooManySteps = errors.New("the run took too many steps")
	errLateSettler  = errors.New("the run's end is others' to tell by now")
	errShutdown     = errors.New("the process is shutting down")
)

// stopError is an abort: somebody asked for it, by mark or cutoff.
type stopError struct{ why, by string }

func (e *stopError) Error() string { return "stopped: " + e.why }

// sleepError says that the run has nothing to do before a time.
type sleepError struct{ until time.Time }

func (e *sleepError) Error() string { return "asleep until " + e.until.Format(time.RFC3339) }

// stopped is the end that a session asks of its active run.
func stopped(m session.Meta) *stopError {
	e := &stopError{why: stopReason(m)}
	if e.why == run.StopSuperseded && m.Cancel != m.Active {
		e.by = m.CutBy
	}
	return e
}

func stopReason(m session.Meta) string {
	why := m.CutWhy
	if m.Cancel == m.Active {
		why = m.CancelWhy
	}
	if why == "" {
		why = "rpc"
	}
	return why
}

// watch gives the context of the turn. It ends with a cause: an abort (seen by the
// claim's poll), the run's time-out, the invocation's end, the loss of the claim.
// stop ends everything that watch started and waits for it.
func (a *attempt) watch() (context.Context, func()) {
	wctx, cancel := context.WithCancelCause(a.h.Context())
	var wg sync.WaitGroup
	alarm := func(at time.Time, why error) {
		if at.IsZero() {
			return
		}
		wg.Go(func() {
			select {
			case <-a.r.Clock.After(max(at.Sub(a.r.Clock.Now()), 0)):
				cancel(why)
			case <-wctx.Done():
			}
		})
	}
	alarm(a.endOfRun(), errRunTimeout)
	if limit := a.beforeModel(); limit > 0 {
		wg.Go(func() { a.watchBegin(wctx, limit, cancel) })
	}
	if a.r.Tokens != nil && a.st.Token != "" && !a.revoked {
		wg.Go(func() { a.watchToken(wctx, cancel) })
	}
	if !a.deadline.IsZero() {
		alarm(a.deadline.Add(-a.r.Reserve), errCut)
	}
	refresh := make(chan struct{}, 1)
	listened := a.r.Clock.Now()
	a.h.OnChange(func(m session.Meta) {
		if m.Marked() {
			cancel(stopped(m))
		}
		// Now and then also where nobody came: those whose token is gone are to leave.
		now := a.r.Clock.Now()
		if m.SubRev != a.subs.Load() || now.Sub(listened) >= connection.CacheFor {
			listened = now
			select {
			case refresh <- struct{}{}:
			default:
			}
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-refresh:
				a.readSubscribers(wctx, a.h.Meta().SubRev)
			case <-wctx.Done():
				return
			}
		}
	})
	return wctx, func() {
		cancel(context.Canceled)
		wg.Wait()
		a.h.OnChange(nil)
	}
}

// endOfRun is when the run's budget is over; zero: never. The budget is of
// execution: it counts from the first claim, over all attempts; waiting in the lane is
// free, and so is waiting for an approval.
func (a *attempt) endOfRun() time.Time {
	return a.budget().End(time.UnixMilli(a.st.StartedAt), time.Duration(a.chk.PausedMs)*time.Millisecond)
}

// budget is how long the run may execute.
func (a *attempt) budget() timeout.Bound {
	return timeout.Budget(a.st.Input.TimeoutMs, a.configured())
}

// configured is how long runs may execute that name no limit.
func (a *attempt) configured() time.Duration { return cmp.Or(a.preferred.Timeout, a.r.RunTimeout) }

// agentTimeout is that where somebody configured it and it is one: then it bounds a
// model's silence too.
func (a *attempt) agentTimeout() time.Duration {
	if d := a.configured(); d > 0 && d != timeout.Run {
		return d
	}
	return 0
}
