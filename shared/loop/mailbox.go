package loop

import (
	"context"
	"errors"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/transcript"
)

// deliver writes the messages that were steered into this run behind what is there,
// before the next model call, and says how many. m is the reading of the session
// that showed them, and that showed no mark to stop: a commit delivers nothing that
// it did not see (L3).
func (a *attempt) deliver(ctx context.Context, m session.Meta) (delivered int, err error) {
	for m.MailN > 0 && !m.Marked() && len(transcript.OpenCalls(a.rows)) == 0 {
		mail, err := lane.Mailbox(ctx, a.r.Store, a.ref)
		if err != nil {
			return delivered, err
		}
		var seen []lane.Mail
		for _, msg := range mail {
			if msg.Seq <= m.MailSeq && len(seen) < lane.MaxMail {
				seen = append(seen, msg)
			}
		}
		if len(seen) == 0 {
			return delivered, nil
		}
		err = a.deliverSome(ctx, seen)
		if err == nil {
			m.MailN -= int64(len(seen))
			delivered += len(seen)
			continue
		}
		if !errors.Is(err, table.ErrCondition) && !errors.Is(err, errWithdrawn) {
			return delivered, err
		}
		// One was withdrawn meanwhile: read the mailbox again.
		if m, err = session.LoadMeta(ctx, a.r.Store, a.ref); err != nil {
			return delivered, err
		}
	}
	return delivered, nil
}

// deliverSome delivers messages in one commit, on the condition that nobody has
// taken one of them back.
func (a *attempt) deliverSome(ctx context.Context, mail []lane.Mail) error {
	waiting, rows, before := len(a.unsaved), len(a.rows), len(a.chk.Took)
	c := change{}
	var took []run.Status
	became := run.Disposition{Kind: lane.IsSteered, RunID: a.st.RunID, Step: a.chk.Step}
	disp, err := lane.SetDisposition(became)
	if err != nil {
		return err
	}
	for _, msg := range mail {
		st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: msg.Run})
		if err == nil {
			err = a.mayJoin(ctx, &st)
		}
		if err != nil {
			a.unsaved, a.rows = a.unsaved[:waiting], a.rows[:rows]
			return err
		}
		took = append(took, st)
		a.add(transcript.Entry{
			ID: a.r.NewID(), Type: transcript.Message, RunID: st.RunID, At: st.AcceptedAt, Key: st.RunID + ":user",
			Role: model.User, Content: a.content(ctx, st.Input),
		})
		c.tx.Ops = append(c.tx.Ops,
			table.Op{Kind: table.Delete, Key: a.ref.MailKey(msg.Seq), If: table.Exists()},
			table.Op{
				Kind: table.Update, Key: st.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Steered)),
				Set: []table.SetOp{
					{Path: table.P(run.AttrState), Value: string(run.Delivered)},
					{Path: table.P(run.AttrInto), Value: a.st.Ref.Run},
					{Path: table.P(run.AttrUserSeq), Value: a.unsaved[len(a.unsaved)-1].Seq},
					{Path: table.P(run.AttrSessionID), Value: a.sid},
					disp,
				},
			})
	}
	c.tx.Add = []table.AddOp{{Path: table.P(session.AttrMailN), N: -int64(len(mail))}}
	for _, st := range took {
		a.chk.Took = append(a.chk.Took, st.Ref.Run)
	}
	head := a.head
	// What the model said before stands, as a message of its own.
	if err := a.commitWith(ctx, c, stream.EndMessage()); err != nil {
		saved := int(a.head - head) // by the commits that came before the one that failed
		a.unsaved, a.rows = a.unsaved[:max(waiting-saved, 0)], a.rows[:rows]
		a.chk.Took = a.chk.Took[:before]
		return err
	}
	a.endMessage()
	a.tell(took, became)
	return nil
}

// moveBack puts the undelivered messages of a run that ends otherwise than ok back
// among the pending runs, each at its own accept sequence, with the terminal (L3).
func (a *attempt) moveBack(ctx context.Context, c *change) error {
	mail, err := lane.Mailbox(ctx, a.r.Store, a.ref)
	if err != nil {
		return err
	}
	a.back, a.returned = int64(len(mail)), nil
	var fell []string
	cutoff := a.h.Meta().Cutoff
	for i, msg := range mail {
		st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: msg.Run})
		if err != nil {
			return err
		}
		// Nothing waits while a mailbox holds a message but what came after it was full.
		st.Disposition = run.Disposition{Kind: lane.IsQueued, Position: i + 1, Reason: lane.RunEnded}
		disp, err := lane.SetDisposition(st.Disposition)
		if err != nil {
			return err
		}
		a.returned = append(a.returned, st)
		if msg.Seq > cutoff { // else a stop of the session ends it with this run
			fell = append(fell, msg.Run)
		}
		c.tx.Set = append(c.tx.Set, table.SetOp{
			Path: table.P(session.AttrPending, session.PendingMember(msg.Seq)), Value: session.PendingValue(st.Lane, msg.Run),
		})
		c.tx.Ops = append(c.tx.Ops,
			table.Op{Kind: table.Delete, Key: a.ref.MailKey(msg.Seq), If: table.Exists()},
			table.Op{
				Kind: table.Update, Key: st.StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Steered)),
				Set:    []table.SetOp{{Path: table.P(run.AttrState), Value: string(run.Pending)}, disp},
				Remove: []table.Path{table.P(run.AttrInto)},
			})
	}
	c.tx.AddTo = append(c.tx.AddTo, lane.Fell(fell...)...)
	if a.back > 0 {
		c.tx.Add = append(c.tx.Add,
			table.AddOp{Path: table.P(session.AttrPendingN), N: a.back},
			table.AddOp{Path: table.P(session.AttrMailN), N: -a.back})
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
