package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"laneway/shared/id"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Call is a request to run.
type Call struct {
	Run       run.Status // RunID, Ref, SessionKey, AgentID, Lane, Method, RequestHash, Input, Origin
	Interrupt bool       // ends everything that was accepted before (cutoff)
	// The frame that it came in, for stops that overtook it (K1). FrameAt is in
	// microseconds; 0: no frame.
	ConnectionID string
	FrameAt      int64
	// Internal: no person wrote it, but a job or an event. It does not keep the session
	// fresh.
	Internal bool
	// Rules say how the message queues where others are at work or wait; nil: it is a
	// run of its own right, in lane order. They are asked for only then.
	Rules func(context.Context) (Rules, error)
	// Gather is how long a message that finds nobody at work waits for more of its sender,
	// with which it becomes one turn; 0: not at all.
	Gather time.Duration
	// With, if set, gives writes that are made together with the acceptance or not at
	// all. It is asked for with every try, since their conditions may fail.
	With func(context.Context) ([]table.Op, error)
	// Accepted, if set, is called once when a new run is in the tables, before its
	// wake-up is sent. What it gets has no Changed yet.
	Accepted func(Accepted)

	interrupts bool // a run was at work when Interrupt was decided
}

// Accepted is what became of a Call.
type Accepted struct {
	Status run.Status
	Repeat bool // the key was known; Status is what was found
	// Stopped: a later stop of the same connection had come in before (K1); the
	// run has ended as aborted without beginning.
	Stopped bool
	// Interrupted: it ended a run that was at work.
	Interrupted bool
	// Changed is the messages that waited and became something else by this accept,
	// as they are now. Those that ended by it are not among them: their end tells it.
	Changed []run.Status
}

// ConflictError is a known key with another request.
type ConflictError struct{ Method string }

func (e *ConflictError) Error() string {
	return "run id is in use for a different request of " + e.Method
}

// Accept makes a call a run: one transaction, then the wake-up (A1). When it
// returns without error the run is there to stay, whether or not the wake-up could
// be sent. Errors: *ConflictError, ErrFull, ErrUnavailable.
func (s *Service) Accept(ctx context.Context, c Call) (Accepted, error) {
	st := &c.Run
	ref := session.Ref{Tenant: st.Tenant, Key: st.SessionKey}
	st.State, st.AcceptedAt, st.WriteID = run.Pending, s.Clock.Now().UnixMilli(), s.NewID()
	if st.Lane == "" {
		st.Lane = string(queue.Main)
	}
	m, known := s.seen.get(ref)
	aimed := "" // the run that would not take it
	for range 2 * session.MaxPending {
		if known && c.overtaken(m) {
			return s.acceptStopped(ctx, c)
		}
		if known && len(m.Pending) >= session.MaxPending {
			return s.refuse(ctx, c, ref, ErrFull)
		}
		q, err := s.queueing(ctx, &c, m, known)
		if errors.Is(err, ErrQueueCap) {
			return s.refuse(ctx, c, ref, err)
		}
		if err != nil {
			return Accepted{}, err
		}
		if q != nil && q.rules.Mode == Steer && q.notSteered == "" {
			if acc, steered, err := s.steerInto(ctx, c, m); steered || err != nil {
				return acc, err
			}
			// The run that it was meant for has ended, or is to: decide again.
			st.State, st.Into, aimed = run.Pending, "", m.Active
			if m, err = session.LoadMeta(ctx, s.Store, ref); err != nil {
				return Accepted{}, err
			}
			continue
		}
		c.interrupts = c.Interrupt && known && m.Active != ""
		ops, err := s.acceptOps(ref, m, known, &c, q)
		if err == nil && known && fallsBack(ctx, &c, m, q, aimed) {
			ops[1].AddTo = append(ops[1].AddTo, Fell(st.Ref.Run)...)
		}
		if ops, err = c.with(ctx, ops, err); err != nil {
			return Accepted{}, err
		}
		err = s.write(ctx, ops...)
		ce, failed := table.Failed(err)
		switch {
		case err == nil:
			m.Seq = st.Seq
			s.seen.put(ref, m)
			acc, err := s.accepted(ctx, c, ref)
			acc.Changed = q.changed()
			s.wakeForEnded(ctx, m, c, q)
			return acc, err
		case failed && ce.Op == 0 && ce.Found != nil:
			return s.known(ctx, c, ref, *ce.Found)
		case failed && ce.Op == 1:
			m, known = session.DecodeMeta(ref, ce.Found), true
		case failed: // a message that was to be dropped is not where it was, or one of With's
			if m, err = session.LoadMeta(ctx, s.Store, ref); err != nil {
				return Accepted{}, err
			}
			known = true
		default:
			return Accepted{}, err
		}
	}
	return Accepted{}, fmt.Errorf("%w: session changes too fast", ErrUnavailable)
}

// acceptOps is the transaction of A1 against a picture of META, which may be a
// guess: the conditions decide.
func (s *Service) acceptOps(ref session.Ref, m session.Meta, known bool, c *Call, q *queued) ([]table.Op, error) {
	st := &c.Run
	st.Seq = m.Seq + 1
	st.Input.QueueMode = "" // of a try before this one
	st.Disposition = run.Disposition{Kind: IsStarted}
	if n := len(m.Pending) - len(m.Cut()); m.Active != "" || n > 0 {
		st.Disposition = run.Disposition{Kind: IsQueued, Position: n + 1}
	}
	entry := session.Pending{Seq: st.Seq, Lane: st.Lane, Run: st.Ref.Run}
	if q != nil {
		entry.Mode = q.pendingMode()
		st.Input.QueueMode, st.Disposition.Reason = q.rules.Mode, q.notSteered
		st.Disposition.Position -= len(q.victims)
		if len(q.victims) > 0 && q.rules.Drop == DropSummarize && q.summary == nil {
			st.Disposition.Position++ // the summary's own place
		}
		if q.rules.Mode == Gather && st.Disposition.Kind == IsStarted {
			st.Disposition.Kind, st.Disposition.Position = IsQueued, 1
		}
	}
	item, err := st.Item()
	if err != nil {
		return nil, err
	}
	up := table.Op{
		Kind: table.Update, Key: ref.MetaKey(),
		Set: []table.SetOp{
			{Path: table.P(session.AttrSeq), Value: st.Seq},
			{Path: table.P(session.AttrUpdated), Value: st.AcceptedAt},
			{Path: table.P(session.AttrActivePK), Value: ref.ActivePK()},
			{Path: table.P(session.AttrActiveSK), Value: ref.PK()},
		},
	}
	if !c.Internal || !m.Exists() || m.Seq == 0 && m.LastInput == 0 {
		up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrInput), Value: st.AcceptedAt})
	}
	var more []table.Op
	if m.Exists() {
		up.If = table.All(table.Equal(table.P(session.AttrSeq), m.Seq),
			table.Less(table.P(session.AttrPendingN), int64(session.MaxPending)))
		if !known {
			// A guess knows nothing of other runs, and says "started".
			up.If = table.All(up.If, table.Lacks(table.P(session.AttrActive)), table.Equal(table.P(session.AttrPendingN), int64(0)))
			if c.Rules != nil { // nor whether the message was meant for one that has just ended
				up.If = table.All(up.If, table.Lacks(table.P(session.AttrUnsettled)))
			}
		}
		if m.Seq == 0 { // made by a command or a stop, no run yet
			up.If = table.All(table.Exists(), table.Lacks(table.P(session.AttrSeq)))
			if m.SessionID == "" {
				sid := s.sessionID(c)
				up.If = table.All(up.If, table.Lacks(table.P(session.AttrSessionID)))
				up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrSessionID), Value: sid})
				more = append(more, session.PutID(ref, sid))
			}
		}
		up.If = table.All(up.If, c.notOvertaken())
		up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrPending, session.PendingMember(st.Seq)), Value: entry.Value()})
		up.Add = []table.AddOp{{Path: table.P(session.AttrPendingN), N: 1}}
		switch {
		case q == nil && gathers(m):
			// Nothing that comes now is put in front of it: the texts wait no more.
			up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrDebounce), Value: st.AcceptedAt})
		case q != nil:
			dropped, err := s.overflow(&up, c, q)
			if err != nil {
				return nil, err
			}
			more = append(more, dropped...)
		}
	} else {
		sid := s.sessionID(c)
		up.If = table.NotExists()
		up.Set = append(up.Set,
			table.SetOp{Path: table.P(session.AttrPending), Value: table.Map{session.PendingMember(st.Seq): entry.Value()}},
			table.SetOp{Path: table.P(session.AttrPendingN), Value: int64(1)},
			table.SetOp{Path: table.P(session.AttrStops), Value: table.Map{}},
			table.SetOp{Path: table.P(session.AttrSessionID), Value: sid},
			table.SetOp{Path: table.P(session.AttrCreated), Value: st.AcceptedAt})
		if q != nil {
			up.Set = append(up.Set, q.debounce(c)...)
		}
		more = append(more, session.PutID(ref, sid))
	}
	if c.Interrupt && m.Seq > 0 {
		up.Set = append(up.Set,
			table.SetOp{Path: table.P(session.AttrCutoff), Value: m.Seq},
			table.SetOp{Path: table.P(session.AttrCutWhy), Value: run.StopSuperseded},
			table.SetOp{Path: table.P(session.AttrCutBy), Value: st.Ref.Run})
		st.Disposition = run.Disposition{Kind: IsStarted} // it ends what it would wait for
	}
	put := table.Op{Kind: table.Put, Key: st.StatusKey(), Item: item, If: table.NotExists()}
	return append([]table.Op{put, up}, more...), nil
}

// sessionID is the id of a session that begins with this call.
func (s *Service) sessionID(c *Call) string {
	if c.Run.Input.SessionID != "" {
		return c.Run.Input.SessionID
	}
	return s.NewID()
}

// refuse refuses a call, unless its key is known: a record decides before anything
// else (A3).
func (s *Service) refuse(ctx context.Context, c Call, ref session.Ref, why error) (Accepted, error) {
	it, err := s.Store.Get(ctx, c.Run.StatusKey())
	if errors.Is(err, table.ErrNotFound) {
		return Accepted{}, why
	}
	if err != nil {
		return Accepted{}, err
	}
	return s.known(ctx, c, ref, it)
}

func (s *Service) accepted(ctx context.Context, c Call, ref session.Ref) (Accepted, error) {
	acc := Accepted{Status: c.Run, Interrupted: c.interrupts}
	if c.Accepted != nil {
		c.Accepted(acc)
	}
	s.wakeAccepted(ctx, c.Run, ref)
	return acc, nil
}

// wakeAccepted sends A1's wake-up. A failure is logged and no more: the run is in
// the tables, the sweep of A2 finds it.
func (s *Service) wakeAccepted(ctx context.Context, st run.Status, ref session.Ref) {
	err := s.send(ctx, ref, st.Lane, "accept", ref.Hash(), id.Hash(st.Tenant, st.RunID))
	if err != nil {
		s.Log.Warn("wake-up not sent", "session", ref.Hash(), "err", err)
	}
}

// wakeForEnded sends a wake-up for messages that an accept ended: its own is behind
// the run that is at work, and their senders need not wait for that. m is the session
// as it was before.
func (s *Service) wakeForEnded(ctx context.Context, m session.Meta, c Call, q *queued) {
	ended := q != nil && q.rules.Drop == DropOld && len(q.victims) > 0
	if !ended && (!c.Interrupt || len(m.Pending) == 0) {
		return
	}
	if err := s.nudge(ctx, m, c.Run.Lane, "overflow", "overflow/"+s.NewID()); err != nil {
		s.Log.Warn("wake-up not sent", "session", m.Hash(), "err", err)
	}
}

// known answers from the record that the key has already (A3).
func (s *Service) known(ctx context.Context, c Call, ref session.Ref, it table.Item) (Accepted, error) {
	found, err := run.Decode(c.Run.Ref, it)
	if err != nil {
		return Accepted{}, err
	}
	if found.WriteID == c.Run.WriteID {
		c.Run = found // our own, the answer was lost
		return s.accepted(ctx, c, ref)
	}
	if found.RequestHash != c.Run.RequestHash {
		return Accepted{}, &ConflictError{found.Method}
	}
	if !found.Done() {
		s.wakeAccepted(ctx, found, session.Ref{Tenant: found.Tenant, Key: found.SessionKey})
	}
	return Accepted{Status: found, Repeat: true}, nil
}

// acceptStopped records a run that a later stop of its own connection overtook.
func (s *Service) acceptStopped(ctx context.Context, c Call) (Accepted, error) {
	st := c.Run
	st.State, st.EndedAt = run.Ended, st.AcceptedAt
	st.Outcome, st.Disposition = stopped("rpc"), run.Disposition{Kind: IsDropped, Reason: "rpc"}
	st.ExpiresAt = s.Clock.Now().Add(run.Keep).Unix()
	item, err := st.Item()
	if err != nil {
		return Accepted{}, err
	}
	err = s.write(ctx, table.Op{Kind: table.Put, Key: st.StatusKey(), Item: item, If: table.NotExists()})
	var ce *table.ConditionError
	switch {
	case !errors.As(err, &ce) || ce.Found == nil:
	case ce.Found.Attrs.Str(run.AttrWrite) == st.WriteID:
		err = nil // our own, the answer was lost (C5): nobody else will tell the end
	default:
		return s.known(ctx, c, session.Ref{Tenant: st.Tenant, Key: st.SessionKey}, *ce.Found)
	}
	return Accepted{Status: st, Stopped: true}, err
}

// stopped is the outcome of a run that was ended before it began.
func stopped(reason string) *run.Outcome {
	return &run.Outcome{Kind: run.Aborted, StopReason: reason, TimeoutPhase: "queue"}
}
