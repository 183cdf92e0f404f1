package notify

import (
	"context"
	"errors"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/stream"
)

// Final is the second reply of agent for a run that has ended; nil where its caller
// wants none.
func (s *Service) Final(st run.Status) []byte {
	if st.Origin == nil || st.Origin.Kind != run.WaitFinal || st.Outcome == nil {
		return nil
	}
	b, err := st.AppendFinal(st.Origin.RequestID, s.MaxFrame)
	if err != nil {
		s.Log.Error("final reply not encoded", "run", st.Ref.Run, "err", err)
		return protocol.AppendError(nil, st.Origin.RequestID, protocol.Internal())
	}
	return b
}

// Finish does for an unsettled run what its end owes to others, when somebody else
// than its terminal's holder finds it: events, the caller, the waiters (L5). While
// that holder may still be at it the run is held.
func (s *Service) Finish(ctx context.Context, st run.Status) (held bool, err error) {
	if st.State == run.Delivered && st.Outcome == nil {
		into, err := run.Load(ctx, s.Store, run.Ref{Tenant: st.Tenant, Run: st.Into})
		if err != nil {
			return false, err
		}
		if into.Outcome == nil {
			return true, nil // cannot be: it is unsettled because that run ended
		}
		if err := s.share(ctx, &st, into); err != nil {
			return false, err
		}
	}
	if st.Outcome == nil {
		return true, nil
	}
	if s.Clock.Now().UnixMilli() < st.OriginLease {
		return true, nil
	}
	if err := s.events(ctx, st); err != nil {
		return false, err
	}
	if frame := s.Final(st); frame != nil {
		if err := s.post(ctx, *st.Origin, frame); err != nil {
			return false, err
		}
	}
	return s.Waiters(ctx, st)
}

// events pushes a run's last events again, or for a run that never began makes and
// logs them first.
func (s *Service) events(ctx context.Context, st run.Status) error {
	info := stream.Info{
		Ref: st.Ref, RunID: st.RunID, SessionKey: st.SessionKey, SessionID: st.SessionID, AgentID: st.AgentID,
		Lane: st.Lane, Origin: st.Origin, OriginUsesChat: st.Method != "agent",
	}
	from := st.TermEvent
	if from == 0 {
		out, err := s.Stream.Open(ctx, info, max(st.NextEvent, 1))
		if err != nil {
			return err
		}
		batch := out.Prepare(EndEvents(&st, "")...)
		from = batch.First()
		op := batch.Op()
		if _, err = s.Store.Write(ctx, op); err != nil {
			batch.Drop()
			out.Stop()
			return err
		}
		batch.Publish()
		return s.Late(ctx, out.Close(ctx))
	}
	err := s.Stream.PushLogged(ctx, info, from)
	var unsent *stream.UnsentError
	if errors.As(err, &unsent) {
		return s.Late(ctx, unsent.Unsent)
	}
	return err
}

// EndEvents are the last events of a run: its lifecycle end, then the chat's. text
// is the visible text that the chat's event carries.
func EndEvents(st *run.Status, text string) []stream.Event {
	o := st.Outcome
	started := st.StartedAt
	if started == 0 {
		started = st.EndedAt
	}
	d := map[string]any{"startedAt": started, "endedAt": st.EndedAt, "executionSettled": true}
	chat := map[string]any{}
	if o.StopReason != "" && o.Kind != run.Failed {
		d["stopReason"], chat["stopReason"] = o.StopReason, o.StopReason
	}
	if text != "" {
		chat["message"] = protocol.AssistantMessage(text, st.EndedAt)
	}
	switch o.Kind {
	case run.OK:
		d["phase"], d["aborted"], d["livenessState"] = protocol.LifecycleEnd, false, protocol.LivenessWorking
		chat["state"] = protocol.ChatStateFinal
	case run.Aborted:
		d["phase"], d["aborted"], d["status"] = protocol.LifecycleEnd, true, "cancelled"
		chat["state"] = protocol.ChatStateAborted
	case run.Timeout:
		d["phase"], d["aborted"], d["status"] = protocol.LifecycleEnd, true, protocol.StatusTimeout
		d["timeoutPhase"], d["providerStarted"] = o.TimeoutPhase, o.ProviderStarted
		chat["state"], chat["errorMessage"], chat["errorKind"] = protocol.ChatStateError, o.Error, "timeout"
	default:
		d["phase"], d["error"], d["livenessState"] = protocol.LifecycleError, o.Error, protocol.LivenessBlocked
		d["errorObservation"] = map[string]any{"provider": o.Provider, "model": o.Model, "failoverReason": o.ErrorKind}
		chat["state"], chat["errorMessage"], chat["errorKind"] = protocol.ChatStateError, o.Error, protocol.ChatErrorKind(o.ErrorKind)
	}
	return []stream.Event{stream.EndMessage(), stream.Agent(protocol.StreamLifecycle, d), stream.Chat(chat)}
}

// Waiters answers the clients that wait for a run beside its origin. held: another
// answerer has one of them for a moment; it gets a timer of its own, which answers
// it if that one does not (W2).
func (s *Service) Waiters(ctx context.Context, st run.Status) (held bool, err error) {
	rows, err := run.Waiters(ctx, s.Store, st.Ref)
	if err != nil {
		return false, err
	}
	for i := range rows {
		err := s.answer(ctx, &rows[i], s.frame(st, rows[i].Waiter))
		if errors.Is(err, run.ErrHeld) {
			err = s.waitTimer(ctx, st.Ref, st.RunID, rows[i].Waiter, rows[i].Deadline, s.Times.Answer+time.Second)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// frame is what a waiter of an ended run is answered with.
func (s *Service) frame(st run.Status, w run.Waiter) []byte {
	if w.Kind == run.WaitFinal {
		st.Origin = &w
		return s.Final(st)
	}
	b, err := protocol.AppendResult(nil, w.RequestID, st.Snapshot())
	if err != nil {
		return protocol.AppendError(nil, w.RequestID, protocol.Internal())
	}
	return b
}

// answer takes a waiter, posts, and removes it.
func (s *Service) answer(ctx context.Context, w *run.WaitRow, frame []byte) error {
	frame, err := w.Take(ctx, s.Store, frame, s.Clock.Now(), s.Times.Answer)
	if errors.Is(err, run.ErrAnswered) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.post(ctx, w.Waiter, frame); err != nil {
		return err
	}
	return w.Done(ctx, s.Store)
}

// Late hands what a stream could not deliver in time to the timer queue.
func (s *Service) Late(ctx context.Context, unsent []stream.Unsent) error {
	for _, u := range unsent {
		t := timer{Kind: timerPost, Conn: u.To.ConnectionID, Callback: u.To.Callback, Frame: u.Frame}
		if err := s.after(ctx, time.Second, t); err != nil {
			return err
		}
	}
	return nil
}

// lateTries bounds how often an unsent frame is tried again: with its pauses about
// five minutes, longer than a connection that cannot take a frame lives.
const lateTries = 8

func (s *Service) late(ctx context.Context, t timer) error {
	err := s.post(ctx, run.Waiter{ConnectionID: t.Conn, Callback: t.Callback}, t.Frame)
	if err == nil || errors.Is(err, push.ErrTooLarge) || t.Tries >= lateTries {
		return nil
	}
	t.Tries++
	return s.after(ctx, time.Second<<t.Tries, t)
}
