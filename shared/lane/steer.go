package lane

import (
	"context"
	"fmt"

	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Mail is a message in a session's mailbox: it was steered into the active run and
// has not been written into its transcript.
type Mail struct {
	Seq int64  // accept sequence of its own
	Run string // short id of its own
}

const (
	attrMailRun  = "run"
	attrMailInto = "into"
)

// MaxMail bounds the messages in a mailbox: the end of a run that is not ok moves them
// all in its one transaction. One more is accepted as a run.
const MaxMail = 20

// Steer puts a message into the active run's mailbox, in one transaction that
// fails where that run has ended or is to end, or where others wait: nothing
// overtakes. steered is false then, and the caller accepts the message as a run; a
// known key is answered as by Accept.
func (s *Service) Steer(ctx context.Context, c Call) (acc Accepted, steered bool, err error) {
	st := &c.Run
	ref := session.Ref{Tenant: st.Tenant, Key: st.SessionKey}
	st.State, st.AcceptedAt, st.WriteID = run.Steered, s.Clock.Now().UnixMilli(), s.NewID()
	if st.Lane == "" {
		st.Lane = string(queue.Main)
	}
	m, err := session.LoadMeta(ctx, s.Store, ref)
	if err != nil {
		return Accepted{}, false, err
	}
	return s.steerInto(ctx, c, m)
}

// steerInto is Steer from a picture of the session.
func (s *Service) steerInto(ctx context.Context, c Call, m session.Meta) (acc Accepted, steered bool, err error) {
	st, ref := &c.Run, m.Ref
	st.State, st.Input.QueueMode = run.Steered, ""
	for range 2 * session.MaxPending {
		if m.Active == "" || m.Marked() || len(m.Pending) > 0 || m.MailN >= MaxMail || c.overtaken(m) {
			return Accepted{}, false, nil
		}
		st.Seq, st.Into = m.Seq+1, m.Active
		into, err := WholeID(ctx, s.Store, m.Tenant, m.Active)
		if err != nil {
			return Accepted{}, false, err
		}
		st.Disposition = run.Disposition{Kind: IsSteered, RunID: into}
		ops, err := steerOps(ref, m, &c)
		if ops, err = c.with(ctx, ops, err); err != nil {
			return Accepted{}, false, err
		}
		err = s.write(ctx, ops...)
		ce, failed := table.Failed(err)
		switch {
		case err == nil:
			acc = Accepted{Status: *st}
			if c.Accepted != nil {
				c.Accepted(acc)
			}
			return acc, true, nil
		case failed && ce.Op == 0 && ce.Found != nil:
			acc, err = s.known(ctx, c, ref, *ce.Found)
			return acc, true, err
		case failed && ce.Op == 1:
			m = session.DecodeMeta(ref, ce.Found)
		case failed && ce.Op > opMail: // one of With's: it is made again
			if m, err = session.LoadMeta(ctx, s.Store, ref); err != nil {
				return Accepted{}, false, err
			}
		case failed:
			return Accepted{}, false, fmt.Errorf("%w: mailbox place is taken: %w", errDamaged, err)
		default:
			return Accepted{}, false, err
		}
	}
	return Accepted{}, false, ErrUnavailable
}

// opMail is the place of the mailbox among steerOps.
const opMail = 2

func steerOps(ref session.Ref, m session.Meta, c *Call) ([]table.Op, error) {
	st := &c.Run
	item, err := st.Item()
	if err != nil {
		return nil, err
	}
	touched := []table.SetOp{{Path: table.P(session.AttrUpdated), Value: st.AcceptedAt}}
	if !c.Internal {
		touched = append(touched, table.SetOp{Path: table.P(session.AttrInput), Value: st.AcceptedAt})
	}
	return []table.Op{
		{Kind: table.Put, Key: st.StatusKey(), Item: item, If: table.NotExists()},
		{
			Kind: table.Update, Key: ref.MetaKey(),
			If: table.All(
				table.Equal(table.P(session.AttrActive), m.Active),
				table.Equal(table.P(session.AttrSeq), m.Seq),
				table.Equal(table.P(session.AttrPendingN), int64(0)),
				table.Lacks(table.P(session.AttrCancel)),
				table.Any(table.Lacks(table.P(session.AttrCutoff)), table.Less(table.P(session.AttrCutoff), m.ActiveSeq)),
				c.notOvertaken()),
			Set: append(touched,
				table.SetOp{Path: table.P(session.AttrSeq), Value: st.Seq},
				table.SetOp{Path: table.P(session.AttrMailSeq), Value: st.Seq}),
			Add: []table.AddOp{{Path: table.P(session.AttrMailN), N: 1}},
		},
		// Behind the session: where somebody else has the place, its sequence says so.
		{Kind: table.Put, Key: ref.MailKey(st.Seq), If: table.NotExists(), Item: table.Attrs{attrMailRun: st.Ref.Run, attrMailInto: m.Active}},
	}, nil
}

// Mailbox lists what is undelivered, in accept order.
func Mailbox(ctx context.Context, t table.Store, ref session.Ref) ([]Mail, error) {
	var out []Mail
	q := table.Query{Table: table.Sessions, PK: ref.PK(), From: "IN#", To: "IN$"}
	for {
		page, err := t.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read mailbox: %w", err)
		}
		for _, it := range page.Items {
			var seq int64
			if _, err := fmt.Sscanf(it.Key.SK, "IN#%d", &seq); err != nil {
				return nil, fmt.Errorf("mailbox key %q: %w", it.Key.SK, err)
			}
			out = append(out, Mail{seq, it.Attrs.Str(attrMailRun)})
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}

// withdraw ends a steered message that was not delivered (C7).
func (s *Service) withdraw(ctx context.Context, st run.Status, reason string) (bool, error) {
	ref := session.Ref{Tenant: st.Tenant, Key: st.SessionKey}
	out, now := stopped(reason), s.Clock.Now()
	ended, err := endedOp(st.Ref, run.Steered, out, run.Disposition{Kind: IsDropped, Reason: reason}, now)
	if err != nil {
		return false, err
	}
	err = s.write(ctx,
		table.Op{Kind: table.Delete, Key: ref.MailKey(st.Seq), If: table.Exists()},
		table.Op{
			Kind: table.Update, Key: ref.MetaKey(), If: table.Exists(),
			Set: []table.SetOp{
				{Path: table.P(session.AttrActivePK), Value: ref.ActivePK()},
				{Path: table.P(session.AttrActiveSK), Value: ref.PK()},
			},
			Add:   []table.AddOp{{Path: table.P(session.AttrMailN), N: -1}},
			AddTo: []table.MemberOp{{Attr: session.AttrUnsettled, Members: table.Set{st.Ref.Run}}},
		},
		ended)
	return s.ended(ctx, err, st.Ref, out, now) // not where it was delivered meanwhile, or moved back
}
