package lane

import (
	"context"
	"errors"
	"time"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// stopMemory is how long a connection's stop mark is of use: longer than any frame
// that it may have overtaken is on its way.
const stopMemory = time.Minute

// Stop is a request to stop runs of a session.
type Stop struct {
	Ref          session.Ref
	RunID        string // empty: everything that was accepted up to now
	Reason       string // stop reason of the runs: rpc, stop, ...
	ConnectionID string
	FrameAt      int64 // µs, see Call
}

// StopRun stops one run: one that waits is ended here and now, a started one gets
// a cancel mark that its holder sees within Times.Poll. It gives false for a run
// that is unknown or has ended.
func (s *Service) StopRun(ctx context.Context, q Stop) (bool, error) {
	r := run.RefOf(q.Ref.Tenant, q.RunID)
	for range 8 {
		st, err := run.Load(ctx, s.Store, r)
		if errors.Is(err, run.ErrUnknown) {
			return false, s.mark(ctx, q, false)
		}
		if err != nil || st.Done() {
			return false, err
		}
		ref := session.Ref{Tenant: st.Tenant, Key: st.SessionKey}
		m, err := session.LoadMeta(ctx, s.Store, ref)
		if err != nil {
			return false, err
		}
		for _, p := range m.Pending {
			if p.Run != r.Run {
				continue
			}
			ended, err := s.endPending(ctx, ref, p, stopped(q.Reason))
			if err != nil {
				return false, err
			}
			if ended {
				return true, s.Nudge(ctx, m, "abort", "abort/"+s.NewID())
			}
		}
		if st.State == run.Steered {
			ended, err := s.withdraw(ctx, st, q.Reason)
			if err != nil {
				return false, err
			}
			if ended {
				return true, s.Nudge(ctx, m, "abort", "abort/"+s.NewID())
			}
		}
		if st.State == run.Delivered {
			return false, nil // part of another run's turn now
		}
		if m.Active != r.Run {
			continue // between two places: look again
		}
		ok, err := s.cancel(ctx, m, q.Reason)
		if err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// cancel puts the cancel mark on the active run, if it still is.
func (s *Service) cancel(ctx context.Context, m session.Meta, reason string) (bool, error) {
	err := s.write(ctx, table.Op{
		Kind: table.Update, Key: m.MetaKey(),
		If: table.Equal(table.P(session.AttrActive), m.Active),
		Set: []table.SetOp{
			{Path: table.P(session.AttrCancel), Value: m.Active},
			{Path: table.P(session.AttrCancelWhy), Value: reason},
		},
	})
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.nudgeUnowned(ctx, m)
}

// nudgeUnowned wakes a session whose active run has nobody who would see a mark.
func (s *Service) nudgeUnowned(ctx context.Context, m session.Meta) error {
	if m.Owned(s.Clock.Now(), s.Times.Slack) {
		return nil
	}
	return s.Nudge(ctx, m, "abort", "abort/"+s.NewID())
}

// StopAll stops everything that the session has accepted: one number in META, then
// a wake-up, which ends what waits; the active run's holder sees the number too. It
// gives the short ids of the runs that it covers, those that wait first.
func (s *Service) StopAll(ctx context.Context, q Stop) ([]string, error) {
	for range 16 {
		m, err := session.LoadMeta(ctx, s.Store, q.Ref)
		if err != nil {
			return nil, err
		}
		var hit []string
		for _, p := range m.Pending {
			if p.Seq > m.Cutoff {
				hit = append(hit, p.Run)
			}
		}
		if m.Active != "" && !m.Marked() {
			hit = append(hit, m.Active)
		}
		err = s.mark(ctx, q, len(hit) > 0, m)
		if errors.Is(err, table.ErrCondition) {
			continue
		}
		if err != nil || len(hit) == 0 {
			return nil, err
		}
		m.Cutoff = m.Seq
		return hit, s.Nudge(ctx, m, "stop", "stop/"+s.NewID())
	}
	return nil, ErrUnavailable
}

// mark writes a connection's stop mark and, with cut, the cutoff at the accept
// sequence that m shows. A session that was never used is not made by it unless a
// frame could still be on its way.
func (s *Service) mark(ctx context.Context, q Stop, cut bool, seen ...session.Meta) error {
	now := s.Clock.Now()
	up := table.Op{Kind: table.Update, Key: q.Ref.MetaKey(), If: table.Exists()}
	if q.FrameAt > 0 && q.ConnectionID != "" {
		up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrStops, q.ConnectionID), Value: q.FrameAt})
	}
	if cut {
		m := seen[0]
		up.If = table.Equal(table.P(session.AttrSeq), m.Seq)
		up.Set = append(up.Set,
			table.SetOp{Path: table.P(session.AttrCutoff), Value: m.Seq},
			table.SetOp{Path: table.P(session.AttrCutWhy), Value: q.Reason})
	}
	if len(up.Set) == 0 {
		return nil
	}
	err := s.write(ctx, up)
	if cut || !errors.Is(err, table.ErrCondition) {
		return err
	}
	// No session yet: a frame of this connection that the stop overtook would make it.
	err = s.write(ctx, table.Op{
		Kind: table.Update, Key: q.Ref.MetaKey(), If: table.NotExists(),
		Set: []table.SetOp{
			{Path: table.P(session.AttrPending), Value: table.Map{}},
			{Path: table.P(session.AttrPendingN), Value: int64(0)},
			{Path: table.P(session.AttrStops), Value: table.Map{q.ConnectionID: q.FrameAt}},
			{Path: table.P(session.AttrSessionID), Value: s.NewID()},
			{Path: table.P(session.AttrCreated), Value: now.UnixMilli()},
		},
	})
	if errors.Is(err, table.ErrCondition) {
		return s.mark(ctx, q, false) // made meanwhile
	}
	return err
}
