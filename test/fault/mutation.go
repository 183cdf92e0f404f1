package fault

import (
	"slices"

	"laneway/shared/claim"
	"laneway/shared/loop"
	"laneway/shared/queue"
	"laneway/shared/table"
)

// Mutation makes the product wrong in one way, from outside: at the ports and seams
// that it has anyway. No code of the product knows of it.
type Mutation struct {
	Name string
	Rule string // that it breaks
	Text string
	// Profiles in which it shows.
	Profiles []string
	// Seen is a seed of the first of them that noticed it once: it is tried first.
	Seen uint64

	Store      func(*proc, table.Store) table.Store
	Queue      func(*proc, mailPort) mailPort
	Times      func(*claim.Times) // of runners
	Ends       func(loop.Ends) loop.Ends
	Wake       func(*proc, queue.Handler) queue.Handler
	NoWatchdog bool
}

// Mutations lists them.
func Mutations() []Mutation {
	return slices.Concat(claimMutations(), laneMutations(), textMutations(), turnMutations(), endMutations())
}

// MutationOf finds one by its name.
func MutationOf(name string) *Mutation {
	for _, m := range Mutations() {
		if m.Name == name {
			return &m
		}
	}
	return nil
}

// edited is a store whose writes are changed on their way.
func edited(edit func(kind, []table.Op) []table.Op) func(*proc, table.Store) table.Store {
	return func(_ *proc, t table.Store) table.Store { return &bent{Store: t, edit: edit} }
}

// seen is a store whose hot items look otherwise than they are, to some processes.
func seenBy(who role, view func(table.Attrs)) func(*proc, table.Store) table.Store {
	return func(p *proc, t table.Store) table.Store {
		if p.slot.role != who {
			return t
		}
		return &bent{Store: t, view: view}
	}
}

// both is one change behind the other.
func both(a, b func(*proc, table.Store) table.Store) func(*proc, table.Store) table.Store {
	return func(p *proc, t table.Store) table.Store { return b(p, a(p, t)) }
}

// on changes writes of some kinds.
func on(kinds []kind, change func(*table.Op)) func(*proc, table.Store) table.Store {
	return edited(func(k kind, ops []table.Op) []table.Op {
		if slices.Contains(kinds, k) {
			for i := range ops {
				change(&ops[i])
			}
		}
		return ops
	})
}

// without strips what a condition says about some attributes; exists stands for that of
// the item as a whole.
func without(attrs ...string) func(*table.Op) {
	return func(o *table.Op) {
		if isMeta(o) || isStatus(o) || o.Key.Table == table.Runs {
			o.If = strip(o.If, attrs)
		}
	}
}

const exists = "*"

func strip(c table.Cond, attrs []string) table.Cond {
	if all, ok := c.(table.AllCond); ok {
		kept := table.AllCond{}
		for _, e := range all {
			if e = strip(e, attrs); e != nil {
				kept = append(kept, e)
			}
		}
		return kept
	}
	if mentions(c, attrs) {
		return nil
	}
	return c
}

func mentions(c table.Cond, attrs []string) bool {
	switch c := c.(type) {
	case table.ItemCond:
		return slices.Contains(attrs, exists)
	case table.AttrCond:
		return slices.Contains(attrs, c.Path.Attr)
	case table.CompareCond:
		return slices.Contains(attrs, c.Path.Attr)
	case table.AnyCond:
		return slices.ContainsFunc(c, func(e table.Cond) bool { return mentions(e, attrs) })
	case table.AllCond:
		return slices.ContainsFunc(c, func(e table.Cond) bool { return mentions(e, attrs) })
	}
	return false
}

// unset takes sets of some attributes out of an op.
func unset(o *table.Op, attrs ...string) {
	o.Set = slices.DeleteFunc(o.Set, func(s table.SetOp) bool { return slices.Contains(attrs, s.Path.Attr) })
}
