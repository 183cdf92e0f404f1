package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/session"
)

// decisions bounds how often a receiver decides again after a claim that failed:
// by then others are at work on the session.
const decisions = 10

// Handle does the one thing that a wake-up asks for: settle, leave, forward, resume
// or start. deadline is when the invocation ends; zero: never. An error means that
// the wake-up should come again.
func (r *Runner) Handle(ctx context.Context, w lane.Wakeup, deadline time.Time) error {
	m, err := session.LoadMeta(ctx, r.Store, w.Ref())
	if err != nil {
		return err
	}
	for n := range decisions {
		d := lane.Decide(m, w.Lane, r.Clock.Now(), r.Claims.Times)
		var h *claim.Holder
		switch d.Do {
		case lane.Settle:
			held, err := r.Lanes.SettleFree(ctx, m, r.Ends, "settle/"+r.NewID())
			if err != nil || len(held) == 0 {
				return err
			}
			if m, err = session.LoadMeta(ctx, r.Store, w.Ref()); err != nil {
				return err
			}
			m.Unsettled = slices.DeleteFunc(m.Unsettled, func(u string) bool { return slices.Contains(held, u) })
			continue
		case lane.Forward:
			return r.Lanes.Nudge(ctx, m, "lane", fmt.Sprintf("lane/%s/%d", r.NewID(), n))
		case lane.Wait:
			return r.Lanes.NudgeLater(ctx, m, d.For, "debounce")
		case lane.Resume:
			h, err = r.Claims.Resume(ctx, m)
		case lane.Start:
			h, err = r.Claims.Start(ctx, m, d.Run)
		default:
			return nil
		}
		if taken, ok := errors.AsType[*claim.TakenError](err); ok {
			m = taken.Meta // decide again from the item that was there
			continue
		}
		if err != nil {
			return err
		}
		return r.attempt(ctx, h, deadline)
	}
	return nil
}
