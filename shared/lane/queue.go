package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"laneway/shared/queueing"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// The queue modes and the policies of a full queue, as a message or its session has them.
const (
	Steer         = queueing.Steer
	Followup      = queueing.Followup
	Collect       = queueing.Collect
	Interrupt     = queueing.Interrupt
	DropNew       = queueing.DropNew
	DropOld       = queueing.DropOld
	DropSummarize = queueing.DropSummarize
)

// Rules are the settings of a session's queue (spec: runtime 2.2).
type Rules = queueing.Rules

// DefaultRules hold where nobody says otherwise.
var DefaultRules = queueing.Default

// ErrQueueCap is a message that found the queue full under DropNew, or with nothing
// in it that may be dropped. Nothing of it is stored.
var ErrQueueCap = errors.New("lane: the queue of this session is full")

// CapError is an ErrQueueCap that says how many messages may wait.
type CapError struct{ Cap int }

func (e *CapError) Error() string { return fmt.Sprintf("%v (cap %d)", ErrQueueCap, e.Cap) }

// Unwrap is ErrQueueCap.
func (*CapError) Unwrap() error { return ErrQueueCap }

// SummaryPrefix begins the ids of overflow summaries.
const SummaryPrefix = "followup-overflow:"

// Gather is the mode in the pending list of a text that found nobody at work and waits
// for more of its sender (spec: runtime 2.8).
const Gather = "gather"

// gathering is the reason in the receipt of such a text.
const gathering = "debounce"

// queued is how a message queues, decided against one picture of the session.
type queued struct {
	rules      Rules
	notSteered string // why a message in steer mode waits instead, or one that gathers
	flush      bool   // the texts that gather wait no more
	victims    []session.Pending
	records    []run.Status     // of the victims
	summary    *session.Pending // the summary that waits already
	sumRecord  run.Status
}

// changed lists what became lines of a summary.
func (q *queued) changed() []run.Status {
	if q == nil || q.rules.Drop != DropSummarize {
		return nil
	}
	return q.records
}

// pendingMode is the mode in the pending list: a message that was not steered waits
// as a follow-up.
func (q *queued) pendingMode() string {
	switch q.rules.Mode {
	case Collect, Gather:
		return q.rules.Mode
	}
	return Followup
}

// debounce is until when what is in the queue waits for more: every arrival begins it
// anew, and one that is not put together with the texts that gather ends it.
func (q *queued) debounce(c *Call) []table.SetOp {
	until := c.Run.AcceptedAt + q.rules.Debounce
	if q.flush {
		until = c.Run.AcceptedAt
	}
	set := []table.SetOp{{Path: table.P(session.AttrDebounce), Value: until}}
	if q.rules.Mode == Gather {
		set = append(set, table.SetOp{Path: table.P(session.AttrGatherBy), Value: c.ConnectionID})
	}
	return set
}

// gather decides whether a text waits for more of its sender: where nobody is at work
// and nothing waits, and where the texts of the same sender do.
func (c *Call) gather(m session.Meta, known bool, now time.Time) bool {
	if c.Gather <= 0 || c.Interrupt || m.Active != "" {
		return false
	}
	if !known {
		return true
	}
	if _, waits := m.Lowest(); !waits {
		return true // what a stop has ended is nobody
	}
	last := m.Pending[len(m.Pending)-1]
	return last.Mode == Gather && m.GatherBy == c.ConnectionID && m.Debounce.After(now)
}

// gathers says whether texts wait for more of their sender.
func gathers(m session.Meta) bool {
	p, waits := m.Lowest()
	return waits && m.Active == "" && p.Mode == Gather
}

// queueing decides how a message queues; nil where it does not: nobody is at work,
// or it is a run of its own right. ErrQueueCap: it is refused.
func (s *Service) queueing(ctx context.Context, c *Call, m session.Meta, known bool) (*queued, error) {
	if c.gather(m, known, s.Clock.Now()) {
		return &queued{rules: Rules{Mode: Gather, Debounce: c.Gather.Milliseconds()}, notSteered: gathering}, nil
	}
	if c.Rules == nil || !known || c.Interrupt || m.Active == "" && len(m.Pending) == 0 {
		return nil, nil
	}
	rules, err := c.Rules(ctx)
	if err != nil {
		return nil, err
	}
	if rules.Mode == Interrupt {
		c.Interrupt = true
		return nil, nil
	}
	q := &queued{rules: rules, flush: gathers(m)}
	if rules.Mode == Steer {
		switch {
		case len(m.Pending) > 0:
			q.notSteered = "backlog" // nothing overtakes what waits
		case m.Active == "" || m.Marked():
			q.notSteered = RunEnding
		case m.MailN >= MaxMail:
			q.notSteered = "mailbox-full"
		default:
			return q, nil
		}
	}
	return q, s.chooseVictims(ctx, m, q)
}

// chooseVictims says which messages make room: the oldest that wait and are neither
// runs of their own right nor a summary.
func (s *Service) chooseVictims(ctx context.Context, m session.Meta, q *queued) error {
	var waiting []session.Pending
	for _, p := range m.Pending {
		if p.Seq <= m.Cutoff || p.Mode == "" || p.Mode == Gather {
			continue
		}
		if strings.HasPrefix(p.Run, SummaryPrefix) {
			q.summary = &p
			continue
		}
		waiting = append(waiting, p)
	}
	most := max(q.rules.Cap, 1)
	n := len(waiting) - most + 1
	if n <= 0 {
		return nil
	}
	if q.rules.Drop == DropNew || n > len(waiting) {
		return &CapError{most}
	}
	q.victims = waiting[:n]
	for _, p := range q.victims {
		st, err := run.Load(ctx, s.Store, run.Ref{Tenant: m.Tenant, Run: p.Run})
		if err != nil {
			return err
		}
		q.records = append(q.records, st)
	}
	if q.summary == nil || q.rules.Drop != DropSummarize {
		return nil
	}
	var err error
	q.sumRecord, err = run.Load(ctx, s.Store, run.Ref{Tenant: m.Tenant, Run: q.summary.Run})
	return err
}

// overflow adds to an accept what becomes of the messages that make room for it, and
// the debounce.
func (s *Service) overflow(up *table.Op, c *Call, q *queued) ([]table.Op, error) {
	st := &c.Run
	up.Set = append(up.Set, q.debounce(c)...)
	if len(q.victims) == 0 {
		return nil, nil
	}
	up.Add = []table.AddOp{{Path: table.P(session.AttrPendingN), N: 1 - int64(len(q.victims))}}
	summarize := q.rules.Drop == DropSummarize
	keep := session.PendingMember(q.victims[0].Seq)
	for _, p := range q.victims {
		member := session.PendingMember(p.Seq)
		up.If = table.All(up.If, table.Equal(table.P(session.AttrPending, member), p.Value()))
		if summarize && q.summary == nil && member == keep {
			continue // the summary takes its place
		}
		up.Remove = append(up.Remove, table.P(session.AttrPending, member))
	}
	if !summarize {
		return s.dropOps(up, q, st.AcceptedAt)
	}
	return s.summaryOps(up, st, q)
}

// dropOps ends the victims: their ids are terminal, so that nobody waits for them.
func (s *Service) dropOps(up *table.Op, q *queued, at int64) ([]table.Op, error) {
	const why = "queue_overflow"
	var ops []table.Op
	var ended table.Set
	for _, v := range q.records {
		ended = append(ended, v.Ref.Run)
		op, err := endedOp(v.Ref, run.Pending, stopped(why), run.Disposition{Kind: IsDropped, Reason: why}, time.UnixMilli(at))
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	up.AddTo = append(up.AddTo, table.MemberOp{Attr: session.AttrUnsettled, Members: ended})
	return ops, nil
}

// summaryOps makes the victims lines of a summary, which is a run of its own in the
// place of the oldest; their ids resolve to its end.
func (s *Service) summaryOps(up *table.Op, st *run.Status, q *queued) ([]table.Op, error) {
	sum := q.sumRecord
	fresh := q.summary == nil
	if fresh {
		first := q.victims[0]
		id := SummaryPrefix + s.NewID()
		sum = run.Status{
			Ref: run.RefOf(st.Tenant, id), RunID: id, SessionKey: st.SessionKey, AgentID: st.AgentID, Lane: first.Lane,
			Method: st.Method, Seq: first.Seq, RequestHash: id, WriteID: st.WriteID, State: run.Pending, AcceptedAt: st.AcceptedAt,
			Origin: st.Origin, Disposition: run.Disposition{Kind: IsQueued, Position: 1},
			Input: run.Input{QueueMode: q.rules.Mode}, Token: q.records[0].Token,
		}
		place := session.Pending{Seq: first.Seq, Lane: first.Lane, Run: sum.Ref.Run, Mode: q.pendingMode()}
		up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrPending, session.PendingMember(first.Seq)), Value: place.Value()})
		up.Add[0].N++
	} else {
		member := table.P(session.AttrPending, session.PendingMember(q.summary.Seq))
		up.If = table.All(up.If, table.Equal(member, q.summary.Value()))
		up.Set = append(up.Set, table.SetOp{Path: member, Value: revised(*q.summary).Value()})
	}
	var ops []table.Op
	disp, err := json.Marshal(run.Disposition{Kind: IsSummarised, RunID: sum.RunID})
	if err != nil {
		return nil, err
	}
	mixed := false
	for i, v := range q.records {
		mixed = mixed || v.Token != sum.Token
		q.records[i].Disposition = run.Disposition{Kind: IsSummarised, RunID: sum.RunID}
		sum.Input.Overflow.Add(v, max(q.rules.Cap, 1))
		ops = append(ops, table.Op{
			Kind: table.Update, Key: v.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Pending)),
			Set: []table.SetOp{
				{Path: table.P(run.AttrState), Value: string(run.Delivered)},
				{Path: table.P(run.AttrInto), Value: sum.Ref.Run},
				{Path: table.P(run.AttrDisposition), Value: disp},
			},
		})
	}
	sum.Input.Message = sum.Input.Overflow.Text()
	var depends []table.Path
	if mixed { // messages of several tokens: it depends on none of them
		sum.Token, depends = "", []table.Path{table.P(run.AttrToken)}
	}
	if fresh {
		item, err := sum.Item()
		if err != nil {
			return nil, err
		}
		return append(ops, table.Op{Kind: table.Put, Key: sum.StatusKey(), Item: item, If: table.NotExists()}), nil
	}
	in, err := json.Marshal(sum.Input)
	if err != nil {
		return nil, err
	}
	return append(ops, table.Op{
		Kind: table.Update, Key: sum.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Pending)),
		Set: []table.SetOp{{Path: table.P(run.AttrInput), Value: in}}, Remove: depends,
	}), nil
}
