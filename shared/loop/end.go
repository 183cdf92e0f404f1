package loop

import (
	"context"
	"errors"
	"time"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/session"
	"laneway/shared/table"
)

// end does what the way a turn ended asks for. ctx is the invocation's, wctx the
// turn's: its cause says why it was cut.
func (a *attempt) end(ctx, wctx context.Context, err error) error {
	if a.ended.Load() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.r.Reserve+settleTime)
		defer cancel()
		return a.settle(last)
	}
	if cause := context.Cause(wctx); cause != nil {
		err = cause
		if ctx.Err() != nil && cause == context.Cause(ctx) {
			err = errShutdown // the invocation's own end, not the run's
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.r.Reserve+settleTime)
	defer cancel()
	var stop *stopError
	switch {
	case errors.Is(err, claim.ErrStale), errors.Is(err, claim.ErrReleased):
		a.out.Stop() // superseded: not a word more (F4)
		return nil
	case errors.Is(err, claim.ErrLapsed), errors.Is(err, errShutdown), errors.Is(err, errNoTime), errors.Is(err, errCut):
		return a.checkpoint(last, err)
	case errors.As(err, &stop):
		err = a.finishStopped(last, stop.why)
	case errors.Is(err, errRunTimeout):
		err = a.finishTimeout(last)
	case storeError(err):
		// Not the run's fault: whoever claims next goes on from the last step.
		a.out.Stop()
		return errors.Join(err, a.release(last))
	default:
		err = a.finishFailed(last, err)
	}
	if errors.Is(err, claim.ErrStale) {
		a.out.Stop()
		return nil
	}
	if err != nil {
		a.out.Stop()
		return errors.Join(err, a.release(last))
	}
	return a.settle(last)
}

// settleTime is what telling the end may take beside the last write.
const settleTime = 10 * time.Second

func storeError(err error) bool {
	for _, e := range []error{table.ErrConflict, table.ErrThrottled, table.ErrUnknown, table.ErrClosed, table.ErrCondition} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (a *attempt) release(ctx context.Context) error {
	err := a.h.Release(ctx)
	if errors.Is(err, claim.ErrStale) || errors.Is(err, claim.ErrReleased) {
		return nil
	}
	return err
}

// checkpoint ends an invocation without ending the run (R1): what was done is
// stored already, so it says where events go on, gives the claim up and sends a
// wake-up. A step that was cut by the end of an invocation although it had a fresh
// one ends the run (R2). The client sees nothing of it but, where text of the cut
// step was shown, its replacement.
func (a *attempt) checkpoint(ctx context.Context, why error) error {
	if errors.Is(why, errCut) {
		if a.chk.CutAt == a.chk.Step+1 {
			return a.afterFailed(ctx, errStepTooLong)
		}
		a.chk.CutAt = a.chk.Step + 1
	}
	if a.itemOn {
		a.out.Replace("")
	}
	a.out.Drain(ctx)
	a.chk.Clean = true
	clean := claim.Tx{
		Release: true,
		Set:     []table.SetOp{{Path: table.P(session.AttrStalled), Value: int64(0)}},
	}
	err := a.commit(ctx, change{tx: clean})
	a.out.Stop()
	if errors.Is(err, claim.ErrStale) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.r.Lanes.Nudge(ctx, a.h.Meta(), "checkpoint", a.h.Owner()+"/checkpoint")
}

func (a *attempt) afterFailed(ctx context.Context, why error) error {
	if err := a.finishFailed(ctx, why); err != nil {
		a.out.Stop()
		return err
	}
	return a.settle(ctx)
}

// describe gives an error's text for a user and its kind for a program.
func describe(err error) (text, kind string) {
	var me *model.Error
	switch {
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
	return "The agent run failed: " + err.Error(), "unknown"
}
