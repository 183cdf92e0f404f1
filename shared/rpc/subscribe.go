package rpc

import (
	"context"
	"errors"
	"slices"
	"time"

	"laneway/shared/connection"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
)

// subscribeAll gives the caller the events of all sessions of its tenant.
func (g *Gateway) subscribeAll(ctx context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.SessionsListParams](r.Method, r.Params); err != nil {
		return err
	}
	if err := g.Connections.SubscribeAll(ctx, r.Conn.ID); err != nil {
		return err
	}
	return r.Reply(protocol.Subscribed{Subscribed: true})
}

func (g *Gateway) unsubscribeAll(ctx context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.NoParams](r.Method, r.Params); err != nil {
		return err
	}
	if err := g.Connections.Unsubscribe(ctx, r.Conn.ID, connection.AllSessions); err != nil {
		return err
	}
	return r.Reply(protocol.Subscribed{})
}

// subscribe gives the caller the events of one session, which need not exist yet.
// What the active run has said by now follows the reply (S5).
func (g *Gateway) subscribe(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsMessagesSubscribeParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	row, err := g.Connections.Load(ctx, r.Conn.ID)
	if err != nil {
		return err
	}
	if err := g.Connections.Subscribe(ctx, r.Conn.ID, ref.Key); err != nil {
		return err
	}
	if err := r.Reply(protocol.Subscribed{Subscribed: true, Key: ref.Key}); err != nil {
		return err
	}
	if !slices.Contains(row.Subscriptions, ref.Key) && !slices.Contains(row.Subscriptions, connection.AllSessions) {
		g.replay(ctx, r, ref)
	}
	return nil
}

// replayTime bounds what one subscription costs.
const replayTime = 10 * time.Second

// replay sends the log of the active run to a new subscriber. The call is answered
// already: a failure costs it the run's past, which history has too.
func (g *Gateway) replay(ctx context.Context, r *Request, ref session.Ref) {
	ctx, cancel := context.WithTimeout(ctx, replayTime)
	defer cancel()
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil || m.Active == "" {
		return
	}
	st, err := run.Load(ctx, g.Store, run.Ref{Tenant: ref.Tenant, Run: m.Active})
	if err != nil || st.Origin != nil && st.Origin.ConnectionID == r.Conn.ID {
		return // the caller of the run has it all
	}
	info := stream.Info{
		Ref: st.Ref, RunID: st.RunID, SessionKey: ref.Key, SessionID: orElse(st.SessionID, m.SessionID), AgentID: st.AgentID, Lane: st.Lane,
	}
	to := connection.Subscriber{ID: r.Conn.ID, Callback: r.frame.Callback, Caps: r.Conn.Caps}
	if _, err := g.Notify.Stream.Replay(ctx, info, to, 0); err != nil && !errors.Is(err, connection.ErrGone) {
		g.Logger.Warn("replay cut short", "session", ref.Hash(), "err", err)
	}
}

func (g *Gateway) unsubscribe(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionKeyParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	if err := g.Connections.Unsubscribe(ctx, r.Conn.ID, ref.Key); err != nil {
		return err
	}
	return r.Reply(protocol.Subscribed{Key: ref.Key})
}
