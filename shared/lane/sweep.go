package lane

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"laneway/shared/id"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Attributes of META that only the sweep writes.
const (
	attrSweepState = "swOf" // token and accept sequence, added, for which it last sent a wake-up
	attrSweepCount = "swN"
	attrSweepNext  = "swAt" // ms: not again before
)

// Swept says what a sweep found.
type Swept struct{ Active, Orphaned, Woken int }

// Sweep looks at every session of the active index: one with work left, not asleep,
// whose claim has not been live for Times.Orphan, gets a wake-up in a group of its
// own, so that a message that a dead receiver still holds cannot block it (A2). It
// is repeated after 1, 1, 2, 4 … 15 minutes while nothing changes.
func (s *Service) Sweep(ctx context.Context) (Swept, error) {
	return s.SweepEach(ctx, func(session.Meta, bool) {})
}

// SweepEach is Sweep that also shows each session as it was read, and whether it
// got a wake-up.
func (s *Service) SweepEach(ctx context.Context, see func(m session.Meta, woken bool)) (Swept, error) {
	var sum Swept
	err := s.eachActive(ctx, func(m session.Meta) error {
		sum.Active++
		now := s.Clock.Now()
		if !s.orphaned(m, now) {
			see(m, false)
			return nil
		}
		sum.Orphaned++
		woke, err := s.wakeOrphan(ctx, m, now)
		if woke {
			sum.Woken++
		}
		see(m, woke)
		return err
	})
	return sum, err
}

// Wake sends a wake-up for work that is left, in a group of its own, unless the
// sweep has sent one and its pause is not over: then it gives false.
func (s *Service) Wake(ctx context.Context, m session.Meta) (bool, error) {
	return s.wakeOrphan(ctx, m, s.Clock.Now())
}

// NextWake is when the sweep will look at the session's work as nobody's, and send a
// wake-up; false where it has no reason to.
func (s *Service) NextWake(ctx context.Context, m session.Meta) (time.Time, bool, error) {
	now := s.Clock.Now()
	since, ok := s.idleSince(m, now)
	if !ok {
		return time.Time{}, false, nil
	}
	at := time.UnixMilli(since).Add(s.Times.Orphan)
	it, err := s.Store.Get(ctx, m.MetaKey())
	if errors.Is(err, table.ErrNotFound) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	if next := it.Attrs.Int(attrSweepNext); next != 0 && it.Attrs.Int(attrSweepState) == m.Token+m.Seq && next > at.UnixMilli() {
		at = time.UnixMilli(next)
	}
	return at, true, nil
}

// orphaned says whether work is left that nobody has done anything about for
// Times.Orphan. Runs that ended and were not settled are such work beside a live
// claim too; else a live claim's holder looks by itself.
func (s *Service) orphaned(m session.Meta, now time.Time) bool {
	since, ok := s.idleSince(m, now)
	return ok && now.UnixMilli()-since >= s.Times.Orphan.Milliseconds()
}

// idleSince is since when (ms) nobody has done anything about the work that is left;
// false where none is, or a live claim's holder looks by itself.
func (s *Service) idleSince(m session.Meta, now time.Time) (int64, bool) {
	ended := len(m.Unsettled) > 0 || len(m.Cut()) > 0
	owned := m.Owned(now, s.Times.Slack)
	if !m.WorkLeft(now, s.Times.Slack) || owned && !ended {
		return 0, false
	}
	since := max(m.Updated, m.ActiveAt)
	if !owned && !m.Lease.IsZero() {
		since = max(since, m.Lease.UnixMilli()) // over or released since
	}
	if !ended && !m.Wake.IsZero() && !m.Marked() {
		since = max(since, m.Wake.UnixMilli())
	}
	if until := debouncedUntil(m); !ended && !until.IsZero() {
		since = max(since, until.UnixMilli()) // it waits for others, and its timer with it
	}
	return since, true
}

func (s *Service) wakeOrphan(ctx context.Context, m session.Meta, now time.Time) (bool, error) {
	it, err := s.Store.Get(ctx, m.MetaKey())
	if err != nil {
		return false, err
	}
	count, state := int64(0), m.Token+m.Seq
	if it.Attrs.Int(attrSweepState) == state && it.Attrs.Int(attrSweepNext) != 0 {
		if now.UnixMilli() < it.Attrs.Int(attrSweepNext) {
			return false, nil
		}
		count = it.Attrs.Int(attrSweepCount)
	}
	// What is sent first is also written first: two sweeps at once send one.
	err = s.write(ctx, table.Op{
		Kind: table.Update, Key: m.MetaKey(),
		If: table.All(sameInt(session.AttrToken, m.Token), sameInt(attrSweepNext, it.Attrs.Int(attrSweepNext))),
		Set: []table.SetOp{
			{Path: table.P(attrSweepState), Value: state},
			{Path: table.P(attrSweepCount), Value: count + 1},
			{Path: table.P(attrSweepNext), Value: now.Add(s.sweepPause(count)).UnixMilli()},
		},
	})
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h := id.Hash(m.Tenant, m.Key, strconv.FormatInt(m.Token, 10), s.NewID())
	return true, s.send(ctx, m.Ref, NextLane(m), "sweep", h, h)
}

// sweepPause is 1, 1, 2, 4 … 15 minutes with the default times, and shrinks with a
// shorter Orphan.
func (s *Service) sweepPause(count int64) time.Duration {
	unit := 3 * s.Times.Orphan
	return min(unit<<max(min(count, 5)-1, 0), 15*unit)
}

func sameInt(attr string, v int64) table.Cond {
	if v == 0 {
		return table.Any(table.Lacks(table.P(attr)), table.Equal(table.P(attr), int64(0)))
	}
	return table.Equal(table.P(attr), v)
}

// Recover is for the process that has just taken the data lock of a machine: every
// claim is of a predecessor that is dead, so leases end at once and all work left is
// woken (C3).
func (s *Service) Recover(ctx context.Context) (Swept, error) {
	var sum Swept
	err := s.eachActive(ctx, func(m session.Meta) error {
		sum.Active++
		if m.Owner != "" {
			err := s.write(ctx, table.Op{
				Kind: table.Update, Key: m.MetaKey(),
				If:     table.Equal(table.P(session.AttrOwner), m.Owner),
				Set:    []table.SetOp{{Path: table.P(session.AttrLease), Value: s.Clock.Now().UnixMilli()}},
				Remove: []table.Path{table.P(session.AttrOwner), table.P(session.AttrNest)},
			})
			if err != nil && !errors.Is(err, table.ErrCondition) {
				return err
			}
			m.Owner = ""
		}
		if !m.WorkLeft(s.Clock.Now(), s.Times.Slack) {
			return nil
		}
		sum.Woken++
		return s.Nudge(ctx, m, "start", "start/"+s.NewID())
	})
	return sum, err
}

// eachActive calls f with the re-read hot item of every session in the active index.
// A session that cannot be read or helped keeps nobody from the others.
func (s *Service) eachActive(ctx context.Context, f func(session.Meta) error) error {
	var failed error
	for n := range session.ActiveShards {
		q := table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: session.ActiveShard(n)}
		for {
			page, err := s.Store.Index(ctx, q)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("active sessions: %w", err))
				break
			}
			for _, k := range page.Keys {
				ref, ok := session.RefOfPK(k.Key.PK)
				if !ok {
					continue
				}
				m, err := session.LoadMeta(ctx, s.Store, ref)
				if err == nil {
					err = f(m)
				}
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("session %s: %w", ref.Hash(), err))
				}
				if ctx.Err() != nil {
					return failed
				}
			}
			if page.Next == "" {
				break
			}
			q.After = page.Next
		}
	}
	return failed
}
