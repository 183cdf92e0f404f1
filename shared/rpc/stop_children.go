package rpc

import (
	"context"
	"fmt"

	"laneway/shared/lane"
	"laneway/shared/session"
)

// Children knows which sessions the runs of a session have started (spec: runtime
// 5.5: a stop goes on to them).
type Children interface {
	// Children lists those of one run, or without a run id all of a session's.
	Children(ctx context.Context, ref session.Ref, runID string) ([]session.Ref, error)
}

// offspring is what a stop did beyond the session that it was about.
type offspring struct {
	stopped int // sessions whose work it stopped
	left    int // sessions that it could not reach
}

// String is what the answer to a stop says of them; empty: there is nothing to say.
func (o offspring) String() (text string) {
	if o.stopped > 0 {
		text = fmt.Sprintf(" Stopped %d sub-agent(s).", o.stopped)
	}
	if o.left > 0 {
		text += fmt.Sprintf(" Cancellation was incomplete for %d sub-agent(s). Retry /stop.", o.left)
	}
	return text
}

// stopChildren stops all work of the sessions that a run, or a session, has started,
// and of those that these have. One that can't be stopped keeps none of the others.
func (g *Gateway) stopChildren(ctx context.Context, ref session.Ref, runID, reason string) (o offspring) {
	if g.Children == nil {
		return o
	}
	type of struct {
		ref session.Ref
		run string
	}
	seen := map[session.Ref]bool{ref: true} // two that know each other must not go round
	for next := []of{{ref, runID}}; len(next) > 0; next = next[1:] {
		children, err := g.Children.Children(ctx, next[0].ref, next[0].run)
		if err != nil {
			g.Logger.Warn("children unknown", "session", next[0].ref.Hash(), "error", err)
			o.left++
		}
		for _, child := range children {
			if seen[child] || child.Tenant != ref.Tenant {
				continue
			}
			seen[child] = true
			next = append(next, of{ref: child})
			hit, err := g.Lanes.StopAll(ctx, lane.Stop{Ref: child, Reason: reason})
			switch {
			case err != nil:
				g.Logger.Warn("child not stopped", "session", child.Hash(), "error", err)
				o.left++
			case len(hit) > 0:
				o.stopped++
			}
		}
	}
	return o
}
