package fault

import (
	"context"

	"laneway/shared/session"
	"laneway/shared/table"
)

// ground is the tables under all processes. Every write that goes through is looked at
// before and after.
type ground struct {
	s      *Sim
	tables table.Store
}

// change is a write that went through.
type change struct {
	p      *proc
	by     actor
	kind   kind
	ops    []table.Op
	ref    session.Ref
	m0, m1 session.Meta // of the session in it, if any
	pendN  int64
	meta   *table.Op
	before map[table.Key]table.Item // of the runs' records in it
}

func (g *ground) write(p *proc, k kind, ops []table.Op) (table.Result, error) {
	ctx := context.Background()
	c := &change{p: p, by: p.actor(), kind: k, ops: ops, before: make(map[table.Key]table.Item)}
	for i := range ops {
		op := &ops[i]
		switch {
		case isMeta(op):
			c.ref, _ = session.RefOfPK(op.Key.PK)
			c.meta = op
			c.m0, _ = session.LoadMeta(ctx, g.tables, c.ref)
		case isStatus(op):
			if it, err := g.tables.Get(ctx, op.Key); err == nil {
				c.before[op.Key] = it
			}
		}
	}
	res, err := g.tables.Write(ctx, ops...)
	if err != nil {
		if ce, ok := table.Failed(err); ok && ce.Op < len(ops) {
			g.s.notef(p.name, "  condition failed: op %d of %s", ce.Op, k)
		}
		return res, err
	}
	if c.meta != nil {
		it, gone := g.tables.Get(ctx, c.ref.MetaKey())
		if gone != nil {
			g.s.violatef("meta", "%s deleted the hot item", k)
			return res, gone
		}
		c.m1, c.pendN = session.DecodeMeta(c.ref, &it), it.Attrs.Int(session.AttrPendingN)
	}
	g.s.ghost.see(c)
	return res, nil
}
