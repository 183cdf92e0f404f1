package rpc

import (
	"context"
	"errors"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// append writes one row under the session's claim.
func (g *Gateway) append(ctx context.Context, ref session.Ref, e transcript.Entry) error {
	return g.underClaim(ctx, ref, func(ctx context.Context, h *claim.Holder) error {
		m := h.Meta()
		open, err := g.closeOpen(ctx, m)
		if err != nil {
			return err
		}
		tx := claim.Tx{Head: m.Head}
		for _, row := range append(open, e) {
			tx.Head++
			row.Seq = tx.Head
			op, err := g.Log.Put(ctx, ref, m.SessionID, row)
			if err != nil {
				return err
			}
			tx.Ops = append(tx.Ops, op)
		}
		return h.Commit(ctx, tx)
	})
}

// closeOpen gives results for calls that are open at the end of the transcript:
// nothing may be written between a call and its result.
func (g *Gateway) closeOpen(ctx context.Context, m session.Meta) ([]transcript.Entry, error) {
	rows, err := g.Log.Context(ctx, m)
	if err != nil {
		return nil, err
	}
	var out []transcript.Entry
	for _, b := range transcript.OpenCalls(rows) {
		out = append(out, transcript.Entry{
			ID: g.NewID(), Type: transcript.Message, At: g.Clock.Now().UnixMilli(), Role: model.ToolResult,
			ToolCallID: b.ID, ToolName: b.Name, IsError: true,
			Content: []model.Block{{Type: model.Text, Text: tool.TextAborted}},
		})
	}
	return out, nil
}

// underClaim runs do while the session's claim is held, then releases it and wakes
// what waited meanwhile (C4).
func (g *Gateway) underClaim(ctx context.Context, ref session.Ref, do func(context.Context, *claim.Holder) error) error {
	h, err := g.Claims.Command(ctx, ref, g.BusyWait)
	if err != nil {
		return err
	}
	err = do(ctx, h)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	if rerr := h.Release(last); rerr != nil && !errors.Is(rerr, claim.ErrStale) {
		err = errors.Join(err, rerr)
	}
	m, merr := session.LoadMeta(last, g.Store, ref)
	if merr == nil && m.WorkLeft(g.Clock.Now(), g.Claims.Times.Slack) {
		merr = g.Lanes.Nudge(last, m, "released", h.Owner())
	}
	return errors.Join(err, merr)
}

// write sends ops until they are decided, as long as a gateway may (C6).
func (g *Gateway) write(ctx context.Context, ops ...table.Op) error {
	_, err := claim.Write(ctx, g.Store, g.Clock, g.Claims.Times.Retry, ops...)
	return err
}
