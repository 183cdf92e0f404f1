package fault

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"laneway/shared/lane"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// textMutations are about texts that wait for more of their sender and become one turn.
func textMutations() []Mutation {
	return []Mutation{
		{
			Name: "texts-taken-and-left-in-line", Rule: "O1", Text: "texts become one turn and wait for one of their own all the same",
			Profiles: []string{"calm-texts", "late-texts", "texts"}, Seen: 2,
			Store: edited(func(k kind, ops []table.Op) []table.Op {
				if k != kCommit || !takes(ops) {
					return ops
				}
				for i := range ops {
					if o := &ops[i]; isMeta(o) {
						o.Remove = slices.DeleteFunc(o.Remove, func(p table.Path) bool { return p.Attr == session.AttrPending })
						o.Add = slices.DeleteFunc(o.Add, func(a table.AddOp) bool { return a.Path.Attr == session.AttrPendingN })
					}
				}
				return slices.DeleteFunc(ops, func(o table.Op) bool { return isStatus(&o) && setTo(&o, run.AttrState) == string(run.Delivered) })
			}),
		},
		{
			Name: "texts-taken-without-condition", Rule: "C7", Text: "a text that was stopped before its turn began is in it all the same",
			Profiles: []string{"late-texts", "texts"}, Seen: 16,
			Store: on([]kind{kCommit}, without(session.AttrPending, run.AttrState)),
		},
		{
			Name: "texts-taken-and-not-told", Rule: "L5", Text: "the end of a turn is told to the first of its texts alone",
			Profiles: []string{"calm-texts", "late-texts", "texts"}, Seen: 1,
			Store: on([]kind{kTerminal}, func(o *table.Op) {
				for i := range o.AddTo {
					if m := &o.AddTo[i]; isMeta(o) && m.Attr == session.AttrUnsettled && len(m.Members) > 1 {
						m.Members = m.Members[:1]
					}
				}
			}),
		},
		{
			Name: "texts-out-of-line", Rule: "A2", Text: "a turn takes texts out of the line and does not note that it has them",
			Profiles: []string{"calm-texts", "late-texts", "texts"}, Seen: 2,
			Store: edited(func(k kind, ops []table.Op) []table.Op {
				if k != kCommit || !takes(ops) {
					return ops
				}
				return slices.DeleteFunc(ops, func(o table.Op) bool { return isStatus(&o) && setTo(&o, run.AttrState) == string(run.Delivered) })
			}),
		},
		{
			Name: "texts-do-not-wait", Rule: "2.8", Text: "a text begins its turn as soon as somebody looks",
			Profiles: []string{"calm-texts"},
			Store:    seenBy(runner, hides(session.AttrDebounce)),
		},
		{
			Name: "texts-without-a-timer", Rule: "A2", Text: "nobody is sent to texts when their wait is over",
			Profiles: []string{"calm-texts"},
			Queue:    func(_ *proc, q mailPort) mailPort { return &deaf{q} },
		},
	}
}

// takes says whether a commit takes messages out of the line into its turn.
func takes(ops []table.Op) bool {
	meta := find(ops, isMeta)
	return meta != nil && slices.ContainsFunc(meta.Remove, func(p table.Path) bool { return p.Attr == session.AttrPending })
}

// deaf sets no timer for what is debounced.
type deaf struct{ mailPort }

// After implements queue.Timers.
func (d *deaf) After(ctx context.Context, wait time.Duration, body []byte) error {
	var t lane.Timer
	if err := json.Unmarshal(body, &t); err == nil && t.Kind == lane.TimerWake && t.Reason == "debounce" {
		return nil
	}
	return d.mailPort.After(ctx, wait, body)
}
