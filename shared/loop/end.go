package loop

import (
	"context"
	"errors"
	"time"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/timeout"
)

// settleTime is what telling the end may take beside the last write.
const settleTime = 10 * time.Second

// end does what the way a turn ended asks for. ctx is the invocation's, wctx the
// turn's: its cause says why it was cut.
func (a *attempt) end(ctx, wctx context.Context, err error) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.r.Reserve+settleTime)
	defer cancel()
	if a.ended.Load() {
		return a.settle(last)
	}
	if cause := context.Cause(wctx); cause != nil {
		err = cause
		if ctx.Err() != nil && errors.Is(cause, context.Cause(ctx)) {
			err = errShutdown // the invocation's own end, not the run's
		}
	}
	var stop *stopError
	var sleep *sleepError
	switch {
	case errors.Is(err, claim.ErrStale):
		a.out.Stop() // not a word more (F4)
		return nil
	case errors.As(err, &sleep):
		until := sleep.until
		if end := a.endOfRun(); !end.IsZero() && end.Before(until) {
			until = end
		}
		return a.checkpoint(last, err, until)
	case errors.Is(err, claim.ErrLapsed), errors.Is(err, errShutdown), errors.Is(err, errNoTime), errors.Is(err, errCut):
		return a.checkpoint(last, err, time.Time{})
	case errors.As(err, &stop):
		return a.over(last, a.finishStopped(last, stop))
	case errors.Is(err, errRunTimeout):
		return a.over(last, a.finishTimeout(last, textTimedOut))
	case errors.Is(err, errNotBegun):
		return a.over(last, a.finishTimeout(last, timeout.CronStalledText(a.phase)))
	case storeError(err), errors.Is(err, claim.ErrReleased):
		// Not the run's fault: whoever claims next goes on from the last step.
		return a.abandon(last, err)
	}
	return a.over(last, a.finishFailed(last, err))
}

// over goes on behind a terminal: it was committed, or somebody else has the run, or
// the store took nothing and the wake-up comes again.
func (a *attempt) over(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return a.settle(ctx)
	case errors.Is(err, claim.ErrStale):
		a.out.Stop()
		return nil
	}
	return a.abandon(ctx, err)
}

func storeError(err error) bool {
	for _, e := range []error{table.ErrConflict, table.ErrThrottled, table.ErrUnknown, table.ErrClosed, table.ErrCondition} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// checkpoint ends an invocation without ending the run (R1): what was done is
// stored already, so it says where events go on, gives the claim up and sends a
// wake-up, or, of a run that sleeps until a time, a delayed one. A model call that
// was cut by the end of an invocation although it had a fresh one ends the run (R2).
// The client sees nothing of it but, where text of the cut call was shown, that it is
// taken back.
func (a *attempt) checkpoint(ctx context.Context, why error, until time.Time) error {
	if errors.Is(why, errCut) && a.asking {
		if a.chk.CutAt == a.chk.Step+1 {
			return a.over(ctx, a.finishFailed(ctx, errStepTooLong))
		}
		a.chk.CutAt = a.chk.Step + 1
	}
	a.takeBack()
	err := a.saveInterrupted(ctx)
	a.out.Drain(ctx) // while the claim is held: what comes after it is the next attempt's
	if err == nil {
		err = a.leave(ctx, until)
	}
	var refused *claim.RefusedError
	switch {
	case errors.As(err, &refused): // a run that is to stop does not sleep
		return a.over(ctx, a.finishStopped(ctx, stopped(refused.Meta)))
	case errors.Is(err, claim.ErrStale):
		a.out.Stop()
		return nil
	case err != nil:
		return a.abandon(ctx, err)
	}
	// Whoever does not take what must arrive in time gets it from the notifier.
	now, cancel := context.WithCancel(ctx)
	cancel()
	if unsent := a.out.Close(now); len(unsent) > 0 {
		if err := a.r.Ends.Late(ctx, a.st, unsent); err != nil {
			a.r.Logger.Warn("events not handed on", "session", a.ref.Hash(), "err", err)
		}
	}
	if until.IsZero() {
		return a.r.Lanes.Nudge(ctx, a.h.Meta(), "checkpoint", a.h.Owner()+"/checkpoint")
	}
	return a.r.Lanes.NudgeLater(ctx, a.h.Meta(), until.Sub(a.r.Clock.Now()), "asleep")
}

// leave is the commit of a checkpoint. That of a run that goes to sleep fails where it
// is to stop: nobody would see the mark.
func (a *attempt) leave(ctx context.Context, until time.Time) error {
	a.chk.Clean, a.chk.Used = true, a.used()
	tx := claim.Tx{
		Release: true,
		Set:     []table.SetOp{{Path: table.P(session.AttrStalled), Value: int64(0)}},
	}
	if !until.IsZero() {
		tx.Set = append(tx.Set, table.SetOp{Path: table.P(session.AttrWake), Value: until.UnixMilli()})
		a.h.Working(session.Work{Kind: session.WorkRetry, Limit: until.Sub(a.r.Clock.Now())}) // until the next claim
		tx.If = a.unmarked()
	}
	err := a.commit(ctx, change{tx: tx})
	if err != nil {
		a.chk.Clean = false
	}
	return err
}

// unmarked is the condition that nobody wants the run to stop.
func (a *attempt) unmarked() table.Cond {
	m := a.h.Meta()
	return table.All(
		table.Lacks(table.P(session.AttrCancel)), // it names the active run, whose end clears it
		table.Any(table.Lacks(table.P(session.AttrCutoff)), table.Less(table.P(session.AttrCutoff), m.ActiveSeq)))
}

// describe gives an error's text for a user and its kind for a program. What only
// operators can make use of is in the log.
func describe(err error) (text, kind string) {
	var me *model.Error
	switch {
	case errors.Is(err, errBreaker):
		return textIdleBreaker, "idle_timeout_circuit_breaker"
	case errors.Is(err, errTooManyFailures):
		return textTooManyFailures, "retry_limit"
	case errors.As(err, &me) && errors.Is(err, model.ErrIdle):
		return me.Message, "idle_timeout"
	case errors.As(err, &me) && errors.Is(err, model.ErrRefusal):
		return me.Message, "refusal"
	case errors.As(err, &me):
		return me.Message, string(me.Class)
	case errors.Is(err, errStalled):
		return textStalled, "no_progress"
	case errors.Is(err, errLoop):
		return textLoopEnded, "tool_loop"
	case errors.Is(err, errTooManySteps):
		return textTooManySteps, "retry_limit"
	case errors.Is(err, errStepTooLong):
		return textStepTooLong, "step_too_long"
	}
	return textFailed, "unknown"
}
