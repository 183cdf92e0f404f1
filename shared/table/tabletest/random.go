package tabletest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"laneway/shared/id"
	"laneway/shared/table"
)

// compareRandom does the same random steps on a reference and a subject. A space of few
// keys, attributes and values makes the steps meet.
func compareRandom(t *testing.T, reference, subject table.Store) {
	t.Helper()
	const steps = 400
	g := &generator{Rand: seeded(t), ns: id.UUID()}
	ctx := t.Context()
	for i := range steps {
		switch g.IntN(10) {
		case 0:
			q := g.query()
			want, err := allItems(ctx, reference, q)
			if err != nil {
				t.Fatalf("step %d: reference: %v", i, err)
			}
			got, err := allItems(ctx, subject, q)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Fatalf("step %d: %+v: %v (-reference +subject):\n%s", i, q, err, d)
			}
		case 1:
			q := g.indexQuery()
			want, err := allKeys(ctx, reference, q)
			if err != nil {
				t.Fatalf("step %d: reference: %v", i, err)
			}
			var got []table.IndexKey
			if !eventually(ctx, func() bool {
				got, err = allKeys(ctx, subject, q)
				return err != nil || cmp.Equal(want, got, sortKeys)
			}) || err != nil {
				t.Fatalf("step %d: %+v: %v (-reference +subject):\n%s", i, q, err, cmp.Diff(want, got, sortKeys))
			}
		default:
			ops := g.ops()
			want, wantErr := reference.Write(ctx, ops...)
			got, gotErr := subject.Write(ctx, ops...)
			if d := cmp.Diff(told(want, wantErr), told(got, gotErr)); d != "" {
				t.Fatalf("step %d: %+v\nreference: %v\nsubject: %v (-reference +subject):\n%s", i, ops, wantErr, gotErr, d)
			}
			for _, op := range ops {
				if d := cmp.Diff(read(ctx, reference, op.Key), read(ctx, subject, op.Key)); d != "" {
					t.Fatalf("step %d: after %+v (%v), item %q (-reference +subject):\n%s", i, ops, wantErr, op.Key.SK, d)
				}
			}
		}
	}
}

// sortKeys: entries of one index key have no order.
var sortKeys = cmpopts.SortSlices(func(a, b table.IndexKey) bool { return compareEntries(a, b) < 0 })

// answer is what a caller can tell apart.
type answer struct {
	New   *table.Item
	Class string
	Op    int
	Found *table.Item
}

func told(r table.Result, err error) answer {
	a := answer{New: r.New, Class: class(err)}
	if c, ok := table.Failed(err); ok {
		a.Op, a.Found = c.Op, c.Found
	}
	return a
}

func class(err error) string {
	if err == nil {
		return ""
	}
	for _, c := range []error{table.ErrNotFound, table.ErrCondition, table.ErrInvalid, table.ErrTooLarge, table.ErrConflict, table.ErrThrottled, table.ErrUnknown} {
		if errors.Is(err, c) {
			return c.Error()
		}
	}
	return "no class: " + err.Error()
}

func read(ctx context.Context, s table.Store, k table.Key) answer {
	it, err := s.Get(ctx, k)
	return answer{New: &it, Class: class(err)}
}

func allItems(ctx context.Context, s table.Store, q table.Query) ([]table.Item, error) {
	var all []table.Item
	for {
		p, err := s.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if q.After = p.Next; p.Next == "" {
			return all, nil
		}
	}
}

func allKeys(ctx context.Context, s table.Store, q table.IndexQuery) ([]table.IndexKey, error) {
	var all []table.IndexKey
	for {
		p, err := s.Index(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Keys...)
		if q.After = p.Next; p.Next == "" {
			return all, nil
		}
	}
}

// generator makes operations that Validate mostly lets through.
type generator struct {
	*rand.Rand
	ns string
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) pk() string { return g.ns + pick(g, "#a", "#b") }
func (g *generator) sk() string { return pick(g, "META", "a", "b", "b\x00", "é") }

func (g *generator) key() table.Key {
	return table.Key{Table: pick(g, table.Sessions, table.Sessions, table.Runs), PK: g.pk(), SK: g.sk()}
}

// attr names an attribute that mostly holds the kind that its name says.
func (g *generator) attr() string {
	return pick(g, "n", "n", "s", "m", "m", "m2", "set", "set", "any", "a.b", "flag")
}

// member names a member that always holds the kind that goes with its name, as m and m2
// always hold maps: of changes inside a value of another kind AWS refuses all, emulators
// not all. The cases have those that can be compared.
func (g *generator) member() string { return pick(g, "k", "a.b", "c-d", "1", "#x") }

func isMap(attr string) bool { return attr == "m" || attr == "m2" }

func isCount(member string) bool { return member == "1" || member == "#x" }

func (g *generator) path() table.Path {
	a := g.attr()
	if isMap(a) && g.IntN(4) > 0 {
		return table.P(a, g.member())
	}
	return table.P(a)
}

func (g *generator) set() table.Set {
	all := table.Set{"a", "b", "c", "d.e"}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+g.IntN(3)]
}

func (g *generator) value(p table.Path) any {
	switch p.Attr {
	case "n":
		return g.Int64N(4)
	case "flag":
		return g.IntN(2) == 0
	case "set":
		return g.set()
	case "m", "m2":
		if p.Member == "" {
			return pick(g, table.Map{}, table.Map{"k": "v"}, table.Map{"1": int64(1), "c-d": table.Map{"in": "x"}})
		}
		if isCount(p.Member) {
			return g.Int64N(3)
		}
		return pick[any](g, "v", "", table.Map{"in": "y"}, []string{"z"})
	case "any":
		return pick[any](g, "", int64(-1), []byte{0, 255}, []string{}, []string{"x", "y"}, table.Map{}, table.Set{"z"}, true)
	}
	return pick(g, "", "x", "y", "x.y")
}

func (g *generator) cond(depth int) table.Cond {
	n := 8
	if depth > 2 {
		n = 6
	}
	p := g.path()
	if g.IntN(10) == 0 {
		p.Member = g.member() // conditions may look into what is no map
	}
	v := pick[any](g, "x", "v", int64(1), int64(2), "")
	switch g.IntN(n) {
	case 0:
		return table.Exists()
	case 1:
		return table.NotExists()
	case 2:
		return table.Has(p)
	case 3:
		return table.Lacks(p)
	case 4:
		return table.Equal(p, pick(g, v, any(true)))
	case 5:
		return pick(g, table.Less(p, v), table.Greater(p, v))
	}
	parts := make([]table.Cond, g.IntN(4))
	for i := range parts {
		parts[i] = g.cond(depth + 1)
	}
	return pick(g, table.All(parts...), table.Any(parts...))
}

func (g *generator) ops() []table.Op {
	n := 1
	if g.IntN(2) == 0 {
		n = 1 + g.IntN(4)
	}
	ops, seen := []table.Op{}, map[table.Key]bool{}
	for range n {
		op := g.op()
		if seen[op.Key] && g.IntN(10) > 0 {
			continue
		}
		seen[op.Key] = true
		ops = append(ops, op)
	}
	if len(ops) == 1 && ops[0].Kind == table.Update {
		ops[0].ReturnNew = g.IntN(2) == 0
	}
	return ops
}

func (g *generator) op() table.Op {
	op := table.Op{Key: g.key()}
	if g.IntN(3) == 0 {
		op.If = g.cond(0)
	}
	switch g.IntN(8) {
	case 0:
		op.Kind = table.Delete
	case 1:
		op.Kind, op.If = table.Check, g.cond(0)
	case 2, 3:
		op.Kind, op.Item = table.Put, table.Attrs{}
		for range g.IntN(5) {
			a := g.attr()
			op.Item[a] = g.value(table.P(a))
		}
		if g.IntN(3) == 0 {
			op.Item["activePk"], op.Item["activeSk"] = g.pk(), g.sk()
		}
	default:
		op.Kind = table.Update
		g.changes(&op)
	}
	return op
}

func (g *generator) changes(op *table.Op) {
	taken := map[string]bool{}
	free := func(p table.Path) bool {
		if taken[p.Attr] && g.IntN(20) > 0 {
			return false
		}
		taken[p.Attr] = p.Member == "" || g.IntN(2) == 0
		return true
	}
	for range 1 + g.IntN(4) {
		p := g.path()
		if !free(p) {
			continue
		}
		switch g.IntN(5) {
		case 0, 1:
			op.Set = append(op.Set, table.SetOp{Path: p, Value: g.value(p)})
		case 2:
			op.Remove = append(op.Remove, p)
		case 3:
			if p.Attr != "n" && !isCount(p.Member) && (p.Member != "" || isMap(p.Attr) || g.IntN(10) > 0) {
				p = table.P("n")
				if !free(p) {
					continue
				}
			}
			op.Add = append(op.Add, table.AddOp{Path: p, N: g.Int64N(5) - 2})
		case 4:
			if g.IntN(10) > 0 {
				if p = table.P("set"); !free(p) {
					continue
				}
			} else if p.Member != "" || isMap(p.Attr) { // where there is none it would become a set
				continue
			}
			m := table.MemberOp{Attr: p.Attr, Members: g.set()}
			if g.IntN(2) == 0 {
				op.AddTo = append(op.AddTo, m)
			} else {
				op.TakeFrom = append(op.TakeFrom, m)
			}
		}
	}
	if g.IntN(6) == 0 {
		op.Set = append(op.Set, table.SetOp{Path: table.P("activePk"), Value: g.pk()}, table.SetOp{Path: table.P("activeSk"), Value: g.sk()})
	} else if g.IntN(6) == 0 {
		op.Remove = append(op.Remove, table.P("activeSk"))
	}
}

func (g *generator) query() table.Query {
	return table.Query{
		Table: pick(g, table.Sessions, table.Runs), PK: g.pk(), Limit: g.IntN(4), Desc: g.IntN(2) == 0,
		From: pick(g, "", "a", "aa", "b", "é"), To: pick(g, "", "a", "b", "b\x00", "z"),
	}
}

func (g *generator) indexQuery() table.IndexQuery {
	q := g.query()
	return table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: q.PK, From: q.From, To: q.To, Limit: q.Limit, Desc: q.Desc}
}
