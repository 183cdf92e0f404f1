package diag

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/table"
)

// report says what was found: to the log, and to operators who listen.
func (l *look) report(ctx context.Context, m session.Meta, in Input, rep Report) error {
	due := true
	var err error
	if rep.Event != protocol.EventSessionStalled {
		due, err = l.due(ctx, m, in, rep.Event)
	}
	if !due {
		return err
	}
	level := slog.LevelWarn
	if rep.Event == protocol.EventSessionLongRunning && in.Queue == 0 {
		level = slog.LevelDebug
	}
	l.publish(ctx, level, m, rep.Event, reportOf(m, in, rep))
	return err
}

// reportOf is the payload of a report.
func reportOf(m session.Meta, in Input, rep Report) protocol.SessionReport {
	p := protocol.SessionReport{
		SessionID: m.SessionID, SessionKey: m.Key, State: in.State, AgeMs: in.Age.Milliseconds(), QueueDepth: in.Queue,
		Reason: rep.Reason, Classification: rep.Classification, ActiveWorkKind: in.Kind,
		LastProgressReason: in.Why, TerminalProgressStale: in.Terminal,
	}
	ms := func(d time.Duration) *int64 { n := d.Milliseconds(); return &n }
	p.LastProgressAgeMs = ms(in.Progress)
	if in.Tool != "" {
		p.ActiveToolName, p.ActiveToolCallID, p.ActiveToolAgeMs = in.Tool, in.CallID, ms(in.WorkAge)
	}
	if in.Repeated > 0 {
		p.RepeatedRequestNoProgressAgeMs = ms(in.Repeated)
	}
	return p
}

// probe begins the ids of sessions that only test whether all is well.
const probe = "probe-"

// publish logs an event and keeps it for operators. The log names the session by its
// hash: a key may say who somebody is.
func (l *look) publish(ctx context.Context, level slog.Level, m session.Meta, event string, payload any) {
	if strings.HasPrefix(m.SessionID, probe) {
		return
	}
	l.Log.LogAttrs(ctx, level, event, append([]slog.Attr{slog.String("tenant", m.Tenant), slog.String("session", m.Hash())}, attrs(payload)...)...)
	if l.Operators == nil {
		return
	}
	frame, err := protocol.AppendEvent(nil, event, payload)
	if err != nil {
		l.Log.Error("event without a JSON form", "event", event)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames[m.Tenant] = append(l.frames[m.Tenant], frame)
}

// attrs are the members of a payload for a log.
func attrs(payload any) []slog.Attr {
	switch p := payload.(type) {
	case protocol.SessionReport:
		a := []slog.Attr{
			slog.String("sessionId", p.SessionID), slog.String("state", p.State), slog.Int64("ageMs", p.AgeMs), slog.Int("queueDepth", p.QueueDepth),
			slog.String("reason", p.Reason), slog.String("classification", p.Classification), slog.String("activeWorkKind", p.ActiveWorkKind),
			slog.Int64("lastProgressAgeMs", *p.LastProgressAgeMs), slog.String("lastProgressReason", p.LastProgressReason),
		}
		if p.ActiveToolAgeMs != nil {
			a = append(a, slog.String("activeToolName", p.ActiveToolName), slog.String("activeToolCallId", p.ActiveToolCallID), slog.Int64("activeToolAgeMs", *p.ActiveToolAgeMs))
		}
		if p.RepeatedRequestNoProgressAgeMs != nil {
			a = append(a, slog.Int64("repeatedRequestNoProgressAgeMs", *p.RepeatedRequestNoProgressAgeMs))
		}
		if p.TerminalProgressStale {
			a = append(a, slog.Bool("terminalProgressStale", true))
		}
		return a
	case protocol.RecoveryRequested:
		return requestAttrs(p)
	case protocol.RecoveryCompleted:
		return append(requestAttrs(p.RecoveryRequested),
			slog.String("status", p.Status), slog.String("action", p.Action), slog.String("outcomeReason", p.OutcomeReason),
			slog.Int("released", p.Released), slog.Bool("stale", p.Stale))
	case protocol.SessionStateEvent:
		return []slog.Attr{
			slog.String("sessionId", p.SessionID), slog.String("prevState", p.PrevState), slog.String("state", p.State),
			slog.String("reason", p.Reason), slog.Int("queueDepth", p.QueueDepth),
		}
	}
	return nil
}

func requestAttrs(p protocol.RecoveryRequested) []slog.Attr {
	return []slog.Attr{
		slog.String("sessionId", p.SessionID), slog.String("state", p.State), slog.Int64("stateGeneration", p.StateGeneration),
		slog.Int64("ageMs", p.AgeMs), slog.Int("queueDepth", p.QueueDepth), slog.String("reason", p.Reason),
		slog.String("activeWorkKind", p.ActiveWorkKind), slog.Bool("allowActiveAbort", p.AllowActiveAbort),
	}
}

// tell hands what was said so far to operators. Who is not told sees it in the log.
func (l *look) tell(ctx context.Context) {
	if l.Operators == nil {
		return
	}
	for tenant, frames := range l.frames {
		if err := l.Operators.Tell(ctx, tenant, frames); err != nil {
			l.Log.Warn("operators were not told", "tenant", tenant, "events", len(frames), "err", err)
		}
	}
	clear(l.frames)
}

// Attributes of the item that remembers when was warned of a session. It is of no
// use to anybody else, and losing it costs one warning.
const (
	attrStandstill = "gen"   // of which standstill: token and generation
	attrWarned     = "warn:" // with the event: age in ms at the last warning
	attrRev        = "rev"
)

// memoryFor is how long that item is kept: longer than two warnings are apart in a
// session that stood still for weeks is not needed.
const memoryFor = 7 * 24 * time.Hour

func memoryKey(ref session.Ref) table.Key {
	return table.Key{Table: table.Sessions, PK: ref.PK(), SK: "DIAG"}
}

// due says whether a warning is to be given: at the first look at which a session
// stands still for Warn, then at ages of max(last + Warn, 2 x last), per event, until
// it moves. Of several looks at once one warns. Where it cannot be known it is given.
func (l *look) due(ctx context.Context, m session.Meta, in Input, event string) (bool, error) {
	it, err := l.Store.Get(ctx, memoryKey(m.Ref))
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return true, fmt.Errorf("warnings: %w", err)
	}
	same := table.NotExists()
	if err == nil {
		same = table.Equal(table.P(attrRev), it.Attrs.Str(attrRev))
	}
	standstill := fmt.Sprintf("%d/%d", m.Token, in.Generation)
	now := table.Attrs{attrStandstill: standstill, attrRev: l.NewID(), table.TTLAttr: l.Clock.Now().Add(memoryFor).Unix()}
	last := int64(0)
	if it.Attrs.Str(attrStandstill) == standstill {
		last = it.Attrs.Int(attrWarned + event)
		for _, e := range []string{protocol.EventSessionStuck, protocol.EventSessionLongRunning} {
			if n := it.Attrs.Int(attrWarned + e); n != 0 {
				now[attrWarned+e] = n
			}
		}
	}
	age := in.Age.Milliseconds()
	if warn := l.Thresholds.Warn.Milliseconds(); last != 0 && age < max(last+warn, 2*last) {
		return false, nil
	}
	now[attrWarned+event] = age
	_, err = l.Store.Write(ctx, table.Op{Kind: table.Put, Key: memoryKey(m.Ref), Item: now, If: same})
	if errors.Is(err, table.ErrCondition) || errors.Is(err, table.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("warnings: %w", err)
	}
	return true, nil
}
