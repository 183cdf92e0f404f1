package diag

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
)

// How a recovery ended.
const (
	statusAborted  = "aborted"
	statusReleased = "released"
	statusSkipped  = "skipped"
	statusNoop     = "noop"
	statusFailed   = "failed"

	actionAbort   = "abort_embedded_run"
	actionRelease = "release_lane"
	actionKeep    = "keep_lane"
	actionObserve = "observe_only"
	actionNone    = "none"
)

// Why nothing was done, or what was released.
const (
	skipInFlight     = "already_in_flight"
	skipNoSession    = "missing_session_ref"
	skipMoved        = "stale_session_state"
	skipEnded        = "terminal_outcome_committed"
	skipLaneFull     = "global_lane_wait"
	skipReply        = "active_reply_work"
	skipRun          = "active_embedded_run"
	skipMaintenance  = "deferred_maintenance_wait"
	skipLaneTask     = "active_lane_task"
	skipRuntimeWait  = "runtime_owned_wait"
	skipException    = "exception"
	releasedDeadTask = "stale_lane_task"
	releasedNoWork   = "no_active_work"
)

// outcome is how a recovery ended.
type outcome struct {
	status, action, reason string
	stale                  bool
}

func skipped(reason string) outcome { return outcome{statusSkipped, actionKeep, reason, false} }

// recover does something about a session. It gives false where somebody is at it
// after all, so that it does not count as stuck.
func (l *look) recover(ctx context.Context, v sight, in Input, rep Report) (alone bool) {
	req := protocol.RecoveryRequested{
		SessionID: v.m.SessionID, SessionKey: v.m.Key, State: in.State, StateGeneration: in.Generation, AgeMs: in.Age.Milliseconds(),
		QueueDepth: in.Queue, Reason: rep.Reason, ActiveWorkKind: in.Kind, AllowActiveAbort: rep.Event == protocol.EventSessionStalled,
	}
	if req.AllowActiveAbort {
		out, wait := l.abort(ctx, v.m)
		l.requested(ctx, v.m, req, out)
		if !wait {
			l.completed(ctx, v.m, req, out)
			return true
		}
		l.waits = append(l.waits, func(ctx context.Context) { l.completed(ctx, v.m, req, l.settle(ctx, v.m)) })
		return true
	}
	out := l.release(ctx, v)
	l.requested(ctx, v.m, req, out)
	l.completed(ctx, v.m, req, out)
	switch out.reason {
	case skipLaneFull, skipReply, skipRun, skipMaintenance, skipLaneTask, skipRuntimeWait, skipMoved:
		return false
	}
	return true
}

// quiet is the level of a recovery that did nothing: at every look there may be one.
func (o outcome) quiet() bool { return o.status == statusSkipped || o.status == statusNoop }

func (l *look) requested(ctx context.Context, m session.Meta, req protocol.RecoveryRequested, out outcome) {
	if out.quiet() {
		l.trace(ctx, m, protocol.EventRecoveryRequested, req)
		return
	}
	l.publish(ctx, slog.LevelWarn, m, protocol.EventRecoveryRequested, req)
}

func (l *look) completed(ctx context.Context, m session.Meta, req protocol.RecoveryRequested, out outcome) {
	done := protocol.RecoveryCompleted{RecoveryRequested: req, Status: out.status, Action: out.action, OutcomeReason: out.reason, Stale: out.stale}
	success := out.status == statusAborted || out.status == statusReleased
	if success {
		done.Released = 1
	}
	if out.quiet() {
		l.trace(ctx, m, protocol.EventRecoveryCompleted, done)
		return
	}
	l.publish(ctx, slog.LevelWarn, m, protocol.EventRecoveryCompleted, done)
	if success {
		l.publish(ctx, slog.LevelInfo, m, protocol.EventSessionState, protocol.SessionStateEvent{
			SessionID: m.SessionID, SessionKey: m.Key, PrevState: req.State, State: protocol.SessionIdle,
			Reason: run.StopStuck + ":" + out.status, QueueDepth: max(req.QueueDepth-1, 0),
		})
	}
}

// trace logs what operators need not see.
func (l *look) trace(ctx context.Context, m session.Meta, event string, payload any) {
	l.Log.LogAttrs(ctx, slog.LevelDebug, event, append([]slog.Attr{slog.String("tenant", m.Tenant), slog.String("session", m.Hash())}, attrs(payload)...)...)
}

// release gets a session going that nobody is at: with a wake-up in a group of its
// own, which a message that a dead receiver still holds cannot block. Whoever gets it
// takes the claim over, or ends the run after too many attempts (R3).
func (l *look) release(ctx context.Context, v sight) outcome {
	m, skip := l.gates(ctx, v.m)
	if skip != (outcome{}) {
		return skip
	}
	why := releasedNoWork
	if m.Active != "" {
		why = releasedDeadTask
	}
	if v.woken { // by this very look
		return outcome{statusReleased, actionRelease, why, false}
	}
	sent, err := l.Lanes.Wake(ctx, m)
	switch {
	case err != nil:
		return l.failed(m, err)
	case !sent:
		return skipped(skipInFlight)
	}
	return outcome{statusReleased, actionRelease, why, false}
}

// gates reads the session again and says why it is to be left alone.
func (l *look) gates(ctx context.Context, was session.Meta) (session.Meta, outcome) {
	if was.SessionID == "" {
		return was, outcome{statusSkipped, actionNone, skipNoSession, false}
	}
	m, err := session.LoadMeta(ctx, l.Store, was.Ref)
	if err != nil {
		return m, l.failed(was, err)
	}
	now := l.Clock.Now()
	switch {
	case !same(was, m):
		return m, outcome{statusSkipped, actionNone, skipMoved, true}
	case m.Owned(now, l.Times.Slack) && claim.RunOf(m.Owner) == "":
		return m, skipped(skipMaintenance)
	case m.Owned(now, l.Times.Slack):
		return m, outcome{statusSkipped, actionObserve, skipRun, false}
	case m.Asleep(now):
		return m, skipped(skipRuntimeWait)
	case m.Active == "" && len(m.Unsettled) > 0:
		if told, err := l.beingTold(ctx, m, now); err != nil {
			return m, l.failed(m, err)
		} else if told {
			return m, skipped(skipReply)
		}
	case m.Active == "" && m.Debounce.After(now):
		return m, skipped(skipLaneTask) // a timer is under way
	}
	if n := lane.NextLane(m); l.caps[n] > 0 && l.live[n] >= l.caps[n] {
		return m, skipped(skipLaneFull)
	}
	return m, outcome{}
}

// beingTold says whether somebody is about to tell the end of the run that keeps the
// session from being idle.
func (l *look) beingTold(ctx context.Context, m session.Meta, now time.Time) (bool, error) {
	st, err := run.Load(ctx, l.Store, run.Ref{Tenant: m.Tenant, Run: m.Unsettled[0]})
	if errors.Is(err, run.ErrUnknown) {
		return false, nil
	}
	return err == nil && st.OriginLease > now.UnixMilli(), err
}

// abort tells a run to end. wait says that it was told and has not ended yet.
func (l *look) abort(ctx context.Context, m session.Meta) (out outcome, wait bool) {
	if m.SessionID == "" {
		return outcome{statusSkipped, actionNone, skipNoSession, false}, false
	}
	st, err := run.Load(ctx, l.Store, run.Ref{Tenant: m.Tenant, Run: m.Active})
	switch {
	case err != nil && !errors.Is(err, run.ErrUnknown):
		return l.failed(m, err), false
	case err == nil && st.Done():
		return outcome{statusNoop, actionNone, skipEnded, false}, false
	case m.Marked(): // by somebody else, or by a look that was cut
		return outcome{}, true
	}
	ok, err := l.Lanes.Interrupt(ctx, m, run.StopStuck)
	switch {
	case err != nil:
		return l.failed(m, err), false
	case !ok:
		return outcome{statusSkipped, actionNone, skipMoved, true}, false
	}
	return outcome{}, true
}

// settlePoll is how often it is looked whether a run has ended.
const settlePoll = time.Second

// settle waits until a run that was told to end has, and takes its claim away where
// it does not. A run that showed a sign of life since is left alone: it sees the mark
// by itself.
func (l *look) settle(ctx context.Context, m session.Meta) outcome {
	end := l.Clock.Now().Add(l.Thresholds.Settle)
	for {
		now, err := session.LoadMeta(ctx, l.Store, m.Ref)
		switch {
		case err != nil:
			return l.failed(m, err)
		case now.Active != m.Active:
			return outcome{statusAborted, actionAbort, "", false}
		}
		left := end.Sub(l.Clock.Now())
		if left <= 0 {
			break
		}
		if err := clock.Sleep(ctx, l.Clock, min(settlePoll, left)); err != nil {
			return l.failed(m, err)
		}
	}
	ok, err := l.Lanes.Revoke(ctx, m)
	switch {
	case err != nil:
		return l.failed(m, err)
	case !ok:
		return outcome{statusSkipped, actionKeep, skipMoved, true}
	}
	return outcome{statusReleased, actionRelease, releasedDeadTask, false}
}

func (l *look) failed(m session.Meta, err error) outcome {
	l.Log.Error("recovery failed", "session", m.Hash(), "err", err)
	return outcome{statusFailed, actionNone, skipException, false}
}
