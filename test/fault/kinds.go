package fault

import (
	"slices"
	"strings"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// kind is what a write of the product is, by what it changes.
type kind string

// The kinds of writes.
const (
	kAccept     kind = "accept"
	kSteer      kind = "steer"
	kStopped    kind = "accept as stopped"
	kClaim      kind = "claim"
	kCommit     kind = "commit"
	kStarted    kind = "ledger started"
	kDone       kind = "ledger done"
	kTerminal   kind = "terminal"
	kRelease    kind = "release"
	kRenew      kind = "renew"
	kSettled    kind = "settled"
	kEndQueued  kind = "end waiting run"
	kWithdraw   kind = "withdraw steer"
	kCancel     kind = "cancel mark"
	kCutoff     kind = "cutoff"
	kSweep      kind = "sweep note"
	kWaiter     kind = "waiter row"
	kTake       kind = "take waiter"
	kAnswered   kind = "waiter done"
	kOrigin     kind = "take origin"
	kEvents     kind = "events"
	kExpire     kind = "expire"
	kConnection kind = "connection"
	kOther      kind = "write"
)

// kindOf classifies a write.
func kindOf(ops []table.Op) kind {
	meta, status := find(ops, isMeta), find(ops, isStatus)
	has := func(prefix string) bool {
		return slices.ContainsFunc(ops, func(o table.Op) bool { return strings.HasPrefix(o.Key.SK, prefix) })
	}
	switch {
	case meta == nil:
		return lesserKind(ops, status)
	case adds(meta, session.AttrToken):
		return kClaim
	case status != nil && status.Kind == table.Put && has("IN#"):
		return kSteer
	case status != nil && status.Kind == table.Put && !sets(meta, session.AttrWrite):
		return kAccept
	case sets(meta, session.AttrWrite):
		return holderKind(ops, meta)
	case status != nil && has("IN#"):
		return kWithdraw
	case status != nil:
		return kEndQueued
	case sets(meta, session.AttrCancel):
		return kCancel
	case sets(meta, session.AttrCutoff):
		return kCutoff
	case sets(meta, "swOf"):
		return kSweep
	case adds(meta, session.AttrSettles):
		return kSettled
	}
	return kOther
}

// holderKind is what the holder of a claim writes.
func holderKind(ops []table.Op, meta *table.Op) kind {
	switch {
	case removes(meta, session.AttrActive):
		return kTerminal
	case removes(meta, session.AttrOwner):
		return kRelease
	}
	k := kRenew
	for i := range ops {
		switch op := &ops[i]; {
		case strings.HasPrefix(op.Key.SK, "C#"):
			if ledgerState(op) == "done" {
				return kDone
			}
			k = kStarted
		case isRow(op) && k == kRenew, isStatus(op) && k == kRenew:
			k = kCommit
		}
	}
	return k
}

func lesserKind(ops []table.Op, status *table.Op) kind {
	op := &ops[0]
	switch {
	case op.Key.Table == table.Connections:
		return kConnection
	case status != nil && status.Kind == table.Put:
		return kStopped
	case status != nil && sets(status, run.AttrOriginLease):
		return kOrigin
	case strings.HasPrefix(op.Key.SK, "W#") && sets(op, "told"):
		return kAnswered
	case strings.HasPrefix(op.Key.SK, "W#"):
		return map[table.Kind]kind{table.Put: kWaiter, table.Update: kTake, table.Delete: kAnswered}[op.Kind]
	case sets(op, table.TTLAttr):
		return kExpire
	case strings.HasPrefix(op.Key.SK, "E#"):
		return kEvents
	}
	return kOther
}

func find(ops []table.Op, is func(*table.Op) bool) *table.Op {
	for i := range ops {
		if is(&ops[i]) {
			return &ops[i]
		}
	}
	return nil
}

func isMeta(o *table.Op) bool {
	return o.Key.Table == table.Sessions && o.Key.SK == "META" && strings.Contains(o.Key.PK, "#S#")
}
func isStatus(o *table.Op) bool { return o.Key.Table == table.Runs && o.Key.SK == "STATUS" }
func isRow(o *table.Op) bool {
	return o.Key.Table == table.Sessions && strings.Contains(o.Key.PK, "#T#")
}

func sets(o *table.Op, attr string) bool {
	return o != nil && slices.ContainsFunc(o.Set, func(s table.SetOp) bool { return s.Path.Attr == attr })
}

func adds(o *table.Op, attr string) bool {
	return o != nil && slices.ContainsFunc(o.Add, func(a table.AddOp) bool { return a.Path.Attr == attr })
}

func removes(o *table.Op, attr string) bool {
	return o != nil && slices.ContainsFunc(o.Remove, func(p table.Path) bool { return p.Attr == attr && p.Member == "" })
}

func setTo(o *table.Op, attr string) any {
	for _, s := range o.Set {
		if s.Path.Attr == attr {
			return s.Value
		}
	}
	return o.Item[attr]
}

func ledgerState(o *table.Op) string {
	s, _ := setTo(o, "state").(string)
	return s
}
