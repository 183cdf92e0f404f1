package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/transcript"
)

// sessionsAbort stops work and answers when its end is in the tables.
func (g *Gateway) sessionsAbort(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsAbortParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, err := g.abortSession(ctx, r, &p)
	if err != nil {
		return err
	}
	out := protocol.SessionAborted{OK: true, Status: "aborted"}
	if ref.Key == "" {
		return r.Reply(out)
	}
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil {
		return err
	}
	active := ""
	if m.Active != "" {
		ids, err := g.runIDs(ctx, ref.Tenant, []string{m.Active})
		if err != nil {
			return err
		}
		active = slices.Concat(ids, []string{""})[0]
	}
	target := p.RunID
	if target == "" && p.ClearQueued != nil && !*p.ClearQueued {
		if target = active; target == "" {
			return r.Reply(out)
		}
	}
	ids, _, err := g.stop(ctx, r, ref, target, protocol.StopRPC)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		first := ids[0]
		if slices.Contains(ids, active) {
			first = active
		}
		out.AbortedRunID = &first
		if err := g.ended(ctx, ref.Tenant, first); err != nil {
			return err
		}
	}
	return r.Reply(out)
}

// abortSession is the session that an abort is about; without a key, that of the
// run. An unknown run has none.
func (g *Gateway) abortSession(ctx context.Context, r *Request, p *protocol.SessionsAbortParams) (session.Ref, error) {
	if p.Key != "" {
		ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
		return ref, err
	}
	st, err := run.Load(ctx, g.Store, run.RefOf(r.Tenant(), p.RunID))
	if errors.Is(err, run.ErrUnknown) {
		return session.Ref{}, nil
	}
	return session.Ref{Tenant: r.Tenant(), Key: st.SessionKey}, err
}

// ended waits until a run has its outcome. Where that takes longer than a call may
// wait it gives up: what stops the run is in the tables by then.
func (g *Gateway) ended(ctx context.Context, tenant, runID string) error {
	return g.await(ctx, func(ctx context.Context) (bool, error) {
		st, err := run.Load(ctx, g.Store, run.RefOf(tenant, runID))
		if errors.Is(err, run.ErrUnknown) {
			return true, nil
		}
		return st.Done(), err
	})
}

// quiesce stops everything that the session has accepted and waits until no run is
// active. It puts no mark for the frames of the caller's connection: what follows in
// the same frame is to run.
// With unless, the id of a run, it is lane.ErrKnown where that run is known.
func (g *Gateway) quiesce(ctx context.Context, ref session.Ref, why, unless string) error {
	hit, err := g.Lanes.StopAll(ctx, lane.Stop{Ref: ref, Reason: why, Unless: unless})
	if err != nil {
		return err
	}
	return g.await(ctx, func(ctx context.Context) (bool, error) {
		m, err := session.LoadMeta(ctx, g.Store, ref)
		return m.Active == "" || !m.Marked() && !slices.Contains(hit, m.Active), err
	})
}

// stopAndReset starts a session over: its work is stopped, then a boundary row is
// written that the past stays behind. The session keeps its id. more is written in
// the same transaction. unless, if not empty, is a run that must not be known when it is
// made (lane.ErrKnown, or table.ErrCondition); a failed condition of one of them is a *table.ConditionError
// and leaves the session as it was. A session that was never used has nothing to
// reset: only more is written.
func (g *Gateway) stopAndReset(ctx context.Context, ref session.Ref, reason, why, unless string, more ...table.Op) error {
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil {
		return err
	}
	if !m.Exists() {
		if len(more) == 0 {
			return nil
		}
		return g.write(ctx, more...)
	}
	if err := g.quiesce(ctx, ref, why, unless); err != nil {
		return err
	}
	return g.underClaim(ctx, ref, func(ctx context.Context, h *claim.Holder) error {
		m := h.Meta()
		if m.Active != "" {
			return claim.ErrBusy // a run that has begun goes on where it was
		}
		now := g.Clock.Now().UnixMilli()
		e := transcript.Entry{Seq: m.Head + 1, ID: g.NewID(), Type: transcript.Reset, At: now, Reason: reason}
		op, err := g.Log.Put(ctx, ref, m.SessionID, e)
		if err != nil {
			return err
		}
		more := slices.Clone(more)
		if unless != "" && len(more) == 0 {
			r := run.RefOf(ref.Tenant, unless)
			more = append(more, table.Op{Kind: table.Check, Key: r.StatusKey(), If: table.NotExists()})
		}
		return h.Commit(ctx, claim.Tx{
			Head: e.Seq, Ops: append(more, op),
			Set: []table.SetOp{
				{Path: table.P(session.AttrBase), Value: e.Seq},
				{Path: table.P(session.AttrUpdated), Value: now},
				{Path: table.P(session.AttrInput), Value: now},
				{Path: table.P(session.AttrBegan), Value: now},
				{Path: table.P(session.AttrTokensIn), Value: int64(0)},
				{Path: table.P(session.AttrTokensOut), Value: int64(0)},
			},
		})
	})
}

// sessionsReset starts a session over.
func (g *Gateway) sessionsReset(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsResetParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	v, err := g.knownSession(ctx, ref)
	if err != nil {
		return err
	}
	if err := expected(&v, p.ExpectedSessionID); err != nil {
		return err
	}
	if err := g.stopAndReset(ctx, ref, orElse(p.Reason, reasonReset), protocol.StopRPC, ""); err != nil {
		return err
	}
	return g.replyChanged(ctx, r, ref, "reset", protocol.SessionChanged{})
}

// expected refuses a change of a session that is another one by now.
func expected(v *view, sessionID string) error {
	if sessionID != "" && v.m.SessionID != sessionID {
		return protocol.Unavailable("the session has changed since: its id is another one")
	}
	return nil
}

// sessionsDelete removes a session from sight: a fresh transcript takes the place of
// the old one, and preferences are forgotten. Its hot item stays, so that no token
// and no accept sequence is ever used twice (C1); the key can be used again.
func (g *Gateway) sessionsDelete(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsDeleteParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if scope := protocol.DeleteScope(&p); !protocol.ScopeSatisfied(r.Conn.Scopes, scope) {
		return protocol.MissingScope(scope)
	}
	ref, agent, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	if ref.Key == "agent:"+agent+":"+session.MainKey {
		return protocol.Invalid(fmt.Sprintf("Cannot delete the main session (%s).", ref.Key))
	}
	v, err := g.view(ctx, ref)
	if err != nil {
		return err
	}
	out := protocol.SessionDeleted{OK: true, Key: ref.Key, Archived: []string{}}
	if !v.exists() || p.ArchivedOnly && !v.prefs().Archived {
		return r.Reply(out)
	}
	if err := expected(&v, p.ExpectedSessionID); err != nil {
		return err
	}
	if err := g.quiesce(ctx, ref, protocol.StopRPC, ""); err != nil {
		return err
	}
	old := ""
	err = g.underClaim(ctx, ref, func(ctx context.Context, h *claim.Holder) error {
		m := h.Meta()
		if m.Active != "" {
			return claim.ErrBusy
		}
		old = m.SessionID
		return g.forget(ctx, h)
	})
	if err != nil {
		return err
	}
	if p.DeleteTranscript == nil || *p.DeleteTranscript {
		// Nobody finds these rows any more: what a time-out leaves of them only takes room.
		if err := g.Log.Remove(ctx, ref, old); err != nil {
			g.Logger.Warn("transcript left behind", "session", ref.Hash(), "err", err)
		}
	}
	out.Deleted = true
	if err := r.Reply(out); err != nil {
		return err
	}
	g.announce(ctx, ref, "delete")
	return nil
}

// forget is the transaction of a deletion.
func (g *Gateway) forget(ctx context.Context, h *claim.Holder) error {
	m := h.Meta()
	entry, err := session.PutEntry(m.Ref, session.Entry{Deleted: true, DeletedSeq: m.Seq})
	if err != nil {
		return err
	}
	fresh, now := g.NewID(), g.Clock.Now().UnixMilli()
	ops := []table.Op{entry, session.PutID(m.Ref, fresh)}
	if m.SessionID != "" {
		ops = append(ops, session.DropID(m.Ref, m.SessionID))
	}
	return h.Commit(ctx, claim.Tx{
		Set: []table.SetOp{
			{Path: table.P(session.AttrSessionID), Value: fresh},
			{Path: table.P(session.AttrHead), Value: int64(0)},
			{Path: table.P(session.AttrUpdated), Value: now},
			{Path: table.P(session.AttrInput), Value: now},
			{Path: table.P(session.AttrBegan), Value: now},
		},
		Remove: []table.Path{
			table.P(session.AttrBase), table.P(session.AttrRecentPK), table.P(session.AttrRecentSK),
			table.P(session.AttrLastRun), table.P(session.AttrLastEnd), table.P(session.AttrTokensIn), table.P(session.AttrTokensOut),
		},
		Ops: ops,
	})
}
