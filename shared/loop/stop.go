package loop

import (
	"context"
	"errors"
	"time"

	"laneway/shared/claim"
	"laneway/shared/session"
)

// EndStopped ends the active run of a session here and now, if it is marked to stop
// and nobody holds its claim: so that a stop is certain where nobody takes wake-ups.
// It asks no model and runs no tool. false: the run is held, or not marked, or there
// is none; who holds it ends it.
func (r *Runner) EndStopped(ctx context.Context, ref session.Ref) (bool, error) {
	m, err := session.LoadMeta(ctx, r.Store, ref)
	if err != nil {
		return false, err
	}
	for range decisions {
		if !m.Marked() || m.Owned(r.Clock.Now(), r.Claims.Times.Slack) {
			return false, nil
		}
		h, err := r.Claims.Resume(ctx, m)
		if taken, ok := errors.AsType[*claim.TakenError](err); ok {
			m = taken.Meta
			continue
		}
		if err != nil {
			return false, err
		}
		active := m.Active
		if err := r.attempt(ctx, h, time.Time{}); err != nil {
			return false, err
		}
		m, err = session.LoadMeta(ctx, r.Store, ref)
		return err == nil && m.Active != active, err
	}
	return false, nil
}
