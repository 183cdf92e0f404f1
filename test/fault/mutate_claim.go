package fault

import (
	"time"

	"laneway/shared/claim"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// held are the writes of a claim's holder.
var held = []kind{kCommit, kStarted, kDone, kTerminal, kRelease, kRenew}

func claimMutations() []Mutation {
	return []Mutation{
		{
			Name: "claim-without-membership", Rule: "C1", Text: "taking does not check that the run waits, or is active",
			Profiles: []string{"calm-stop", "stop", "freeze"}, Seen: 82,
			Store: on([]kind{kClaim}, without(session.AttrPending, session.AttrActive)),
		},
		{
			Name: "claim-without-owner", Rule: "C1", Text: "taking checks the token, and not that nobody holds the claim",
			Profiles: []string{"freeze", "all", "queue"}, Seen: 236,
			Store: on([]kind{kClaim}, without(session.AttrOwner, session.AttrLease)),
		},
		{
			Name: "claim-without-token-and-owner", Rule: "C1", Text: "taking checks only what waits and what is active",
			Profiles: []string{"freeze", "queue", "short", "crash"}, Seen: 236,
			Store: on([]kind{kClaim}, without(session.AttrToken, session.AttrOwner, session.AttrLease)),
		},
		{
			Name: "claim-without-cutoff", Rule: "C1", Text: "taking does not check that the run was not stopped",
			Profiles: []string{"calm-stop", "stop", "all"}, Seen: 12,
			Store: on([]kind{kClaim}, without(session.AttrCutoff)),
		},
		{
			Name: "commit-without-fence", Rule: "C2", Text: "a commit checks neither token nor owner, nor what its holder wrote before",
			Profiles: []string{"freeze", "tools"}, Seen: 14,
			Store: on(held, without(session.AttrToken, session.AttrOwner, session.AttrWrite)),
		},
		{
			Name: "commit-without-owner", Rule: "C2", Text: "a commit checks the token alone: a write that is sent again is done again",
			Profiles: []string{"store", "stop"}, Seen: 639,
			Store: on(held, without(session.AttrOwner, session.AttrWrite)),
		},
		{
			Name: "trust-without-end", Rule: "C3", Text: "a holder goes on however long ago it last renewed",
			Profiles: []string{"freeze", "tools"}, Seen: 141,
			Times: func(t *claim.Times) { t.Trust = time.Hour },
		},
		{
			Name: "ttl-read-as-unlocked", Rule: "C1", Text: "the lease is a time to live: whoever reads after it finds nothing there",
			Profiles: []string{"freeze", "crash", "tools"}, Seen: 6,
			Store: func(p *proc, t table.Store) table.Store {
				return &bent{Store: t, edit: func(k kind, ops []table.Op) []table.Op {
					for i := range ops {
						if isMeta(&ops[i]) && k == kClaim {
							ops[i].If = strip(ops[i].If, []string{session.AttrOwner, session.AttrLease, session.AttrToken})
						}
					}
					return ops
				}, view: func(a table.Attrs) {
					if a.Int(session.AttrLease) < (clockOf{p}).Now().Add(15*time.Second).UnixMilli() {
						delete(a, session.AttrOwner)
					}
				}}
			},
		},
		{
			Name: "takeover-waits-for-cleaning", Rule: "C1, F5", Text: "a claim is free only when somebody took its owner away",
			Profiles: []string{"crash", "tools"},
			Store: on([]kind{kClaim}, func(o *table.Op) {
				if isMeta(o) {
					o.If = table.All(o.If, table.Lacks(table.P(session.AttrOwner)))
				}
			}),
		},
		{
			Name: "attempts-without-end", Rule: "R3", Text: "a run without progress is tried for ever",
			Profiles: []string{"poison"},
			Times:    func(t *claim.Times) { t.Stalls = 1_000_000 },
		},
		{
			Name: "event-numbers-not-kept", Rule: "S1", Text: "a checkpoint does not say which event numbers are used",
			Profiles: []string{"short", "sleep"},
			Store: on([]kind{kCommit, kStarted, kDone, kRelease}, func(o *table.Op) {
				if isStatus(o) {
					unset(o, run.AttrNextEvent)
				}
			}),
		},
	}
}
