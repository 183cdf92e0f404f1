package rpc

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
)

// inputs is the messages that were accepted and are not in the transcript (A4).
type inputs struct {
	active *run.Status  // the run that has begun and not written its message
	waits  []run.Status // by accept sequence
	// moved: one of them was written while it was looked for, so that the picture of
	// the session is older than that of its messages.
	moved bool
}

// inputs reads the records of what META says is active, pending or in the mailbox.
func (g *Gateway) inputs(ctx context.Context, m *session.Meta) (inputs, error) {
	var in inputs
	var shorts []string
	if m.Active != "" {
		shorts = append(shorts, m.Active)
	}
	if m.MailN > 0 {
		mail, err := lane.Mailbox(ctx, g.Store, m.Ref)
		if err != nil {
			return in, err
		}
		in.moved = int64(len(mail)) < m.MailN
		for _, x := range mail {
			shorts = append(shorts, x.Run)
		}
	}
	for _, p := range m.Pending {
		if p.Seq > m.Cutoff {
			shorts = append(shorts, p.Run)
		}
	}
	found := make([]run.Status, len(shorts))
	eg, gctx := errgroup.WithContext(ctx)
	eg.SetLimit(readers)
	for i, s := range shorts {
		eg.Go(func() error {
			st, err := run.Load(gctx, g.Store, run.Ref{Tenant: m.Tenant, Run: s})
			if errors.Is(err, run.ErrUnknown) {
				return nil
			}
			found[i] = st
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		return in, err
	}
	for i := range found {
		st := &found[i]
		switch {
		case st.RunID == "" || st.Done() && st.UserSeq == 0:
			// Gone, or ended before it wrote anything.
		case st.UserSeq != 0 || st.State == run.Delivered:
			in.moved = in.moved || st.UserSeq > m.Head || st.SessionID != "" && st.SessionID != m.SessionID || st.UserSeq == 0
		case st.Run == m.Active:
			in.active = st
		default:
			in.waits = append(in.waits, *st)
		}
	}
	return in, nil
}

// pending is the waiting messages as clients see them, their texts cut to so many
// characters each and to room bytes together.
func (in *inputs) pending(most, room int) protocol.PendingInputs {
	out := protocol.PendingInputs{Items: []protocol.PendingInput{}, Total: len(in.waits)}
	for i := range in.waits {
		st := &in.waits[i]
		text, _ := cutText(st.Input.Message, most)
		text, _ = protocol.TrimText(text, room/len(in.waits))
		out.Items = append(out.Items, protocol.PendingInput{RunID: st.RunID, Text: text, Timestamp: st.AcceptedAt})
	}
	return out
}
