package lane

import (
	"context"
	"time"

	"laneway/shared/claim"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Interrupt puts a cancel mark on the active run, if since m was read neither the
// claim nor the run's progress has changed and nobody else has asked for its end.
// false: something has.
func (s *Service) Interrupt(ctx context.Context, m session.Meta, reason string) (bool, error) {
	err := s.write(ctx, table.Op{
		Kind: table.Update, Key: m.MetaKey(),
		If: table.All(unmoved(m), table.Lacks(table.P(session.AttrCancel))),
		Set: []table.SetOp{
			{Path: table.P(session.AttrCancel), Value: m.Active},
			{Path: table.P(session.AttrCancelWhy), Value: reason},
		},
	})
	if ce, refused := table.Failed(err); refused {
		now := session.DecodeMeta(m.Ref, ce.Found)
		// Of a write whose answer was lost the mark is the trace (C5).
		return ce.Ambiguous && now.Active == m.Active && now.Cancel == m.Active && now.CancelWhy == reason, nil
	}
	return err == nil, err
}

// Revoke takes the claim from a holder that lives and does nothing, though it was
// told to stop: the token grows, so it can write nothing more and cannot renew its
// lease. Who comes next still waits for the end of that lease, in which the old
// holder may believe itself fresh (C3), and is woken then. false: since m was read
// the claim or the run's progress has changed.
func (s *Service) Revoke(ctx context.Context, m session.Meta) (bool, error) {
	wid := s.NewID()
	err := s.write(ctx, table.Op{
		Kind: table.Update, Key: m.MetaKey(),
		If:  table.All(unmoved(m), table.Equal(table.P(session.AttrOwner), m.Owner)),
		Add: []table.AddOp{{Path: table.P(session.AttrToken), N: 1}},
		Set: []table.SetOp{
			{Path: table.P(session.AttrOwner), Value: claim.Revoked},
			// With an id of its own, no write of the holder's that got no answer is taken for
			// this one.
			{Path: table.P(session.AttrWrite), Value: wid},
		},
	})
	if ce, refused := table.Failed(err); refused {
		if now := session.DecodeMeta(m.Ref, ce.Found); !ce.Ambiguous || now.WriteID != wid {
			return false, nil
		}
		err = nil
	}
	if err != nil {
		return false, err
	}
	m.Token++
	return true, s.NudgeLater(ctx, m, m.Lease.Add(s.Times.Slack+graceOfRevoke).Sub(s.Clock.Now()), "revoked")
}

// graceOfRevoke keeps the wake-up behind a revoked lease from coming too early: a
// timer has a grain of a second.
const graceOfRevoke = time.Second

// unmoved is the condition that the active run is held as m says and has made no
// progress since.
func unmoved(m session.Meta) table.Cond {
	progress := table.Lacks(table.P(session.AttrProgress))
	if m.Progress != (session.Progress{}) {
		progress = table.Equal(table.P(session.AttrProgress), m.Progress.Value())
	}
	return table.All(
		table.Equal(table.P(session.AttrActive), m.Active),
		table.Equal(table.P(session.AttrToken), m.Token),
		progress)
}
