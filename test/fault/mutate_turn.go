package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"laneway/shared/lane"
	"laneway/shared/loop"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

func turnMutations() []Mutation {
	return []Mutation{
		{
			Name: "ledger-row-after-the-effect", Rule: "L2", Text: "a call is written down when it is done, not before it begins",
			Profiles: []string{"tools", "freeze"},
			Store: edited(func(_ kind, ops []table.Op) []table.Op {
				return slices.DeleteFunc(ops, func(o table.Op) bool {
					return strings.HasPrefix(o.Key.SK, "C#") && ledgerState(&o) == "started"
				})
			}),
		},
		{
			Name: "started-read-as-planned", Rule: "L2", Text: "a call that somebody began is begun again",
			Profiles: []string{"tools", "crash"}, Seen: 8,
			Store: func(_ *proc, t table.Store) table.Store { return &forgetful{t} },
		},
		{
			Name: "checkpoint-before-its-tools", Rule: "R1", Text: "a checkpoint between a message and its tools leaves them as begun",
			Profiles: []string{"short"},
			Store: edited(func(_ kind, ops []table.Op) []table.Op {
				for i := range ops {
					if o := &ops[i]; strings.HasPrefix(o.Key.SK, "C#") && o.Kind == table.Put && o.Item.Str("state") == "planned" {
						o.Item["state"] = "started"
					}
				}
				return ops
			}),
		},
		{
			Name: "ok-without-looking-into-the-mailbox", Rule: "L3", Text: "a run ends ok although a message came in",
			Profiles: []string{"steer", "calm"}, Seen: 3,
			Store: edited(func(k kind, ops []table.Op) []table.Op {
				if k == kTerminal && outcomeOf(ops) == run.OK {
					ops[0].If = strip(ops[0].If, []string{session.AttrMailN})
				}
				return ops
			}),
		},
		{
			Name: "steers-left-behind", Rule: "L3", Text: "a run that ends otherwise than ok leaves its mailbox as it is",
			Profiles: []string{"steer", "stop"}, Seen: 7,
			Store: edited(leaveMail),
		},
		{
			Name: "steers-under-a-new-sequence", Rule: "L3", Text: "messages that go back to wait go behind the others",
			Profiles: []string{"steer", "stop"}, Seen: 7,
			Store: edited(func(k kind, ops []table.Op) []table.Op {
				if k != kTerminal {
					return ops
				}
				for i := range ops[0].Set {
					if s := &ops[0].Set[i]; s.Path.Attr == session.AttrPending && s.Path.Member != "" {
						s.Path.Member = "0000009" + s.Path.Member[7:]
					}
				}
				return ops
			}),
		},
		{
			Name: "others-do-not-settle", Rule: "L5", Text: "only the holder of a terminal tells the end",
			Profiles: []string{"crash", "stop"}, Seen: 2,
			Store: func(p *proc, t table.Store) table.Store {
				if p.slot.role != runner {
					return t
				}
				last := -1
				b := &bent{Store: t}
				b.view = func(a table.Attrs) {
					if p.inv != last { // the first look of an invocation
						delete(a, session.AttrUnsettled)
					}
					last = p.inv
				}
				return b
			},
		},
		{
			Name: "acknowledge-before-settling", Rule: "L5", Text: "a wake-up is acknowledged with the terminal, and there is no watchdog",
			Profiles: []string{"crash", "stop", "steer"}, NoWatchdog: true,
			Store: func(p *proc, t table.Store) table.Store {
				return &bent{Store: t, after: func(k kind, _ []table.Op) {
					if k == kTerminal && p.msg != nil {
						p.s.boxes.drop(p.msg)
					}
				}}
			},
		},
	}
}

func endMutations() []Mutation {
	return []Mutation{
		{
			Name: "wake-up-only-if-something-waits", Rule: "L5", Text: "behind a settled run nobody is sent to other work than waiting runs",
			Profiles: []string{"calm-stop", "calm"}, Seen: 8,
			Queue: func(p *proc, q mailPort) mailPort {
				return &diverted{mailPort: q, p: p, reason: "settled", change: func(w lane.Wakeup, m *letter) {
					sg := p.s.ghost.sessions[w.Key]
					m.drop = sg != nil && (len(sg.meta.Pending) == 0 || sg.meta.Active != "")
				}}
			},
		},
		{
			Name: "no-wake-up-behind-the-end", Rule: "L5", Text: "whoever settles does not look again",
			Profiles: []string{"calm", "calm-stop"}, Seen: 6,
			Queue: resend("settled", func(_ lane.Wakeup, m *letter) { m.drop = true }),
		},
		{
			Name: "wake-up-under-the-run-id", Rule: "L5", Text: "the wake-up behind an end has the deduplication id of the next run's own",
			Profiles: []string{"calm", "calm-stop"}, Seen: 6,
			Queue: func(p *proc, q mailPort) mailPort {
				return &diverted{mailPort: q, p: p, reason: "settled", change: func(w lane.Wakeup, m *letter) {
					sg := p.s.ghost.sessions[w.Key]
					if sg == nil {
						return
					}
					if low, ok := sg.meta.Lowest(); ok && !isSummary(low.Run) {
						m.group, m.dedup = sg.ref.Hash(), acceptDedup(sg.ref.Tenant, low.Run)
					}
				}}
			},
		},
		{
			Name: "unsettled-is-one-flag", Rule: "L5", Text: "whoever settled one run takes all off",
			Profiles: []string{"calm-stop", "stop", "all"}, Seen: 39,
			Store: on([]kind{kSettled}, func(o *table.Op) {
				if len(o.TakeFrom) > 0 {
					o.TakeFrom = nil
					o.Remove = append(o.Remove, table.P(session.AttrUnsettled))
				}
			}),
		},
		{
			Name: "active-key-removed-on-old-reading", Rule: "L5", Text: "a session leaves the active index for what was read before",
			Profiles: []string{"calm", "calm-stop", "stop", "all"}, Seen: 61,
			Store: on([]kind{kSettled}, without(session.AttrSeq, session.AttrSettles)),
		},
		{
			Name: "held-counts-as-told", Rule: "L5", Text: "a run whose end another one is telling leaves the unsettled ones",
			Profiles: []string{"crash", "freeze", "waits"}, Seen: 14,
			Ends: func(e loop.Ends) loop.Ends { return impatient{e} },
		},
		{
			Name: "held-wakes-at-once", Rule: "L5", Text: "for a run whose end another one is telling a wake-up is sent at once",
			Profiles: []string{"queue", "calm", "crash"}, Seen: 5,
			Queue: func(p *proc, q mailPort) mailPort { return &hasty{q, p} },
		},
		{
			Name: "answer-not-written", Rule: "W2", Text: "a waiter is taken without writing the answer into its row",
			Profiles: []string{"waits", "posts"}, Seen: 116,
			Store: on([]kind{kTake}, func(o *table.Op) {
				unset(o, "ans")
				o.If = strip(o.If, []string{"ans"})
			}),
		},
		{
			Name: "answer-without-taking", Rule: "W2", Text: "a waiter is answered by whoever comes",
			Profiles: []string{"waits", "calm"}, Seen: 12,
			Store: on([]kind{kTake}, func(o *table.Op) {
				o.If = strip(o.If, []string{"ans", "lease", "told", exists})
			}),
		},
		{
			Name: "record-read-before-the-row", Rule: "W2", Text: "a waiter looks whether the run has ended before it is registered",
			Profiles: []string{"waits", "calm"}, Seen: 223,
			Store: readFirst,
		},
		{
			Name: "timer-after-the-row", Rule: "W2", Text: "the deadline of a wait is armed behind its row",
			Profiles: []string{"waits"}, Seen: 142,
			Store: func(p *proc, t table.Store) table.Store {
				return &bent{Store: t, after: func(k kind, _ []table.Op) {
					if k == kWaiter && p.later != nil {
						f := p.later
						p.later = nil
						f()
					}
				}}
			},
			Queue: func(p *proc, q mailPort) mailPort { return &tardy{q, p} },
		},
	}
}

// outcomeOf is how a terminal ends its run.
func outcomeOf(ops []table.Op) run.OutcomeKind {
	for i := range ops {
		if b, ok := setTo(&ops[i], run.AttrOutcome).([]byte); ok {
			var o run.Outcome
			if json.Unmarshal(b, &o) == nil {
				return o.Kind
			}
		}
	}
	return ""
}

// leaveMail takes the return of undelivered messages out of a terminal.
func leaveMail(k kind, ops []table.Op) []table.Op {
	if k != kTerminal || outcomeOf(ops) == run.OK {
		return ops
	}
	ops[0].Set = slices.DeleteFunc(ops[0].Set, func(s table.SetOp) bool { return s.Path.Attr == session.AttrPending })
	ops[0].Add = slices.DeleteFunc(ops[0].Add, func(a table.AddOp) bool {
		return a.Path.Attr == session.AttrPendingN || a.Path.Attr == session.AttrMailN
	})
	ops[0].If = strip(ops[0].If, []string{session.AttrMailN})
	return slices.DeleteFunc(ops, func(o table.Op) bool {
		return strings.HasPrefix(o.Key.SK, "IN#") || isStatus(&o) && removes(&o, run.AttrInto)
	})
}

// forgetful shows ledger rows that say "started" as if they said "planned".
type forgetful struct{ table.Store }

// Query implements table.Store.
func (f *forgetful) Query(ctx context.Context, q table.Query) (table.Page, error) {
	page, err := f.Store.Query(ctx, q)
	for i := range page.Items {
		if a := page.Items[i].Attrs; strings.HasPrefix(page.Items[i].Key.SK, "C#") && a.Str("state") == "started" {
			a["state"] = "planned"
		}
	}
	return page, err
}

// impatient takes another one's word for done.
type impatient struct{ loop.Ends }

// Finish implements lane.Finisher.
func (i impatient) Finish(ctx context.Context, st run.Status) (bool, error) {
	_, err := i.Ends.Finish(ctx, st)
	return false, err
}

// hasty sends the wake-up of a timer at once.
type hasty struct {
	mailPort
	p *proc
}

// After implements queue.Timers.
func (h *hasty) After(ctx context.Context, d time.Duration, body []byte) error {
	var t lane.Timer
	if err := json.Unmarshal(body, &t); err != nil || t.Kind != lane.TimerWake || t.Reason != "held" {
		return h.mailPort.After(ctx, d, body)
	}
	b, err := json.Marshal(t.Wakeup)
	if err != nil {
		return err
	}
	h.p.s.seq++
	once := fmt.Sprintf("hasty-%d", h.p.s.seq)
	return h.Send(ctx, queue.Lane(t.Lane), once, once, b)
}

// tardy keeps the timer of a wait until its row is written.
type tardy struct {
	mailPort
	p *proc
}

// After implements queue.Timers.
func (t *tardy) After(ctx context.Context, d time.Duration, body []byte) error {
	if t.p.slot.role != gateway || !strings.Contains(string(body), `"kind":"wait"`) || t.p.later != nil {
		return t.mailPort.After(ctx, d, body)
	}
	t.p.later = func() { _ = t.mailPort.After(ctx, d, body) }
	return nil
}

// readFirst shows a waiter the record of its run as it was before its row was written.
func readFirst(p *proc, t table.Store) table.Store {
	if p.slot.role != gateway {
		return t
	}
	before := make(map[string]table.Item)
	b := &bent{Store: t}
	b.first = func(k kind, ops []table.Op) {
		if k == kWaiter {
			key := ops[0].Key
			key.SK = "STATUS"
			if it, err := p.s.store.tables.Get(context.Background(), key); err == nil {
				before[key.PK] = it
			}
		}
	}
	b.get = func(k table.Key, it *table.Item) {
		if old, ok := before[k.PK]; ok && k.SK == "STATUS" {
			*it = old
			delete(before, k.PK)
		}
	}
	return b
}
