package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
// Whoever finds unsettled runs may do it, beside a live claim too. An error means
// that the wake-up should come again; what could be finished is.
func (s *Service) Settle(ctx context.Context, m session.Meta, f Finisher, sender string) error {
	_, err := s.SettleFree(ctx, m, f, sender)
	return err
}

// SettleFree is Settle for a receiver that has more to do: it gives the runs that
// other answerers hold. They need not keep the next run waiting, and the wake-up
// that came for it may be the only one: their holders' come before they are settled.
func (s *Service) SettleFree(ctx context.Context, m session.Meta, f Finisher, sender string) (heldRuns []string, err error) {
	if len(m.Cut()) > 0 {
		if err := s.endCut(ctx, m); err != nil {
			return nil, err
		}
		if m, err = session.LoadMeta(ctx, s.Store, m.Ref); err != nil {
			return nil, err
		}
	}
	var done []string
	var failed error
	for _, short := range m.Unsettled {
		held, err := s.finish(ctx, m, short, f)
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case held:
			heldRuns = append(heldRuns, short)
		default:
			done = append(done, short)
		}
	}
	return heldRuns, errors.Join(failed, s.settled(ctx, m.Ref, done, len(done) < len(m.Unsettled), sender))
}

// finish tells the end of one run. One that another answerer holds is looked at
// again when that one must be done.
func (s *Service) finish(ctx context.Context, m session.Meta, short string, f Finisher) (held bool, err error) {
	st, err := run.Load(ctx, s.Store, run.Ref{Tenant: m.Tenant, Run: short})
	if errors.Is(err, run.ErrUnknown) {
		return false, nil // its record has expired: nobody can wait for it
	}
	if err != nil {
		return false, err
	}
	if held, err = f.Finish(ctx, st); err != nil {
		return false, fmt.Errorf("settle: %w", err)
	}
	if held {
		err = s.NudgeLater(ctx, m, s.Times.Answer, "held")
	}
	return held, err
}

// Settled is the second half of L5 for runs whose ends were told: look again, wake
// what is left, remove exactly these runs, and take the session out of the active
// index if nothing at all is left.
func (s *Service) Settled(ctx context.Context, ref session.Ref, done []string, sender string) error {
	return s.settled(ctx, ref, done, false, sender)
}

// settled is Settled. With later, some runs stay unsettled for now and a wake-up for
// them is on its way already: one more at once would find them as they are, send
// the next, and so on for as long as they stay.
func (s *Service) settled(ctx context.Context, ref session.Ref, done []string, later bool, sender string) error {
	var fell session.Meta // as the update before knew it
	by := ""
	for try := 0; ; try++ {
		m, err := session.LoadMeta(ctx, s.Store, ref)
		if err != nil {
			return err
		}
		now := s.Clock.Now()
		if !later && m.WorkLeft(now, s.Times.Slack, done...) {
			if err := s.wakeNext(ctx, m, now, sender+"/"+strconv.Itoa(try), done); err != nil {
				return err
			}
		}
		if by != "" && m.FellBy == by {
			s.countFell(fell)
		}
		up, some := s.takeOff(m, done, now)
		if !some {
			return nil
		}
		fell, by = m, s.takeFell(&up, m)
		err = s.write(ctx, up)
		if err == nil {
			s.countFell(m)
		}
		if errors.Is(err, table.ErrCondition) && try < 8 {
			continue
		}
		return err
	}
}

// wakeNext sends the wake-up for what is left: at once, or when the debounce of the
// message that is next is over.
func (s *Service) wakeNext(ctx context.Context, m session.Meta, now time.Time, sender string, done []string) error {
	for _, u := range m.Unsettled {
		if !slices.Contains(done, u) {
			return s.Nudge(ctx, m, "settled", sender)
		}
	}
	if wait := debounced(m, now); wait > 0 && len(m.Cut()) == 0 {
		return s.NudgeLater(ctx, m, wait, "debounce")
	}
	return s.Nudge(ctx, m, "settled", sender)
}

// takeOff is the update that removes runs from the unsettled ones; some is false
// where there is nothing to remove. Settlers come one after another by a count that
// each raises, so whoever removes the last run sees that it is the last, and takes
// the session out of the active index in the same update.
func (s *Service) takeOff(m session.Meta, done []string, now time.Time) (up table.Op, some bool) {
	up = table.Op{
		Kind: table.Update, Key: m.MetaKey(), If: table.All(table.Exists(), sameInt(session.AttrSettles, m.Settles)),
		Add: []table.AddOp{{Path: table.P(session.AttrSettles), N: 1}},
	}
	var own table.Set
	for _, u := range m.Unsettled {
		if slices.Contains(done, u) {
			own = append(own, u)
		}
	}
	if len(own) > 0 {
		up.TakeFrom = []table.MemberOp{{Attr: session.AttrUnsettled, Members: own}}
	}
	idle := m.Busy && m.Active == "" && len(m.Pending) == 0 && m.MailN == 0 && len(own) == len(m.Unsettled)
	if idle {
		// Whatever may come into the sets after this reading was accepted after it: the
		// accept sequence says that nothing was, and the session keeps its key if not.
		up.If = table.All(up.If, sameInt(session.AttrSeq, m.Seq))
		up.Remove = []table.Path{table.P(session.AttrActivePK), table.P(session.AttrActiveSK)}
		old, same := oldStops(m, now)
		up.Remove, up.If = append(up.Remove, old...), table.All(up.If, same)
	}
	return up, idle || len(own)+len(m.Fell) > 0
}

// endCut ends the pending runs that a session-wide stop covers (C7): they go to
// the unsettled runs as aborted and are never started.
func (s *Service) endCut(ctx context.Context, m session.Meta) error {
	for _, p := range m.Cut() {
		why := m.CutWhy
		if why == "" {
			why = "rpc"
		}
		disp, err := s.cutDisposition(ctx, m, why)
		if err != nil {
			return err
		}
		if _, err := s.endPending(ctx, m.Ref, p, stopped(why), disp); err != nil {
			return err
		}
	}
	return nil
}

// endPending ends a run that has not begun: out of the pending list and into the
// unsettled runs, with its outcome, in one transaction on the condition that it is
// still in the list (C7). ended is false where it was not.
func (s *Service) endPending(ctx context.Context, ref session.Ref, p session.Pending, out *run.Outcome, disp run.Disposition) (ended bool, err error) {
	now := s.Clock.Now()
	r := run.Ref{Tenant: ref.Tenant, Run: p.Run}
	op, err := endedOp(r, run.Pending, out, disp, now)
	if err != nil {
		return false, err
	}
	with, err := s.sharers(ctx, r)
	if err != nil {
		return false, err
	}
	member := table.P(session.AttrPending, session.PendingMember(p.Seq))
	err = s.write(ctx,
		table.Op{
			Kind: table.Update, Key: ref.MetaKey(),
			If:     table.Equal(member, p.Value()),
			Add:    []table.AddOp{{Path: table.P(session.AttrPendingN), N: -1}},
			AddTo:  []table.MemberOp{{Attr: session.AttrUnsettled, Members: append(with, p.Run)}},
			Remove: []table.Path{member},
		},
		op)
	if ce, refused := table.Failed(err); refused && ce.Op == 1 {
		return false, fmt.Errorf("%w: a run waits without a record that says so", errDamaged)
	}
	return s.ended(ctx, err, r, out, now) // not where it was begun, or ended by somebody else
}

// endedOp is the op that ends a message in its record where it never ran by itself, on the
// condition that it is still where it was.
func endedOp(r run.Ref, was run.State, out *run.Outcome, disp run.Disposition, at time.Time) (table.Op, error) {
	body, err := json.Marshal(out)
	if err != nil {
		return table.Op{}, err
	}
	became, err := SetDisposition(disp)
	return table.Op{
		Kind: table.Update, Key: r.StatusKey(), If: table.Equal(table.P(run.AttrState), string(was)),
		Set: []table.SetOp{
			{Path: table.P(run.AttrState), Value: string(run.Ended)},
			{Path: table.P(run.AttrOutcome), Value: body},
			became,
			{Path: table.P(run.AttrEnded), Value: at.UnixMilli()},
			{Path: table.P(table.TTLAttr), Value: at.Add(run.Keep).Unix()},
		},
	}, err
}

// ended says whether the write with an endedOp ended the message: by its error, and where
// that leaves it open (C5) by the record.
func (s *Service) ended(ctx context.Context, err error, r run.Ref, out *run.Outcome, at time.Time) (bool, error) {
	ce, refused := table.Failed(err)
	switch {
	case !refused:
		return err == nil, err
	case ce.Ambiguous:
		return s.endedHere(ctx, r, out, at)
	}
	return false, nil
}

// sharers are the runs whose messages became lines of a summary that now ends
// without a turn: they end with it.
func (s *Service) sharers(ctx context.Context, r run.Ref) (table.Set, error) {
	if !strings.HasPrefix(r.Run, SummaryPrefix) {
		return nil, nil
	}
	st, err := run.Load(ctx, s.Store, r)
	if errors.Is(err, run.ErrUnknown) {
		return nil, nil
	}
	return st.Input.Overflow.Runs, err
}

// errDamaged is a state of the tables that the rules don't lead to.
var errDamaged = errors.New("lane: damaged session")

// endedHere says whether a run was ended by a write of ours whose answer was lost
// (C5).
func (s *Service) endedHere(ctx context.Context, r run.Ref, out *run.Outcome, at time.Time) (bool, error) {
	st, err := run.Load(ctx, s.Store, r)
	if errors.Is(err, run.ErrUnknown) {
		return false, nil
	}
	if err != nil || !st.Done() {
		return false, err
	}
	return st.EndedAt == at.UnixMilli() && st.Outcome.Kind == out.Kind && st.Outcome.StopReason == out.StopReason, nil
}
