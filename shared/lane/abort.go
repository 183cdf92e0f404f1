package lane

import (
	"context"
	"errors"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Stop is a request to stop runs of a session.
type Stop struct {
	Ref          session.Ref
	RunID        string // empty: everything that was accepted up to now
	Reason       string // stop reason of the runs: rpc, stop, ...
	ConnectionID string
	FrameAt      int64 // µs, see Call
	// Unless names a run that must not be known yet, of StopAll: a repeat of what asks
	// for the stop must not end what the first one began.
	Unless string
}

// ErrKnown is a stop on behalf of a run that has been accepted already.
var ErrKnown = errors.New("lane: the run is known already")

// StopRun stops one run: one that waits is ended here and now, a started one gets
// a cancel mark that its holder sees within Times.Poll. It gives false for a run
// that is unknown or has ended; one that is still on its way to its acceptance, in
// an earlier frame of the same connection, is then accepted as stopped (K1).
func (s *Service) StopRun(ctx context.Context, q Stop) (bool, error) {
	r := run.RefOf(q.Ref.Tenant, q.RunID)
	for range stopTries {
		st, err := run.Load(ctx, s.Store, r)
		if errors.Is(err, run.ErrUnknown) {
			if q.FrameAt == 0 || q.ConnectionID == "" || q.Ref.Key == "" {
				return false, nil
			}
			again, err := s.markUnknown(ctx, q, r)
			if err != nil || !again {
				return false, err
			}
			continue
		}
		if err != nil || st.Done() {
			return false, err
		}
		ref := session.Ref{Tenant: st.Tenant, Key: st.SessionKey}
		m, err := session.LoadMeta(ctx, s.Store, ref)
		if err != nil {
			return false, err
		}
		done, ok, err := s.stopKnown(ctx, q, st, m)
		if done || err != nil {
			return ok, err
		}
		// Between two places: look again.
	}
	return false, nil
}

// stopTries bounds how often a stop looks again because its run moved meanwhile; a
// run moves a few times in its life.
const stopTries = 16

// stopKnown stops a run where m shows it. done is false where it was somewhere else
// by then.
func (s *Service) stopKnown(ctx context.Context, q Stop, st run.Status, m session.Meta) (done, ok bool, err error) {
	if st.State == run.Delivered {
		if st.Disposition.Kind == IsSummarised {
			return s.leaveSummary(ctx, q, st, m)
		}
		return true, false, nil // part of another run's turn now
	}
	if m.Active == st.Run {
		ok, err = s.cancel(ctx, m, q.Reason)
		return ok, ok, err
	}
	if st.State == run.Steered {
		ok, err = s.withdraw(ctx, st, q.Reason)
	}
	for _, p := range m.Pending {
		if p.Run == st.Run {
			ok, err = s.endPending(ctx, m.Ref, p, stopped(q.Reason), run.Disposition{Kind: IsDropped, Reason: q.Reason})
		}
	}
	if err != nil || !ok {
		return false, false, err
	}
	return true, true, s.nudge(ctx, m, st.Lane, "abort", "abort/"+s.NewID())
}

// markUnknown leaves a mark for a run that nobody has accepted; again says that it
// may have been accepted meanwhile.
func (s *Service) markUnknown(ctx context.Context, q Stop, r run.Ref) (again bool, err error) {
	m, err := session.LoadMeta(ctx, s.Store, q.Ref)
	if err != nil {
		return false, err
	}
	// Read in this order: what is accepted after META was read fails the mark, what
	// was accepted before is seen now.
	if _, err = run.Load(ctx, s.Store, r); !errors.Is(err, run.ErrUnknown) {
		return true, err
	}
	err = s.mark(ctx, q, m, false)
	if errors.Is(err, table.ErrCondition) {
		return true, nil
	}
	return false, err
}

// cancel puts the cancel mark on the active run, if it still is.
func (s *Service) cancel(ctx context.Context, m session.Meta, reason string) (bool, error) {
	now, err := s.update(ctx, table.Op{
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
	// What the mark met counts, not what was read before: a run that went to sleep in
	// between has nobody who would see it.
	if m = session.DecodeMeta(m.Ref, now); m.Owned(s.Clock.Now(), s.Times.Slack) {
		return true, nil
	}
	return true, s.Nudge(ctx, m, "abort", "abort/"+s.NewID())
}

// StopAll stops everything that the session has accepted: one number in META, then
// a wake-up, which ends what waits; the active run's holder sees the number too. It
// gives the short ids of the runs that it covers, those that wait first.
func (s *Service) StopAll(ctx context.Context, q Stop) ([]string, error) {
	for range stopTries {
		m, err := session.LoadMeta(ctx, s.Store, q.Ref)
		if err != nil {
			return nil, err
		}
		// Read in this order: what is accepted after META was read fails the mark.
		if known, err := s.knows(ctx, q); known || err != nil {
			return nil, errors.Join(err, errIf(known))
		}
		hit, wake := s.covered(m)
		if len(hit) == 0 && m.MailN > 0 {
			// A run that is to end already puts what waits in its mailbox back in line.
			mail, err := Mailbox(ctx, s.Store, q.Ref)
			if err != nil {
				return nil, err
			}
			if len(mail) == 0 {
				continue // it has done so
			}
			for _, msg := range mail {
				hit = append(hit, msg.Run)
			}
		}
		err = s.mark(ctx, q, m, len(hit) > 0)
		if ce, refused := table.Failed(err); refused {
			if now := session.DecodeMeta(m.Ref, ce.Found); !ce.Ambiguous || len(hit) == 0 || now.Cutoff < m.Seq {
				continue // something was accepted meanwhile: it is covered too
			}
			err = nil // written, the answer was lost (C5)
		}
		if err != nil || len(hit) == 0 {
			return nil, err
		}
		m.Cutoff = m.Seq
		return hit, s.nudge(ctx, m, wake, "stop", "stop/"+s.NewID())
	}
	return nil, ErrUnavailable
}

// covered lists the runs of a session that a stop of all ends, those that wait first, and
// the lane that is to look after it.
func (s *Service) covered(m session.Meta) (runs []string, wake string) {
	wake = NextLane(m)
	for _, p := range m.Pending {
		if p.Seq <= m.Cutoff {
			continue
		}
		runs = append(runs, p.Run)
		if m.Owned(s.Clock.Now(), s.Times.Slack) {
			wake = p.Lane // the active run's holder sees the mark without a wake-up
		}
	}
	if m.Active != "" && !m.Marked() {
		runs = append(runs, m.Active)
	}
	return runs, wake
}

// knows says whether the run is known that a stop must come before.
func (s *Service) knows(ctx context.Context, q Stop) (bool, error) {
	if q.Unless == "" {
		return false, nil
	}
	_, err := run.Load(ctx, s.Store, run.RefOf(q.Ref.Tenant, q.Unless))
	if errors.Is(err, run.ErrUnknown) {
		return false, nil
	}
	return err == nil, err
}

func errIf(known bool) error {
	if known {
		return ErrKnown
	}
	return nil
}
