package rpc

import (
	"context"

	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
)

// freshen has a message begin a transcript of its own where the session is stale by
// the reset policy of its place. The new id follows from the old one, so messages that
// come at once begin the same. Without a policy nothing is read.
func (g *Gateway) freshen(ctx context.Context, ref session.Ref, in *run.Input) error {
	policy := g.Reset.For(session.PlaceOf(ref.Key))
	if policy == (session.ResetPolicy{}) || in.SessionID != "" {
		return nil
	}
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil || m.SessionID == "" || inUse(&m) {
		return err
	}
	began := m.Began
	if began == 0 {
		began = m.Created
	}
	reason, stale := policy.Stale(clock.FromMillis(began), clock.FromMillis(m.LastInput), g.Clock.Now())
	if stale {
		in.SessionID, in.ResetReason = id.Hash(ref.Tenant, ref.Key, m.SessionID), reason
	}
	return nil
}

// inUse says whether something is at work or waits that was not started by a job: jobs
// do not keep a session fresh.
func inUse(m *session.Meta) bool {
	if m.Active != "" && m.ActiveLane != string(queue.Cron) {
		return true
	}
	for _, p := range m.Pending {
		if p.Lane != string(queue.Cron) {
			return true
		}
	}
	return false
}
