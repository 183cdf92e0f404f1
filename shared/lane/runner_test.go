package lane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/transcript"
)

// runner handles wake-ups as the product's does, with turns that are reduced to their
// writes: rows, deliveries, terminal, settling. It dies where dies says so.
type runner struct {
	w     *lanetest.World
	rand  func(n int) int
	dies  func() bool
	pause func() // between two steps
}

// errDied is the end of an invocation in the middle of something.
var errDied = errors.New("runner died")

func (r *runner) handle(ctx context.Context, wake lane.Wakeup) error {
	m, err := session.LoadMeta(ctx, r.w.Store, wake.Ref())
	if err != nil {
		return err
	}
	for n := range 10 {
		var h *claim.Holder
		switch d := lane.Decide(m, wake.Lane, r.w.Clock.Now(), r.w.Times); d.Do {
		case lane.Settle:
			return r.w.Lanes.Settle(ctx, m, r.w.Ends, "settle/"+r.w.NewID())
		case lane.Forward:
			return r.w.Lanes.Nudge(ctx, m, "lane", fmt.Sprintf("lane/%s/%d", r.w.NewID(), n))
		case lane.Wait:
			return r.w.Lanes.NudgeLater(ctx, m, d.For, "debounce")
		case lane.Resume:
			h, err = r.w.Claims.Resume(ctx, m)
		case lane.Start:
			h, err = r.w.Claims.Start(ctx, m, d.Run)
		default:
			return nil
		}
		if taken, ok := errors.AsType[*claim.TakenError](err); ok {
			m = taken.Meta
			continue
		}
		if err != nil {
			return err
		}
		err = r.turn(ctx, h)
		h.Close()
		return err
	}
	return nil
}

func (r *runner) turn(ctx context.Context, h *claim.Holder) error {
	for step := 0; ; step++ {
		if r.dies() {
			return errDied
		}
		r.pause()
		m, err := session.LoadMeta(ctx, r.w.Store, h.Meta().Ref)
		if err != nil {
			return err
		}
		if m.Token != h.Token() || m.Owner != h.Owner() {
			return nil // superseded
		}
		kind := run.OutcomeKind("")
		switch {
		case m.Marked():
			kind = run.Aborted
		case step > 0 && r.rand(3) == 0:
			kind = []run.OutcomeKind{run.OK, run.OK, run.Failed}[r.rand(3)]
		case step > 0 && r.rand(4) == 0:
			return r.checkpoint(ctx, h, m)
		}
		done, err := r.commit(ctx, h, m, kind)
		var refused *claim.RefusedError
		switch {
		case errors.As(err, &refused), errors.Is(err, table.ErrCondition):
			continue // the mailbox changed meanwhile
		case errors.Is(err, claim.ErrStale), errors.Is(err, claim.ErrReleased):
			return nil
		case err != nil:
			return err
		case done == nil:
			continue
		case r.dies():
			return errDied
		}
		return r.w.Lanes.Settled(ctx, m.Ref, r.tell(ctx, m.Ref, done), h.Owner())
	}
}

func (r *runner) tell(ctx context.Context, ref session.Ref, runs []string) []string {
	var told []string
	for _, short := range runs {
		st, err := run.Load(ctx, r.w.Store, run.Ref{Tenant: ref.Tenant, Run: short})
		if err != nil {
			continue
		}
		if held, err := r.w.Ends.Finish(ctx, st); !held && err == nil {
			told = append(told, short)
		}
	}
	return told
}

func (r *runner) checkpoint(ctx context.Context, h *claim.Holder, m session.Meta) error {
	err := h.Commit(ctx, claim.Tx{Release: true})
	if errors.Is(err, claim.ErrStale) || errors.Is(err, claim.ErrReleased) {
		return nil
	}
	if err != nil || r.dies() {
		return errors.Join(err, errDied)
	}
	return r.w.Lanes.Nudge(ctx, m, "checkpoint", h.Owner()+"/checkpoint")
}

// said is a transcript row of these tests.
type said struct {
	run, into string
	token     int64
	user      bool
}

func loadRows(ctx context.Context, t table.Store, ref session.Ref) ([]said, error) {
	var out []said
	q := table.Query{Table: table.Sessions, PK: ref.TranscriptPK("s")}
	for {
		p, err := t.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, it := range p.Items {
			out = append(out, said{it.Attrs.Str("run"), it.Attrs.Str("into"), it.Attrs.Int("token"), it.Attrs.Bool("user")})
		}
		if q.After = p.Next; p.Next == "" {
			return out, nil
		}
	}
}

// commit writes a step, or with a kind the terminal; then it gives the runs that the
// terminal ended.
func (r *runner) commit(ctx context.Context, h *claim.Holder, m session.Meta, kind run.OutcomeKind) ([]string, error) {
	rows, err := loadRows(ctx, r.w.Store, m.Ref)
	if err != nil {
		return nil, err
	}
	mail, err := lane.Mailbox(ctx, r.w.Store, m.Ref)
	if err != nil {
		return nil, err
	}
	tx, ended := claim.Tx{Head: m.Head}, []string{m.Active}
	add := func(run string, user bool) {
		tx.Head++
		tx.Ops = append(tx.Ops, table.Op{
			Kind: table.Put, If: table.NotExists(),
			Key:  table.Key{Table: table.Sessions, PK: m.Ref.TranscriptPK("s"), SK: transcript.RowSK(tx.Head)},
			Item: table.Attrs{"run": run, "into": m.Active, "token": h.Token(), "user": user},
		})
	}
	first := true
	for _, row := range rows {
		if row.user && row.run == m.Active {
			first = false
		}
		if row.user && row.into == m.Active && row.run != m.Active {
			ended = append(ended, row.run)
		}
	}
	if first {
		add(m.Active, true)
	}
	add(m.Active, false)
	state := func(short string, set ...table.SetOp) table.Op {
		return table.Op{Kind: table.Update, Key: run.Ref{Tenant: m.Tenant, Run: short}.StatusKey(), If: table.Lacks(table.P(run.AttrOutcome)), Set: set}
	}
	if kind == "" {
		tx.Ops = append(tx.Ops, state(m.Active, table.SetOp{Path: table.P(run.AttrState), Value: string(run.Started)}))
		for _, msg := range mail {
			add(msg.Run, true)
			tx.Ops = append(tx.Ops,
				table.Op{Kind: table.Delete, Key: m.MailKey(msg.Seq), If: table.Exists()},
				state(msg.Run, table.SetOp{Path: table.P(run.AttrState), Value: string(run.Delivered)}))
		}
		if len(mail) > 0 {
			tx.Add = []table.AddOp{{Path: table.P(session.AttrMailN), N: -int64(len(mail))}}
		}
		return nil, h.Commit(ctx, tx)
	}
	if kind == run.OK && len(mail) > 0 {
		return nil, &claim.RefusedError{Meta: m}
	}
	end := lanetest.Terminal(h, r.w.Clock.Now(), run.Outcome{Kind: kind, StopReason: "end"})
	end.AddTo[0].Members = ended
	end.Head, end.Ops = tx.Head, append(tx.Ops, end.Ops...)
	body, _ := json.Marshal(run.Outcome{Kind: kind, StopReason: "end"})
	for _, short := range ended[1:] {
		end.Ops = append(end.Ops, state(short,
			table.SetOp{Path: table.P(run.AttrState), Value: string(run.Ended)}, table.SetOp{Path: table.P(run.AttrOutcome), Value: body}))
	}
	for _, msg := range mail {
		end.Set = append(end.Set, table.SetOp{
			Path: table.P(session.AttrPending, session.PendingMember(msg.Seq)), Value: session.PendingValue("main", msg.Run),
		})
		end.Ops = append(end.Ops,
			table.Op{Kind: table.Delete, Key: m.MailKey(msg.Seq), If: table.Exists()},
			state(msg.Run, table.SetOp{Path: table.P(run.AttrState), Value: string(run.Pending)}))
	}
	if n := int64(len(mail)); n > 0 {
		end.Add = []table.AddOp{{Path: table.P(session.AttrPendingN), N: n}, {Path: table.P(session.AttrMailN), N: -n}}
	}
	end.If = table.Any(table.Equal(table.P(session.AttrMailN), int64(len(mail))), table.All(table.Lacks(table.P(session.AttrMailN)), zero(len(mail))))
	if err := h.Commit(ctx, end); err != nil {
		return nil, err
	}
	return ended, nil
}

// zero is a condition that holds where n is 0.
func zero(n int) table.Cond {
	if n == 0 {
		return table.All()
	}
	return table.Any()
}

// dice is a source that goroutines share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}
