package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Finisher does for one ended run what its end owes to others: last events, answers
// to everybody who waits, history, audit. It is called again after a crash and must
// bear that. held means that another answerer is at it: the run stays unsettled.
type Finisher interface {
	Finish(ctx context.Context, st run.Status) (held bool, err error)
}

// Settle ends what a stop cut off, then finishes every unsettled run, looks again,
// wakes what is left, and only then removes exactly the runs that it finished (L5).
// Whoever finds unsettled runs may do it, beside a live claim too.
func (s *Service) Settle(ctx context.Context, m session.Meta, f Finisher, sender string) error {
	if err := s.endCut(ctx, m); err != nil {
		return err
	}
	if len(m.Cut()) > 0 {
		var err error
		if m, err = session.LoadMeta(ctx, s.Store, m.Ref); err != nil {
			return err
		}
	}
	var done []string
	for _, short := range m.Unsettled {
		st, err := run.Load(ctx, s.Store, run.Ref{Tenant: m.Tenant, Run: short})
		if errors.Is(err, run.ErrUnknown) {
			done = append(done, short) // its record has expired: nobody can wait for it
			continue
		}
		if err != nil {
			return err
		}
		held, err := f.Finish(ctx, st)
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		if !held {
			done = append(done, short)
			continue
		}
		if err := s.NudgeLater(ctx, m, s.Times.Answer, "held"); err != nil {
			return err
		}
	}
	return s.Settled(ctx, m.Ref, done, sender)
}

// Settled is the second half of L5 for runs whose ends were told: look again, wake
// what is left, remove exactly these runs, and take the session out of the active
// index if nothing at all is left.
func (s *Service) Settled(ctx context.Context, ref session.Ref, done []string, sender string) error {
	for try := 0; ; try++ {
		m, err := session.LoadMeta(ctx, s.Store, ref)
		if err != nil {
			return err
		}
		now := s.Clock.Now()
		if m.WorkLeft(now, s.Times.Slack, done...) && !m.Owned(now, s.Times.Slack) {
			if err := s.Nudge(ctx, m, "settled", sender+"/"+strconv.Itoa(try)); err != nil {
				return err
			}
		}
		if len(done) == 0 {
			return nil
		}
		up := table.Op{
			Kind: table.Update, Key: ref.MetaKey(), If: table.Exists(),
			TakeFrom: []table.MemberOp{{Attr: session.AttrUnsettled, Members: done}},
		}
		if idle(m, done) {
			// The picture that says "idle" is a condition: whoever accepted, or ended
			// something, in between keeps the key in the index. A run cannot have ended
			// without a claim, and that leaves another write id.
			up.If = table.All(
				table.Equal(table.P(session.AttrSeq), m.Seq),
				table.Equal(table.P(session.AttrPendingN), int64(0)),
				table.Lacks(table.P(session.AttrActive)),
				table.Any(table.Lacks(table.P(session.AttrMailN)), table.Equal(table.P(session.AttrMailN), int64(0))),
				sameWrite(m.WriteID))
			up.Remove = []table.Path{table.P(session.AttrActivePK), table.P(session.AttrActiveSK)}
			for c, at := range m.Stops {
				if at < now.Add(-stopMemory).UnixMicro() {
					up.Remove = append(up.Remove, table.P(session.AttrStops, c))
				}
			}
		}
		err = s.write(ctx, up)
		if errors.Is(err, table.ErrCondition) && try < 8 {
			continue
		}
		return err
	}
}

func sameWrite(id string) table.Cond {
	if id == "" {
		return table.Lacks(table.P(session.AttrWrite))
	}
	return table.Equal(table.P(session.AttrWrite), id)
}

// idle says whether nothing is left but runs in done.
func idle(m session.Meta, done []string) bool {
	return m.Busy && m.Active == "" && len(m.Pending) == 0 && m.MailN == 0 && len(m.Unsettled) > 0 &&
		subset(m.Unsettled, done)
}

func subset(a, of []string) bool {
	have := make(map[string]bool, len(of))
	for _, x := range of {
		have[x] = true
	}
	for _, x := range a {
		if !have[x] {
			return false
		}
	}
	return true
}

// endCut ends the pending runs that a session-wide stop covers (C7): they go to
// the unsettled runs as aborted and are never started.
func (s *Service) endCut(ctx context.Context, m session.Meta) error {
	for _, p := range m.Cut() {
		why := m.CutWhy
		if why == "" {
			why = "rpc"
		}
		if _, err := s.endPending(ctx, m.Ref, p, stopped(why)); err != nil {
			return err
		}
	}
	return nil
}

// endPending ends a run that has not begun: out of the pending list and into the
// unsettled runs, with its outcome, in one transaction on the condition that it is
// still in the list (C7). ended is false where it was not.
func (s *Service) endPending(ctx context.Context, ref session.Ref, p session.Pending, out *run.Outcome) (ended bool, err error) {
	body, err := json.Marshal(out)
	if err != nil {
		return false, err
	}
	now := s.Clock.Now()
	r := run.Ref{Tenant: ref.Tenant, Run: p.Run}
	member := table.P(session.AttrPending, session.PendingMember(p.Seq))
	err = s.write(ctx,
		table.Op{
			Kind: table.Update, Key: ref.MetaKey(),
			If:     table.Equal(member, session.PendingValue(p.Lane, p.Run)),
			Add:    []table.AddOp{{Path: table.P(session.AttrPendingN), N: -1}},
			AddTo:  []table.MemberOp{{Attr: session.AttrUnsettled, Members: table.Set{p.Run}}},
			Remove: []table.Path{member},
		},
		table.Op{
			Kind: table.Update, Key: r.StatusKey(),
			If: table.Equal(table.P(run.AttrState), string(run.Pending)),
			Set: []table.SetOp{
				{Path: table.P(run.AttrState), Value: string(run.Ended)},
				{Path: table.P(run.AttrOutcome), Value: body},
				{Path: table.P(run.AttrEnded), Value: now.UnixMilli()},
				{Path: table.P(table.TTLAttr), Value: now.Add(run.Keep).Unix()},
			},
		})
	if errors.Is(err, table.ErrCondition) {
		return false, nil // begun, or ended by somebody else
	}
	return err == nil, err
}
