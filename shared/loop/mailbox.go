package loop

import (
	"context"
	"errors"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/transcript"
)

// deliver writes the messages that were steered into this run behind what is there,
// before the next model call. m is the reading of the session that showed them, and
// that showed no mark to stop: a commit delivers nothing that it did not see (L3).
func (a *attempt) deliver(ctx context.Context, m session.Meta) error {
	for m.MailN > 0 && !m.Marked() {
		if len(transcript.OpenCalls(a.rows)) > 0 {
			return nil // results come first
		}
		mail, err := lane.Mailbox(ctx, a.r.Store, a.ref)
		if err != nil || len(mail) == 0 {
			return err
		}
		head, rows := len(a.unsaved), len(a.rows)
		c := change{}
		var runs table.Set
		for _, msg := range mail[:min(len(mail), maxMail)] {
			st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: msg.Run})
			if err != nil {
				return err
			}
			a.add(transcript.Entry{
				ID: a.r.NewID(), Type: transcript.Message, RunID: st.RunID, At: st.AcceptedAt, Key: st.RunID + ":user",
				Role: model.User, Content: []model.Block{{Type: model.Text, Text: st.Input.Message}},
			})
			seq := a.unsaved[len(a.unsaved)-1].Seq
			runs = append(runs, msg.Run)
			c.tx.Ops = append(c.tx.Ops,
				table.Op{Kind: table.Delete, Key: a.ref.MailKey(msg.Seq), If: table.Exists()},
				table.Op{
					Kind: table.Update, Key: st.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Steered)),
					Set: []table.SetOp{
						{Path: table.P(run.AttrState), Value: string(run.Delivered)},
						{Path: table.P(run.AttrInto), Value: a.st.Ref.Run},
						{Path: table.P(run.AttrUserSeq), Value: seq},
						{Path: table.P(run.AttrSessionID), Value: a.sid},
					},
				})
		}
		c.tx.Add = []table.AddOp{{Path: table.P(session.AttrMailN), N: -int64(len(runs))}}
		a.chk.Took = append(a.chk.Took, runs...)
		err = a.commit(ctx, c)
		if err == nil {
			a.itemOn = false
			m.MailN -= int64(len(runs))
			continue
		}
		a.unsaved, a.rows = a.unsaved[:head], a.rows[:rows]
		a.chk.Took = a.chk.Took[:len(a.chk.Took)-len(runs)]
		if !errors.Is(err, table.ErrCondition) {
			return err
		}
		// One was withdrawn meanwhile: read the mailbox again.
		if m, err = session.LoadMeta(ctx, a.r.Store, a.ref); err != nil {
			return err
		}
	}
	return nil
}

// maxMail bounds the messages that one commit delivers.
const maxMail = 20

// moveBack puts the undelivered messages of a run that ends otherwise than ok back
// among the pending runs, each at its own accept sequence, with the terminal (L3).
func (a *attempt) moveBack(ctx context.Context, c *change) error {
	mail, err := lane.Mailbox(ctx, a.r.Store, a.ref)
	if err != nil {
		return err
	}
	a.moved = int64(len(mail))
	for _, msg := range mail {
		st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: msg.Run})
		if err != nil {
			return err
		}
		c.tx.Set = append(c.tx.Set, table.SetOp{
			Path: table.P(session.AttrPending, session.PendingMember(msg.Seq)), Value: session.PendingValue(st.Lane, msg.Run),
		})
		c.tx.Ops = append(c.tx.Ops,
			table.Op{Kind: table.Delete, Key: a.ref.MailKey(msg.Seq), If: table.Exists()},
			table.Op{
				Kind: table.Update, Key: st.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Steered)),
				Set:    []table.SetOp{{Path: table.P(run.AttrState), Value: string(run.Pending)}},
				Remove: []table.Path{table.P(run.AttrInto)},
			})
	}
	if a.moved > 0 {
		c.tx.Add = append(c.tx.Add,
			table.AddOp{Path: table.P(session.AttrPendingN), N: a.moved},
			table.AddOp{Path: table.P(session.AttrMailN), N: -a.moved})
	}
	return nil
}

// mailIs is the condition that the mailbox is as it was read.
func mailIs(n int64) table.Cond {
	is := table.Equal(table.P(session.AttrMailN), n)
	if n == 0 {
		return table.Any(table.Lacks(table.P(session.AttrMailN)), is)
	}
	return is
}
