package rpc

import (
	"context"
	"errors"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// caller is a call under a key of its caller's.
type caller struct{ method, runID, hash string }

// aloneTries bounds how often the record of a command is written again because the
// session's preferences were changed meanwhile.
const aloneTries = 16

// answerAlone does what a message asks for that is nothing else, and records the call
// as a run that has ended with the answer (A3): both in one transaction, so that
// nothing is kept of a message that was not taken, and nothing done twice. again says
// that the key was known, and st is its record.
func (g *Gateway) answerAlone(ctx context.Context, ref session.Ref, by caller, a *asked) (st run.Status, again bool, err error) {
	if len(a.changes) > 0 {
		if err := g.ensure(ctx, ref); err != nil {
			return st, false, err
		}
	}
	for range aloneTries {
		var ops []table.Op
		if st, ops, err = g.noticed(ref, by, a.answer); err != nil {
			return st, false, err
		}
		if len(a.changes) > 0 {
			op, err := session.ChangeEntry(ctx, g.Store, ref, a.made)
			if err != nil {
				return st, false, err
			}
			ops = append(ops, op)
		}
		if a.reason != "" {
			err = g.stopAndReset(ctx, ref, a.reason, stopStop, by.runID, ops...)
		} else {
			err = g.write(ctx, ops...)
		}
		if err == nil {
			break
		}
		if !refused(err) {
			return st, false, err
		}
		found, known := run.Load(ctx, g.Store, st.Ref)
		if known == nil && found.WriteID == st.WriteID { // the answer to a write was lost
			err = nil
			break
		}
		if !errors.Is(known, run.ErrUnknown) {
			return found, true, known // a call with the same key was faster
		}
		if !errors.Is(err, table.ErrCondition) {
			return st, false, err
		}
	}
	if err != nil {
		return st, false, err
	}
	switch {
	case a.reason != "":
		g.announce(ctx, ref, a.reason)
	case len(a.changes) > 0:
		g.announce(ctx, ref, "patch")
	}
	return st, false, nil
}

// refused says whether a write may have been refused because the key is known.
func refused(err error) bool {
	return errors.Is(err, table.ErrCondition) || errors.Is(err, lane.ErrKnown) || errors.Is(err, claim.ErrBusy)
}

// resetBefore stops what the session does and begins it anew for a message that goes
// on, once for a key, which was not known when the message was read.
func (g *Gateway) resetBefore(ctx context.Context, ref session.Ref, runID, reason string) error {
	err := g.stopAndReset(ctx, ref, reason, stopStop, runID)
	if refused(err) {
		// A call with the same key may have been faster: what it began goes on.
		if _, known := run.Load(ctx, g.Store, run.RefOf(ref.Tenant, runID)); !errors.Is(known, run.ErrUnknown) {
			return known
		}
	}
	if err == nil {
		g.announce(ctx, ref, reason)
	}
	return err
}

// conflict is the error of a key that is known for another request.
func conflict(st run.Status, hash string) error {
	if st.RequestHash != hash {
		return &lane.ConflictError{Method: st.Method}
	}
	return nil
}

// noticed is the record of a call that the gateway has answered itself, as a run that has
// ended, and the op that writes it.
func (g *Gateway) noticed(ref session.Ref, by caller, text string) (run.Status, []table.Op, error) {
	now := g.Clock.Now()
	st := run.Status{
		Ref: run.RefOf(ref.Tenant, by.runID), RunID: by.runID, SessionKey: ref.Key, AgentID: session.AgentOf(ref.Key), Method: by.method,
		RequestHash: by.hash, WriteID: g.NewID(), State: run.Ended, AcceptedAt: now.UnixMilli(), StartedAt: now.UnixMilli(), EndedAt: now.UnixMilli(),
		ExpiresAt: now.Add(run.Keep).Unix(), Disposition: run.Disposition{Kind: lane.IsStarted},
		Outcome: &run.Outcome{Kind: run.OK, StopReason: protocol.StopDone, Payloads: []run.Payload{{Text: text, Notice: true}}, Text: text},
	}
	item, err := st.Item()
	if err != nil {
		return st, nil, err
	}
	return st, []table.Op{{Kind: table.Put, Key: st.StatusKey(), Item: item, If: table.NotExists()}}, nil
}

// tellCard sends the one event of a run that the gateway has answered itself, to its
// caller, at once. A client that misses it has the run's record.
func (g *Gateway) tellCard(r *Request, st run.Status) {
	b, err := protocol.AppendEvent(nil, protocol.EventChat, protocol.ChatFinal{
		Chat:    protocol.Chat{RunID: st.RunID, SessionKey: st.SessionKey, AgentID: st.AgentID, Seq: 1, State: protocol.ChatStateFinal},
		Message: protocol.AssistantMessage(st.Outcome.Text, st.EndedAt),
	})
	if err != nil {
		g.Logger.Error("card not encoded", "run", st.Ref.Run, "err", err)
		return
	}
	r.frame.Send(b)
}
