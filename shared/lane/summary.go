package lane

import (
	"context"
	"encoding/json"
	"errors"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// revised is the place of a run that has other words from now on: whoever read the old
// ones finds that it is not what it was.
func revised(p session.Pending) session.Pending {
	p.Rev++
	return p
}

// leaveSummary stops a message that is a line of a summary which still waits (spec:
// runtime 2.7): the line goes, and with the last one the summary. done is as in
// stopKnown.
func (s *Service) leaveSummary(ctx context.Context, q Stop, st run.Status, m session.Meta) (done, ok bool, err error) {
	sum, err := run.Load(ctx, s.Store, run.Ref{Tenant: st.Tenant, Run: st.Into})
	if errors.Is(err, run.ErrUnknown) {
		return true, false, nil
	}
	if err != nil {
		return false, false, err
	}
	if sum.State != run.Pending || !sum.Input.Overflow.Remove(st.Ref.Run) {
		return true, false, nil // at the model, or ended
	}
	for _, p := range m.Pending {
		if p.Run != sum.Ref.Run {
			continue
		}
		if sum.Input.Overflow.Count == 0 {
			ok, err = s.endPending(ctx, m.Ref, p, stopped(q.Reason), run.Disposition{Kind: IsDropped, Reason: q.Reason})
		} else {
			ok, err = s.endLine(ctx, q, st, sum, p)
		}
		if err != nil || !ok {
			return false, false, err
		}
		return true, true, s.nudge(ctx, m, p.Lane, "abort", "abort/"+s.NewID())
	}
	return false, false, nil
}

// endLine ends one message of a summary, which is left with the others. It is false where
// the summary was begun or changed meanwhile.
func (s *Service) endLine(ctx context.Context, q Stop, st, sum run.Status, p session.Pending) (bool, error) {
	out, now := stopped(q.Reason), s.Clock.Now()
	ended, err := endedOp(st.Ref, run.Delivered, out, run.Disposition{Kind: IsDropped, Reason: q.Reason}, now)
	if err != nil {
		return false, err
	}
	sum.Input.Message = sum.Input.Overflow.Text()
	in, err := json.Marshal(sum.Input)
	if err != nil {
		return false, err
	}
	ref := session.Ref{Tenant: st.Tenant, Key: st.SessionKey}
	member := table.P(session.AttrPending, session.PendingMember(p.Seq))
	err = s.write(ctx,
		table.Op{
			Kind: table.Update, Key: ref.MetaKey(), If: table.Equal(member, p.Value()),
			Set:   []table.SetOp{{Path: member, Value: revised(p).Value()}},
			AddTo: []table.MemberOp{{Attr: session.AttrUnsettled, Members: table.Set{st.Ref.Run}}},
		},
		table.Op{
			Kind: table.Update, Key: sum.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Pending)),
			Set: []table.SetOp{{Path: table.P(run.AttrInput), Value: in}},
		},
		ended)
	return s.ended(ctx, err, st.Ref, out, now)
}
