package rpc

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/session"
)

// announceTime bounds what telling others of a change costs its caller.
const announceTime = 2 * time.Second

// announce tells those who listen to a session that its row is another now. It is a
// hint: who misses it sees the change when it asks next, so a failure is not the
// caller's.
func (g *Gateway) announce(ctx context.Context, ref session.Ref, reason string) {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	list, err := g.Connections.Subscribers(ctx, ref.Tenant, ref.Key)
	if err != nil || len(list) == 0 {
		return
	}
	ev := protocol.SessionsChangedEvent{
		SessionKey: ref.Key, AgentID: session.AgentOf(ref.Key), Reason: reason, TS: g.Clock.Now().UnixMilli(),
	}
	if v, err := g.view(ctx, ref); err == nil && v.exists() {
		agents, err := g.Directory.Agents(ctx, ref.Tenant)
		if err == nil {
			if row, err := g.sessionRow(ctx, &v, agents); err == nil {
				ev.Session = &row
			}
		}
	}
	frame, err := protocol.AppendEvent(nil, protocol.EventSessionsChanged, ev)
	if err != nil {
		return
	}
	var eg errgroup.Group
	eg.SetLimit(readers)
	for i := range list {
		eg.Go(func() error {
			err := g.Notify.Poster.Post(ctx, list[i].Target(), frame)
			if errors.Is(err, push.ErrGone) {
				err = g.Connections.Close(ctx, list[i].ID)
			}
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		g.Logger.Warn("change not announced to everybody", "session", ref.Hash(), "err", err)
	}
}
