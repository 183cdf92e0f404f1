package notify

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/table"
)

// Inline is the longest wait that is answered by its own request instead of by a
// timer and a row.
const Inline = 2 * time.Second

// inlinePoll is how often an inline wait looks.
const inlinePoll = 100 * time.Millisecond

// Wait serves agent.wait. It gives the frame to answer with now, or nil: then the
// answer will be posted (W1). ref is of the caller's tenant, so the runs of others
// look unknown; an unknown run is waited for like any other.
func (s *Service) Wait(ctx context.Context, ref run.Ref, runID string, w run.Waiter, window time.Duration) ([]byte, error) {
	deadline := s.Clock.Now().Add(window)
	w.Kind = run.WaitSnapshot
	for {
		st, frame, err := s.look(ctx, ref, runID, w)
		if err != nil || frame != nil {
			return frame, err
		}
		if queuedChat(st) {
			return protocol.AppendResult(nil, w.RequestID, protocol.WaitQueued(runID))
		}
		left := deadline.Sub(s.Clock.Now())
		if left <= 0 {
			return protocol.AppendResult(nil, w.RequestID, protocol.WaitExpired(runID))
		}
		if window > Inline {
			break
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.Clock.After(min(left, inlinePoll)):
		}
	}
	return s.Attach(ctx, ref, runID, w, deadline)
}

// Attach registers a waiter: the timer first, then the row, then the record is read
// again, so that no end can fall between (W2). It gives a frame where the run has
// ended by then and this call is its answerer. A zero deadline waits for the end
// alone.
func (s *Service) Attach(ctx context.Context, ref run.Ref, runID string, w run.Waiter, deadline time.Time) ([]byte, error) {
	until := int64(0)
	if !deadline.IsZero() {
		until = deadline.UnixMilli()
	}
	if err := s.waitTimer(ctx, ref, runID, w, until, 0); err != nil {
		return nil, err
	}
	now := s.Clock.Now()
	expires := now.Add(run.Keep)
	if deadline.After(now) {
		expires = deadline.Add(run.Keep)
	}
	if err := run.PutWaiter(ctx, s.Store, ref, w, deadline, expires); err != nil {
		return nil, err
	}
	st, frame, err := s.look(ctx, ref, runID, w)
	if err != nil || frame == nil {
		return nil, err
	}
	row, there, err := run.LoadWaiter(ctx, s.Store, ref, w.ConnectionID, w.RequestID)
	if err != nil || !there {
		return nil, err // the end has answered it
	}
	frame, err = row.Take(ctx, s.Store, s.frame(st, w), s.Clock.Now(), s.Times.Answer)
	if errors.Is(err, run.ErrHeld) || errors.Is(err, run.ErrAnswered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return frame, row.Done(ctx, s.Store)
}

// look gives the frame for a run that has ended, or nil.
func (s *Service) look(ctx context.Context, ref run.Ref, _ string, w run.Waiter) (run.Status, []byte, error) {
	st, err := s.Ended(ctx, ref)
	if errors.Is(err, run.ErrUnknown) {
		return st, nil, nil
	}
	if err != nil || st.Outcome == nil {
		return st, nil, err
	}
	return st, s.frame(st, w), nil
}

// Ended loads a run; one whose message was taken by another run has that one's
// outcome once it is there.
func (s *Service) Ended(ctx context.Context, ref run.Ref) (run.Status, error) {
	st, err := run.Load(ctx, s.Store, ref)
	if err != nil || st.Outcome != nil || st.State != run.Delivered {
		return st, err
	}
	into, err := run.Load(ctx, s.Store, run.Ref{Tenant: ref.Tenant, Run: st.Into})
	if err != nil {
		return st, err
	}
	st.Outcome, st.EndedAt = into.Outcome, into.EndedAt
	if st.StartedAt == 0 {
		st.StartedAt = into.StartedAt
	}
	return st, nil
}

func queuedChat(st run.Status) bool {
	return st.Method == "chat.send" && st.State == run.Pending
}

// share gives a delivered message's record the outcome of the run that took it.
func (s *Service) share(ctx context.Context, st *run.Status, into run.Status) error {
	st.Outcome, st.EndedAt, st.StartedAt = into.Outcome, into.EndedAt, into.StartedAt
	st.Disposition = run.Disposition{Kind: "steered", RunID: into.RunID}
	body, err := json.Marshal(st.Outcome)
	if err != nil {
		return err
	}
	_, err = s.Store.Write(ctx, table.Op{
		Kind: table.Update, Key: st.StatusKey(), If: table.Exists(),
		Set: []table.SetOp{
			{Path: table.P(run.AttrState), Value: string(run.Ended)},
			{Path: table.P(run.AttrOutcome), Value: body},
			{Path: table.P(run.AttrEnded), Value: st.EndedAt},
			{Path: table.P(table.TTLAttr), Value: s.Clock.Now().Add(run.Keep).Unix()},
		},
	})
	return err
}

// waitTimer arms the next look at a waiter: at its deadline, or earlier for a tick
// that keeps its connection open. at is the delay where it is known, 0 where it
// follows from the deadline.
func (s *Service) waitTimer(ctx context.Context, ref run.Ref, runID string, w run.Waiter, deadline int64, at time.Duration) error {
	t := timer{Kind: timerWait, Tenant: ref.Tenant, Run: ref.Run, RunID: runID, Conn: w.ConnectionID, Callback: w.Callback, Request: w.RequestID, Deadline: deadline}
	if at == 0 {
		at = s.Tick
		if deadline != 0 {
			at = min(at, time.UnixMilli(deadline).Sub(s.Clock.Now()))
		}
	}
	return s.after(ctx, at, t)
}

// deadline is a look at a waiter: the run has ended (then the answer may have been
// lost with its answerer), its time is over, or it goes on waiting.
func (s *Service) deadline(ctx context.Context, t timer) error {
	ref := run.Ref{Tenant: t.Tenant, Run: t.Run}
	row, there, err := run.LoadWaiter(ctx, s.Store, ref, t.Conn, t.Request)
	if err != nil || !there && t.Tries > 0 {
		return err
	}
	if !there {
		// The row is written after the timer: a timer that is first looks once more.
		if time.UnixMilli(t.Deadline).Sub(s.Clock.Now()) > time.Second {
			return nil
		}
		t.Tries++
		return s.after(ctx, time.Second, t)
	}
	st, frame, err := s.look(ctx, ref, t.RunID, row.Waiter)
	if err != nil {
		return err
	}
	now := s.Clock.Now()
	over := row.Deadline != 0 && now.UnixMilli() >= row.Deadline
	if frame == nil && over {
		if queuedChat(st) {
			frame, err = protocol.AppendResult(nil, row.RequestID, protocol.WaitQueued(t.RunID))
		} else {
			frame, err = protocol.AppendResult(nil, row.RequestID, protocol.WaitExpired(t.RunID))
		}
		if err != nil {
			return err
		}
	}
	if frame == nil {
		tick, err := protocol.AppendEvent(nil, protocol.EventTick, protocol.Tick{TS: now.UnixMilli()})
		if err != nil {
			return err
		}
		err = s.Poster.Post(ctx, push.Target{ConnectionID: row.ConnectionID, Callback: row.Callback}, tick)
		if errors.Is(err, push.ErrGone) {
			return errors.Join(row.Done(ctx, s.Store), s.Connections.Close(ctx, row.ConnectionID))
		}
		return s.waitTimer(ctx, ref, t.RunID, row.Waiter, row.Deadline, 0)
	}
	err = s.answer(ctx, &row, frame)
	if errors.Is(err, run.ErrHeld) {
		return s.waitTimer(ctx, ref, t.RunID, row.Waiter, row.Deadline, s.Times.Answer+time.Second)
	}
	return err
}
