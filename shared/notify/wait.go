package notify

import (
	"context"
	"errors"
	"time"

	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/session"
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
	deadline := upToMilli(s.Clock.Now().Add(window))
	w.Kind = run.WaitSnapshot
	for {
		st, frame, err := s.look(ctx, ref, w)
		if err != nil || frame != nil {
			return frame, err
		}
		if queuedChat(st) {
			return s.queued(ctx, st, w.RequestID, runID)
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
// alone. After an error nobody waits; once the row is there no error is returned,
// because the timer answers.
func (s *Service) Attach(ctx context.Context, ref run.Ref, runID string, w run.Waiter, deadline time.Time) ([]byte, error) {
	t := timer{Tenant: ref.Tenant, Run: ref.Run, RunID: runID}
	if !deadline.IsZero() {
		t.Deadline = deadline.UnixMilli()
	}
	if err := s.waitTimer(ctx, t, w, s.next(t.Deadline)); err != nil {
		return nil, err
	}
	now := s.Clock.Now()
	expires := now.Add(run.Keep)
	if deadline.After(now) {
		expires = deadline.Add(run.Keep)
	}
	put := s.NewID()
	if err := run.PutWaiter(ctx, s.sure, ref, w, put, deadline, expires); err != nil {
		if derr := run.DropWaiter(context.WithoutCancel(ctx), s.sure, ref, w, put); derr != nil {
			s.Log.Warn("a waiter that was refused may be left behind", "run", ref.Run, "err", derr)
		}
		return nil, err
	}
	if s.next(t.Deadline) <= rowDelay {
		// The timer may have come before the row did.
		if err := s.waitTimer(ctx, t, w, rowDelay); err != nil {
			s.Log.Warn("second timer of a wait not armed", "run", ref.Run, "err", err)
		}
	}
	frame, err := s.attached(ctx, ref, w, put)
	if err != nil {
		s.Log.Warn("waiter left to its timer", "run", ref.Run, "err", err)
	}
	return frame, nil
}

// rowDelay is how long after its timer a waiter's row may come.
const rowDelay = time.Second

// attached looks once more behind the row, and answers where the run has ended.
// put is the write that made the row.
func (s *Service) attached(ctx context.Context, ref run.Ref, w run.Waiter, put string) ([]byte, error) {
	st, frame, err := s.look(ctx, ref, w)
	if err != nil || frame == nil {
		return nil, err
	}
	row, there, err := run.LoadWaiter(ctx, s.Store, ref, w.ConnectionID, w.RequestID)
	switch {
	case err != nil || !there:
		return nil, err
	case row.Told && row.Put != put:
		return row.Answer, nil // of the same request, sent before: its caller asks again
	case row.Told:
		return nil, nil // the end has answered it
	}
	frame, err = row.Take(ctx, s.sure, s.frame(st, w), s.Clock.Now(), s.Times.Answer)
	if errors.Is(err, run.ErrHeld) || errors.Is(err, run.ErrAnswered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := row.Done(ctx, s.sure); err != nil {
		// Its timer finds the row and posts a second time, for which this is a crash.
		s.Log.Warn("answered waiter not removed", "run", ref.Run, "err", err)
	}
	return frame, nil
}

// look gives the frame for a run that has ended, or nil.
func (s *Service) look(ctx context.Context, ref run.Ref, w run.Waiter) (run.Status, []byte, error) {
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
	into, err := s.taker(ctx, st)
	if err == nil && into.Outcome != nil {
		share(&st, into)
	}
	return st, err
}

// queuedChat says whether a chat turn waits behind others; one that is about to begin
// does not.
func queuedChat(st run.Status) bool {
	return st.Method == "chat.send" && st.State == run.Pending && st.Disposition.Kind != "started"
}

// queued is the answer about a chat turn that waits: where in the queue it is by now.
func (s *Service) queued(ctx context.Context, st run.Status, requestID, runID string) ([]byte, error) {
	a := protocol.WaitQueued(runID)
	a.Disposition = st.Disposition.Wire()
	m, err := session.LoadMeta(ctx, s.Store, session.Ref{Tenant: st.Tenant, Key: st.SessionKey})
	if err != nil {
		s.Log.Warn("queue not read for a wait", "run", st.Ref.Run, "err", err)
	} else {
		a.Disposition = lane.Now(st, m).Wire()
	}
	return protocol.AppendResult(nil, requestID, a)
}

// next is how long until a waiter is to be looked at: at its deadline, or earlier for
// a tick that keeps its connection open.
func (s *Service) next(deadline int64) time.Duration {
	if deadline == 0 {
		return s.Tick
	}
	return max(0, min(s.Tick, time.UnixMilli(deadline).Sub(s.Clock.Now())))
}

// waitTimer arms a look at a waiter. t says whose, and what for.
func (s *Service) waitTimer(ctx context.Context, t timer, w run.Waiter, after time.Duration) error {
	t.Kind, t.Conn, t.Callback, t.Request = timerWait, w.ConnectionID, w.Callback, w.RequestID
	return s.after(ctx, after, t)
}

// deadline is a look at a waiter: the run has ended (then the answer may have been
// lost with its answerer), its time is over, or it goes on waiting.
func (s *Service) deadline(ctx context.Context, t timer) error {
	ref := run.Ref{Tenant: t.Tenant, Run: t.Run}
	row, there, err := run.LoadWaiter(ctx, s.Store, ref, t.Conn, t.Request)
	if err != nil {
		return err
	}
	if row.Told {
		return nil
	}
	if !there {
		// The row is written after the timer: one that is at its time looks once more.
		if t.Tries > 0 || s.next(t.Deadline) > rowDelay {
			return nil
		}
		t.Tries++
		return s.after(ctx, rowDelay, t)
	}
	frame, err := s.due(ctx, ref, t.RunID, &row)
	if err != nil {
		return err
	}
	if frame == nil {
		if gone, err := s.tick(ctx, &row); gone || err != nil {
			return err
		}
		t.Deadline, t.Tries = row.Deadline, 0
		return s.after(ctx, s.next(t.Deadline), t)
	}
	err = s.answer(ctx, &row, frame)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, run.ErrHeld): // that one may die
	case t.Tries >= lateTries:
		s.Log.Warn("waiter given up", "run", ref.Run, "connection", t.Conn, "err", err)
		return row.Done(ctx, s.sure)
	default:
		t.Tries++
	}
	return s.after(ctx, s.Times.Answer+time.Second, t)
}

// due is the answer of a waiter whose run or time is over, or nil.
func (s *Service) due(ctx context.Context, ref run.Ref, runID string, row *run.WaitRow) ([]byte, error) {
	st, frame, err := s.look(ctx, ref, row.Waiter)
	if err != nil || frame != nil {
		return frame, err
	}
	if len(row.Answer) > 0 {
		return row.Answer, nil // somebody answered it, and may have died before the post
	}
	switch {
	case row.Deadline == 0 || s.Clock.Now().UnixMilli() < row.Deadline:
		return nil, nil
	case queuedChat(st):
		return s.queued(ctx, st, row.RequestID, runID)
	}
	return protocol.AppendResult(nil, row.RequestID, protocol.WaitExpired(runID))
}

// tick keeps the connection of a waiter open. One that is gone waits no more.
func (s *Service) tick(ctx context.Context, row *run.WaitRow) (gone bool, err error) {
	frame, err := protocol.AppendEvent(nil, protocol.EventTick, protocol.Tick{TS: s.Clock.Now().UnixMilli()})
	if err != nil {
		return false, err
	}
	err = s.Poster.Post(ctx, target(row.Waiter), frame)
	if errors.Is(err, push.ErrGone) {
		return true, errors.Join(row.Done(ctx, s.sure), s.Connections.Close(ctx, row.ConnectionID))
	}
	return false, nil // a tick that got lost is no matter
}

// upToMilli rounds up to what a row keeps of a time, so that no wait ends before its
// window has.
func upToMilli(t time.Time) time.Time {
	if ms := t.Truncate(time.Millisecond); ms.Before(t) {
		return ms.Add(time.Millisecond)
	}
	return t
}
