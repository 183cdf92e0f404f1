package fault

import (
	"context"
	"maps"
	"slices"

	"laneway/shared/session"
	"laneway/shared/table"
)

// bent is a store that does not do what it is told, or does not show what is there.
type bent struct {
	table.Store
	edit  func(kind, []table.Op) []table.Op
	view  func(table.Attrs)            // of a hot item that is read
	after func(kind, []table.Op)       // behind a write that went through
	first func(kind, []table.Op)       // before a write
	get   func(table.Key, *table.Item) // of any item that is read
}

func (b *bent) show(k table.Key, it *table.Item) {
	if it == nil {
		return
	}
	if b.get != nil {
		b.get(k, it)
	}
	op := table.Op{Key: k}
	if b.view == nil || !isMeta(&op) {
		return
	}
	it.Attrs = maps.Clone(it.Attrs)
	b.view(it.Attrs)
}

// Get implements table.Store.
func (b *bent) Get(ctx context.Context, k table.Key) (table.Item, error) {
	it, err := b.Store.Get(ctx, k)
	if err == nil {
		b.show(k, &it)
	}
	return it, err
}

// Write implements table.Store.
func (b *bent) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	k := kindOf(ops)
	if b.first != nil {
		b.first(k, ops)
	}
	if b.edit != nil {
		own := make([]table.Op, len(ops))
		for i, o := range ops {
			o.Set, o.Add, o.AddTo, o.Remove = slices.Clone(o.Set), slices.Clone(o.Add), slices.Clone(o.AddTo), slices.Clone(o.Remove)
			o.Item = maps.Clone(o.Item)
			own[i] = o
		}
		ops = b.edit(k, own)
	}
	res, err := b.Store.Write(ctx, ops...)
	if ce, ok := table.Failed(err); ok && ce.Op < len(ops) {
		b.show(ops[ce.Op].Key, ce.Found)
	}
	if err == nil {
		b.show(ops[0].Key, res.New)
		if b.after != nil {
			b.after(k, ops)
		}
	}
	return res, err
}

// hides is a view without some attributes.
func hides(attrs ...string) func(table.Attrs) {
	return func(a table.Attrs) {
		for _, n := range attrs {
			delete(a, n)
		}
	}
}

// waiting is how many runs wait in a hot item.
func waiting(a table.Attrs) int { return len(a.MapOf(session.AttrPending)) }
