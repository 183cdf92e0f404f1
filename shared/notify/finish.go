package notify

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/stream"
	"laneway/shared/table"
)

// Final is the second reply of agent for a run that has ended; nil where its caller
// wants none.
func (s *Service) Final(st run.Status) []byte {
	if st.Origin == nil || st.Outcome == nil {
		return nil
	}
	return s.final(st, *st.Origin, s.MaxFrame)
}

// final is that reply to a client, in at most limit bytes.
func (s *Service) final(st run.Status, w run.Waiter, limit int) []byte {
	if w.Kind != run.WaitFinal {
		return nil
	}
	b, err := st.AppendFinal(w.RequestID, limit)
	if err != nil {
		s.Log.Error("final reply not encoded", "run", st.Ref.Run, "err", err)
		return protocol.AppendError(nil, w.RequestID, protocol.Internal())
	}
	return b
}

// Finish does for an unsettled run what its end owes to others, when somebody else
// than its terminal's holder finds it: events, the caller, the waiters (L5). While
// another one may still be at it the run is held.
func (s *Service) Finish(ctx context.Context, st run.Status) (held bool, err error) {
	if held, err = s.lease(ctx, &st); held || err != nil {
		return held, err
	}
	if err := s.events(ctx, st); err != nil {
		return false, err
	}
	if frame := s.Final(st); frame != nil {
		if err := s.post(ctx, *st.Origin, frame); err != nil {
			u := stream.Unsent{To: target(*st.Origin), Frame: frame, Waiter: st.Origin}
			if err := s.Late(ctx, st, []stream.Unsent{u}); err != nil {
				return false, err
			}
		}
	}
	if err := s.Waiters(ctx, st); err != nil || st.TermEvent == 0 {
		return false, err
	}
	return false, run.Expire(ctx, s.sure, st.Ref, s.Clock.Now().Add(run.Keep))
}

// lease makes the caller the one who tells a run's end, for as long as an answerer has
// (W2), and gives a message that another run took the outcome that it shares.
func (s *Service) lease(ctx context.Context, st *run.Status) (held bool, err error) {
	now := s.Clock.Now()
	if now.UnixMilli() < st.OriginLease {
		return true, nil
	}
	until := now.Add(s.Times.Answer).UnixMilli()
	set := []table.SetOp{{Path: table.P(run.AttrOriginLease), Value: until}}
	if st.Outcome == nil {
		if st.State != run.Delivered {
			return true, nil // cannot be: it is unsettled because it ended
		}
		into, err := s.taker(ctx, *st)
		if err != nil || into.Outcome == nil {
			return err == nil, err
		}
		share(st, into)
		more, err := ended(st, now)
		if err != nil {
			return false, err
		}
		set = append(set, more...)
	}
	_, err = s.sure.Write(ctx, table.Op{
		Kind: table.Update, Key: st.StatusKey(), Set: set,
		If: table.All(table.Exists(), table.Any(
			table.Lacks(table.P(run.AttrOriginLease)),
			table.Less(table.P(run.AttrOriginLease), now.UnixMilli()+1))),
	})
	if ce, failed := table.Failed(err); failed {
		mine := ce.Ambiguous && ce.Found != nil && ce.Found.Attrs.Int(run.AttrOriginLease) == until
		return !mine, nil
	}
	return false, err
}

// taker is the run that took a message. Should its record have expired, the message
// ended with it, nobody knows how.
func (s *Service) taker(ctx context.Context, st run.Status) (run.Status, error) {
	into, err := run.Load(ctx, s.Store, run.Ref{Tenant: st.Tenant, Run: st.Into})
	if errors.Is(err, run.ErrUnknown) {
		into = st
		into.EndedAt = s.Clock.Now().UnixMilli()
		into.Outcome = &run.Outcome{Kind: run.Failed, Error: "The record of the run that took this message has expired.", ErrorKind: "unknown"}
		return into, nil
	}
	return into, err
}

// share gives a message that another run took that one's outcome.
func share(st *run.Status, into run.Status) {
	st.Outcome, st.EndedAt = into.Outcome, into.EndedAt
	if st.StartedAt == 0 {
		st.StartedAt = into.StartedAt
	}
	kind := lane.IsCollected
	if k := st.Disposition.Kind; k == lane.IsSteered || k == lane.IsSummarised {
		kind = k
	}
	st.Disposition = run.Disposition{Kind: kind, RunID: into.RunID, Step: st.Disposition.Step}
}

// ended is what the record of a run that shares an outcome says from then on.
func ended(st *run.Status, now time.Time) ([]table.SetOp, error) {
	out, err := json.Marshal(st.Outcome)
	if err != nil {
		return nil, err
	}
	disp, err := json.Marshal(st.Disposition)
	if err != nil {
		return nil, err
	}
	return []table.SetOp{
		{Path: table.P(run.AttrState), Value: string(run.Ended)},
		{Path: table.P(run.AttrOutcome), Value: out},
		{Path: table.P(run.AttrDisposition), Value: disp},
		{Path: table.P(run.AttrStarted), Value: st.StartedAt},
		{Path: table.P(run.AttrEnded), Value: st.EndedAt},
		{Path: table.P(table.TTLAttr), Value: now.Add(run.Keep).Unix()},
	}, nil
}

// events pushes a run's last events again, or for a run that never began makes and
// logs them first.
func (s *Service) events(ctx context.Context, st run.Status) error {
	info := stream.Info{
		Ref: st.Ref, RunID: st.RunID, SessionKey: st.SessionKey, SessionID: st.SessionID, AgentID: st.AgentID,
		Lane: st.Lane, Origin: st.Origin, OriginUsesChat: st.Method != "agent",
	}
	if st.TermEvent == 0 {
		return s.firstEvents(ctx, st, info)
	}
	err := s.Stream.PushLogged(ctx, info, st.TermEvent)
	if unsent, ok := errors.AsType[*stream.UnsentError](err); ok {
		return s.Late(ctx, st, unsent.Unsent)
	}
	return err
}

func (s *Service) firstEvents(ctx context.Context, st run.Status, info stream.Info) error {
	out, err := s.Stream.Open(ctx, info, max(st.NextEvent, 1))
	if err != nil {
		return err
	}
	if k := st.Disposition.Kind; k == lane.IsDropped || k == lane.IsSuperseded {
		frame, err := st.AppendDisposition(nil)
		if err != nil {
			s.Log.Error("receipt not encoded", "run", st.Ref.Run, "err", err)
		} else {
			out.Tell(st.Origin, frame)
		}
	}
	batch := out.Prepare(EndEvents(&st, "")...)
	batch.Expire(s.Clock.Now().Add(run.Keep))
	// The same row whoever writes it: a repeat after a crash changes nothing.
	if _, err := s.sure.Write(ctx, batch.Op()); err != nil {
		batch.Drop()
		out.Stop()
		return err
	}
	batch.Publish()
	return s.Late(ctx, st, out.Close(ctx))
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
		observed := map[string]any{"provider": o.Provider, "model": o.Model, "failoverReason": o.ErrorKind}
		if o.ErrorStatus != 0 {
			observed["status"] = o.ErrorStatus
		}
		d["errorObservation"] = observed
		chat["state"], chat["errorMessage"], chat["errorKind"] = protocol.ChatStateError, o.Error, protocol.ChatErrorKind(o.ErrorKind)
	}
	return []stream.Event{stream.EndMessage(), stream.Agent(protocol.StreamLifecycle, d), stream.Chat(chat)}
}

// answerAtOnce bounds the waiters of a run that are answered side by side.
const answerAtOnce = 8

// Waiters answers the clients that wait for a run beside its origin. One that cannot
// be answered now, because another answerer has it for a moment or its connection does
// not take the frame, gets a timer of its own: nobody's connection keeps a run
// unsettled, and with it its lane. Behind them a scheduled run's job is told.
func (s *Service) Waiters(ctx context.Context, st run.Status) error {
	rows, err := run.Waiters(ctx, s.Store, st.Ref)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(answerAtOnce)
	for i := range rows {
		g.Go(func() error {
			w := &rows[i]
			if s.answer(ctx, w, s.frame(st, w.Waiter)) == nil {
				return nil
			}
			return s.waitTimer(ctx, timer{Run: st.Ref.Run, Tenant: st.Tenant, RunID: st.RunID, Deadline: w.Deadline}, w.Waiter, s.Times.Answer+time.Second)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.jobEnded(ctx, st)
}

// frame is what a waiter of an ended run is answered with: it is written into the
// waiter's row, so the limit of an adapter that takes more does not count.
func (s *Service) frame(st run.Status, w run.Waiter) []byte {
	if w.Kind == run.WaitFinal {
		return s.final(st, w, min(s.MaxFrame, protocol.MaxFrameOut))
	}
	b, err := protocol.AppendResult(nil, w.RequestID, st.Snapshot())
	if err != nil {
		return protocol.AppendError(nil, w.RequestID, protocol.Internal())
	}
	return b
}

// answer takes a waiter, posts, and removes it.
func (s *Service) answer(ctx context.Context, w *run.WaitRow, frame []byte) error {
	frame, err := w.Take(ctx, s.sure, frame, s.Clock.Now(), s.Times.Answer)
	if errors.Is(err, run.ErrAnswered) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.post(ctx, w.Waiter, frame); err != nil {
		return err
	}
	return w.Done(ctx, s.sure)
}

func target(w run.Waiter) push.Target {
	return push.Target{ConnectionID: w.ConnectionID, Callback: w.Callback}
}
