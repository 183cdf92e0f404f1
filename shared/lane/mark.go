package lane

import (
	"context"
	"slices"
	"time"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

const (
	// stopMemory is how long a stop mark is of use: longer than any frame that it may
	// have overtaken is on its way.
	stopMemory = time.Minute
	// maxStops bounds the marks of a session: the hot item is written often. More in a
	// minute than this come from a client that stops what it never started.
	maxStops = 32
	// maxForget bounds the marks that one update forgets.
	maxForget = 8
)

// stopMember is the member of META's stops for a connection's frames: those of one
// run, or, without a run, all of them.
func stopMember(connectionID, shortRun string) string {
	if shortRun == "" {
		return connectionID
	}
	return connectionID + "|" + shortRun
}

// overtaken says whether a stop in m came in after the call's frame.
func (c *Call) overtaken(m session.Meta) bool {
	if c.FrameAt == 0 || c.ConnectionID == "" {
		return false
	}
	return m.Stops[stopMember(c.ConnectionID, "")] >= c.FrameAt ||
		m.Stops[stopMember(c.ConnectionID, c.Run.Ref.Run)] >= c.FrameAt
}

// notOvertaken is the condition that no stop of the call's connection came in after
// its frame (K1): a condition of the transaction, not a reading before it.
func (c *Call) notOvertaken() table.Cond {
	if c.FrameAt == 0 || c.ConnectionID == "" {
		return table.All()
	}
	var all table.AllCond
	for _, r := range []string{"", c.Run.Ref.Run} {
		p := table.P(session.AttrStops, stopMember(c.ConnectionID, r))
		all = append(all, table.Any(table.Lacks(p), table.Less(p, c.FrameAt)))
	}
	return all
}

// mark writes a stop mark for frames of q's connection that are on their way yet,
// and with cut the cutoff at the accept sequence of m. It fails with ErrCondition
// where something was accepted since m was read. A session that was never used gets
// its hot item by it only for the sake of such frames.
func (s *Service) mark(ctx context.Context, q Stop, m session.Meta, cut bool) error {
	up := table.Op{
		Kind: table.Update, Key: m.MetaKey(),
		If: table.All(table.Exists(), sameInt(session.AttrSeq, m.Seq)),
	}
	if q.FrameAt > 0 && q.ConnectionID != "" {
		short := ""
		if q.RunID != "" {
			short = run.Short(q.RunID)
		}
		member := stopMember(q.ConnectionID, short)
		at := max(q.FrameAt, m.Stops[member])
		if !m.Exists() {
			now := s.Clock.Now()
			return s.write(ctx, table.Op{
				Kind: table.Update, Key: m.MetaKey(), If: table.NotExists(),
				Set: []table.SetOp{
					{Path: table.P(session.AttrPending), Value: table.Map{}},
					{Path: table.P(session.AttrPendingN), Value: int64(0)},
					{Path: table.P(session.AttrStops), Value: table.Map{member: at}},
					{Path: table.P(session.AttrCreated), Value: now.UnixMilli()},
				},
			})
		}
		up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrStops, member), Value: at})
		delete(m.Stops, member)
		old, same := oldStops(m, s.Clock.Now())
		up.Remove, up.If = old, table.All(up.If, same)
	}
	if cut {
		up.Set = append(up.Set,
			table.SetOp{Path: table.P(session.AttrCutoff), Value: m.Seq},
			table.SetOp{Path: table.P(session.AttrCutWhy), Value: q.Reason})
		up.Remove = append(up.Remove, table.P(session.AttrCutBy))
	}
	if len(up.Set) == 0 {
		return nil
	}
	return s.write(ctx, up)
}

// oldStops lists marks of m that can be forgotten, oldest first, with the condition
// that they are as they were.
func oldStops(m session.Meta, now time.Time) ([]table.Path, table.Cond) {
	members := make([]string, 0, len(m.Stops))
	for c := range m.Stops {
		members = append(members, c)
	}
	slices.SortFunc(members, func(a, b string) int { return int(m.Stops[a] - m.Stops[b]) })
	var old []table.Path
	same := table.AllCond{}
	for i, c := range members {
		if len(old) == maxForget || m.Stops[c] >= now.Add(-stopMemory).UnixMicro() && len(members)-i < maxStops {
			break
		}
		p := table.P(session.AttrStops, c)
		old, same = append(old, p), append(same, table.Equal(p, m.Stops[c]))
	}
	return old, same
}
