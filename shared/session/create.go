package session

import (
	"time"

	"laneway/shared/table"
)

// Create is the ops that make a session that was never used, on the condition that
// it still was not: the hot item (the first op) and the way from its id to it. It is
// in lists from then on, though it has not run.
func Create(ref Ref, sessionID string, now time.Time) []table.Op {
	meta := table.Op{
		Kind: table.Update, Key: ref.MetaKey(), If: table.NotExists(),
		Set: []table.SetOp{
			{Path: table.P(AttrPending), Value: table.Map{}},
			{Path: table.P(AttrPendingN), Value: int64(0)},
			{Path: table.P(AttrStops), Value: table.Map{}},
			{Path: table.P(AttrSessionID), Value: sessionID},
			{Path: table.P(AttrCreated), Value: now.UnixMilli()},
			{Path: table.P(AttrUpdated), Value: now.UnixMilli()},
			{Path: table.P(AttrInput), Value: now.UnixMilli()},
			{Path: table.P(AttrRecentPK), Value: RecentPK(ref.Tenant)},
			{Path: table.P(AttrRecentSK), Value: RecentSK(now, ref.Key)},
		},
	}
	return []table.Op{meta, PutID(ref, sessionID)}
}
