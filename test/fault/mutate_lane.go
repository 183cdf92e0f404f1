package fault

import (
	"context"
	"strings"
	"time"

	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

func laneMutations() []Mutation {
	accepts := []kind{kAccept, kSteer}
	return []Mutation{
		{
			Name: "accept-without-absent", Rule: "A1", Text: "a run is accepted although its id is known",
			Profiles: []string{"calm", "store", "crash"}, Seen: 1,
			Store: on(accepts, func(o *table.Op) {
				if isStatus(o) {
					o.If = nil
				}
			}),
		},
		{
			Name: "reply-before-transaction", Rule: "A2", Text: "the caller is told before the run is in the tables",
			Profiles: []string{"crash", "calm"},
			Store:    repliesFirst,
		},
		{
			Name: "active-key-not-set", Rule: "A1", Text: "the transaction leaves the index of active sessions to a later write",
			Profiles: []string{"calm", "crash"},
			Store: on(accepts, func(o *table.Op) {
				if isMeta(o) {
					unset(o, session.AttrActivePK, session.AttrActiveSK)
				}
			}),
		},
		{
			Name: "stop-mark-only-read", Rule: "K1", Text: "a stop of the same connection is looked for before the transaction, not in it",
			Profiles: []string{"late-accept", "calm-stop", "stop"}, Seen: 3,
			Store: on(accepts, without(session.AttrStops)),
		},
		{
			Name: "no-watchdog", Rule: "A2", Text: "nobody looks for work that nobody does",
			Profiles: []string{"crash", "queue"}, NoWatchdog: true,
		},
		{
			Name: "watchdog-in-the-session-group", Rule: "A2", Text: "the watchdog's wake-up waits behind the message of a dead receiver",
			Profiles: []string{"crash", "tools"}, Seen: 7,
			Queue: resend("sweep", func(w lane.Wakeup, m *letter) {
				m.group = session.Ref{Tenant: w.Tenant, Key: w.Key}.Hash()
			}),
		},
		{
			Name: "starts-not-the-lowest", Rule: "O1", Text: "of several runs that wait, not the first is started",
			Profiles: []string{"calm", "queue"},
			Store: seenBy(runner, func(a table.Attrs) {
				if waiting(a) < 2 || a.Str(session.AttrActive) != "" {
					return
				}
				m := session.DecodeMeta(session.Ref{}, &table.Item{Attrs: a})
				kept := table.Map{}
				for k, v := range a.MapOf(session.AttrPending) {
					if k != session.PendingMember(m.Pending[0].Seq) {
						kept[k] = v
					}
				}
				a[session.AttrPending] = kept
			}),
		},
		{
			Name: "cutoff-not-looked-at", Rule: "C7", Text: "runs that wait are started although a stop covers them",
			Profiles: []string{"calm-stop", "stop"}, Seen: 1,
			Store: both(on([]kind{kClaim}, without(session.AttrCutoff)), seenBy(runner, hides(session.AttrCutoff))),
		},
		{
			Name: "cancel-without-condition", Rule: "C7", Text: "a cancel mark is put whatever is active",
			Profiles: []string{"late-cancel", "calm-stop", "stop", "steer"}, Seen: 70,
			Store: on([]kind{kCancel}, without(session.AttrActive)),
		},
		{
			Name: "waiting-run-ended-without-condition", Rule: "C7", Text: "a run that waited is ended although it has begun",
			Profiles: []string{"late-end", "calm-stop", "stop"}, Seen: 34,
			Store: on([]kind{kEndQueued}, without(session.AttrPending, run.AttrState)),
		},
		{
			Name: "waiting-run-ended-unsettled-not", Rule: "C7", Text: "a run that is ended before it began is told to nobody",
			Profiles: []string{"calm-stop", "stop"}, Seen: 1,
			Store: on([]kind{kEndQueued}, func(o *table.Op) { o.AddTo = nil }),
		},
		{
			Name: "steer-without-condition", Rule: "L3", Text: "a message goes into the mailbox whatever is active",
			Profiles: []string{"late-steer", "steer", "calm-stop"}, Seen: 41,
			Store: on([]kind{kSteer}, func(o *table.Op) {
				if isMeta(o) {
					o.If = strip(o.If, []string{session.AttrActive, session.AttrPendingN, session.AttrCancel, session.AttrCutoff, session.AttrSeq})
				}
			}),
		},
		{
			Name: "steer-into-a-marked-run", Rule: "L3", Text: "a message goes into a run that is to end",
			Profiles: []string{"steer", "calm-stop", "stop"}, Seen: 30,
			Store: both(on([]kind{kSteer}, without(session.AttrCancel, session.AttrCutoff)),
				seenBy(gateway, hides(session.AttrCancel, session.AttrCutoff))),
		},
		{
			Name: "resumes-a-sleeping-run", Rule: "R1", Text: "whoever gets a wake-up takes up a run that sleeps",
			Profiles: []string{"sleep", "calm-stop"}, Seen: 1,
			Store: seenBy(runner, hides(session.AttrWake)),
		},
		{
			Name: "sleep-without-condition", Rule: "R1", Text: "a run goes to sleep although it is to stop",
			Profiles: []string{"calm-sleep", "calm-stop"}, Seen: 20,
			Store: edited(func(k kind, ops []table.Op) []table.Op {
				for i := range ops {
					if o := &ops[i]; k == kRelease && isMeta(o) && sets(o, session.AttrWake) {
						o.If = strip(o.If, []string{session.AttrCancel, session.AttrCutoff})
					}
				}
				return ops
			}),
		},
		{
			Name: "sleep-ignores-marks", Rule: "Wake-up", Text: "a run that sleeps is not asked whether it is to stop",
			Profiles: []string{"calm-stop", "sleep"}, Seen: 68,
			Store: func(_ *proc, t table.Store) table.Store {
				return &bent{Store: t, view: func(a table.Attrs) {
					if a.Int(session.AttrWake) > time.Now().UnixMilli() {
						hides(session.AttrCancel, session.AttrCutoff)(a)
					}
				}}
			},
		},
		{
			Name: "command-does-not-look-again", Rule: "C4", Text: "whoever releases a claim sends nobody to the work that is left",
			Profiles: []string{"late-release", "calm"}, Seen: 2,
			Queue: resend("released", func(_ lane.Wakeup, m *letter) { m.drop = true }),
		},
	}
}

// letter is a wake-up that is about to be sent.
type letter struct {
	lane         queue.Lane
	group, dedup string
	drop         bool
}

// resend changes the wake-ups of a reason on their way.
func resend(reason string, change func(lane.Wakeup, *letter)) func(*proc, mailPort) mailPort {
	return func(p *proc, q mailPort) mailPort {
		return &diverted{mailPort: q, p: p, reason: reason, change: change}
	}
}

type diverted struct {
	mailPort
	p      *proc
	reason string
	change func(lane.Wakeup, *letter)
}

// Send implements queue.Sender.
func (d *diverted) Send(ctx context.Context, l queue.Lane, group, dedup string, body []byte) error {
	m := letter{lane: l, group: group, dedup: dedup}
	if w, err := lane.ParseWakeup(body); err == nil && w.Reason == d.reason {
		d.change(w, &m)
	}
	if m.drop {
		return nil
	}
	return d.mailPort.Send(ctx, m.lane, m.group, m.dedup, body)
}

// repliesFirst answers "accepted" to whoever sent the message, then writes.
func repliesFirst(p *proc, t table.Store) table.Store {
	if p.slot.role != gateway {
		return t
	}
	return &bent{Store: t, first: func(k kind, ops []table.Op) {
		st := find(ops, isStatus)
		if k != kAccept || p.isDead() {
			return
		}
		for _, o := range p.s.ops {
			if o.runID == st.Item.Str("run") && o.slot.cur == p && o.begun && !o.over && o.method == "agent" {
				o.conn.take(p, []byte(`{"type":"res","id":"`+o.id+`","ok":true,"payload":{"runId":"`+o.runID+`","status":"accepted"}}`))
				return
			}
		}
	}}
}

// acceptDedup is the deduplication id of the wake-up that a run was accepted with.
func acceptDedup(tenant, runID string) string { return id.Hash(tenant, runID) }

func isSummary(short string) bool { return strings.HasPrefix(short, lane.SummaryPrefix) }
