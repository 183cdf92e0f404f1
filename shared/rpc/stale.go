package rpc

import (
	"context"
	"time"

	"laneway/shared/id"
	"laneway/shared/run"
	"laneway/shared/session"
)

// freshen has a message begin a transcript of its own where the session is stale by
// the reset policy. The new id follows from the old one, so messages that come at once
// begin the same. Without a policy nothing is read.
func (g *Gateway) freshen(ctx context.Context, ref session.Ref, in *run.Input) error {
	if g.Reset == (session.ResetPolicy{}) || in.SessionID != "" {
		return nil
	}
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil || m.SessionID == "" || m.Active != "" || len(m.Pending) > 0 {
		return err
	}
	began := m.Began
	if began == 0 {
		began = m.Created
	}
	reason, stale := g.Reset.Stale(time.UnixMilli(began), time.UnixMilli(m.Updated), g.Clock.Now())
	if stale {
		in.SessionID, in.ResetReason = id.Hash(ref.Tenant, ref.Key, m.SessionID), reason
	}
	return nil
}
