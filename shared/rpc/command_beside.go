package rpc

import (
	"context"
	"errors"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// beside is what is written with the acceptance of a message that goes on: what the
// session keeps of it, and the card that shortcuts in it are answered with, a run of its
// own that has ended; nil where there is none.
func (g *Gateway) beside(ctx context.Context, m message, a *asked) (card *run.Status, ops []table.Op, err error) {
	if ops, err = g.kept(ctx, m.ref, a); err != nil || a.answer == "" {
		return nil, ops, err
	}
	id, err := g.cardID(ctx, m.ref.Tenant, m.IdempotencyKey)
	if err != nil {
		return nil, nil, err
	}
	st, put, err := g.noticed(m.ref, caller{methodChat, id, m.hash}, a.answer)
	return &st, append(ops, put...), err
}

// kept is the write that keeps in the session what a message says for it.
func (g *Gateway) kept(ctx context.Context, ref session.Ref, a *asked) ([]table.Op, error) {
	if len(a.changes) == 0 {
		return nil, nil
	}
	op, err := session.ChangeEntry(ctx, g.Store, ref, a.made)
	return []table.Op{op}, err
}

// cardID is the run id of the card beside a run: the run's own with a suffix, and
// another one where a caller has made a run by that name.
func (g *Gateway) cardID(ctx context.Context, tenant, runID string) (string, error) {
	id := runID + ":card"
	_, err := run.Load(ctx, g.Store, run.RefOf(tenant, id))
	if errors.Is(err, run.ErrUnknown) {
		return id, nil
	}
	return id + ":" + g.NewID(), err
}
