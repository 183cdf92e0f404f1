package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// maxCollect bounds the messages that become one turn: they go into one transaction.
const maxCollect = 30

// merge makes one turn of the message that this run is and those that wait right
// behind it in collect mode (spec: runtime 2.6), or of texts that one sender wrote in a
// row (2.8). Each of them ends with this run. Where one was steered into the run before
// an attempt of it died, all that waits came later, and does not get in front of it.
func (a *attempt) merge(ctx context.Context, m session.Meta) error {
	mode := a.st.Input.QueueMode
	if a.st.UserSeq != 0 || mode != lane.Collect && mode != lane.Gather {
		return nil
	}
	for m.MailN == 0 {
		taken := behind(m, mode)
		if len(taken) == 0 {
			return nil
		}
		err := a.take(ctx, taken)
		if !refusedOrGone(err) {
			return err
		}
		// One was stopped meanwhile: look again.
		if m, err = session.LoadMeta(ctx, a.r.Store, a.ref); err != nil {
			return err
		}
		if m.Marked() {
			return stopped(m)
		}
	}
	return nil
}

// refusedOrGone says whether a commit found the session otherwise than it was read.
func refusedOrGone(err error) bool {
	var refused *claim.RefusedError
	return errors.As(err, &refused) || errors.Is(err, table.ErrCondition) || errors.Is(err, errWithdrawn)
}

// behind lists the messages in a mode that wait before anything else does.
func behind(m session.Meta, mode string) []session.Pending {
	var out []session.Pending
	for _, p := range m.Pending {
		if p.Seq <= m.Cutoff {
			continue
		}
		if p.Mode != mode || len(out) == maxCollect {
			break
		}
		out = append(out, p)
	}
	return out
}

// take commits the combined message, on the condition that every one that it holds
// still waits.
func (a *attempt) take(ctx context.Context, taken []session.Pending) error {
	texts := []string{a.st.Input.Message}
	var files []model.Block
	c := change{}
	var conds []table.Cond
	var runs []string
	var statuses []run.Status
	became := run.Disposition{Kind: lane.IsCollected, RunID: a.st.RunID}
	disp, err := lane.SetDisposition(became)
	if err != nil {
		return err
	}
	for _, p := range taken {
		st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: p.Run})
		if err == nil {
			err = a.mayJoin(ctx, &st)
		}
		if err != nil {
			return err
		}
		texts, runs, statuses = append(texts, st.Input.Message), append(runs, p.Run), append(statuses, st)
		if len(st.Input.Attachments) > 0 {
			files = append(files, a.content(ctx, run.Input{Attachments: st.Input.Attachments})...)
		}
		runs = append(runs, st.Input.Overflow.Runs...)
		member := table.P(session.AttrPending, session.PendingMember(p.Seq))
		conds = append(conds, table.Equal(member, p.Value()))
		c.tx.Remove = append(c.tx.Remove, member)
		c.tx.Ops = append(c.tx.Ops, table.Op{
			Kind: table.Update, Key: st.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Pending)),
			Set: []table.SetOp{
				{Path: table.P(run.AttrState), Value: string(run.Delivered)},
				{Path: table.P(run.AttrInto), Value: a.st.Ref.Run},
				{Path: table.P(run.AttrSessionID), Value: a.sid},
				disp,
			},
		})
	}
	c.tx.If = table.All(conds...)
	c.tx.Add = []table.AddOp{{Path: table.P(session.AttrPendingN), N: -int64(len(taken))}}
	text := strings.Join(texts, "\n")
	if a.st.Input.QueueMode == lane.Collect {
		text = combined(texts)
	}
	alone, before := a.setUserText(text, files), len(a.chk.Took)
	a.chk.Took = append(a.chk.Took, runs...)
	if err := a.commit(ctx, c); err != nil {
		a.setUser(alone)
		a.chk.Took = a.chk.Took[:before]
		return err
	}
	a.tell(statuses, became)
	return nil
}

// setUserText gives the message that is not stored yet another text and more files,
// and returns the content that it had.
func (a *attempt) setUserText(text string, files []model.Block) (before []model.Block) {
	before = a.unsaved[len(a.unsaved)-1].Content
	own := before
	if len(own) > 0 && own[0].Type == model.Text && own[0].Text == a.st.Input.Message {
		own = own[1:]
	}
	content := append([]model.Block{{Type: model.Text, Text: text}}, own...)
	a.setUser(append(content, files...))
	return before
}

func (a *attempt) setUser(content []model.Block) {
	a.unsaved[len(a.unsaved)-1].Content, a.rows[len(a.rows)-1].Content = content, content
}

// combined is the prompt of several messages that waited.
func combined(texts []string) string {
	var b strings.Builder
	b.WriteString("[Queued messages while agent was busy]")
	for i, t := range texts {
		fmt.Fprintf(&b, "\n\n---\nQueued #%d\n%s", i+1, t)
	}
	return b.String()
}
