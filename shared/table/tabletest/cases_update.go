package tabletest

import (
	"math"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/table"
)

func set(p table.Path, v any) []table.SetOp { return []table.SetOp{{Path: p, Value: v}} }

func updateCases() []testCase {
	up := func(k table.Key, op table.Op) table.Op {
		op.Kind, op.Key = table.Update, k
		return op
	}
	return []testCase{
		{"an update creates an absent item", func(b *bench) {
			b.write(up(b.key("x"), table.Op{Set: set(table.P("a"), "1")}))
			b.is(b.key("x"), table.Attrs{"a": "1"})
		}},
		{"an update leaves what it does not name", func(b *bench) {
			k := b.put("x", table.Attrs{"a": "1", "b": "2", "c": "3"})
			b.write(up(k, table.Op{Set: set(table.P("a"), int64(7)), Remove: []table.Path{table.P("b"), table.P("none")}}))
			b.is(k, table.Attrs{"a": int64(7), "c": "3"})
		}},
		{"an update that only removes leaves an absent item absent", func(b *bench) {
			only := table.Op{Remove: []table.Path{table.P("a"), table.P("m", "k")}, TakeFrom: []table.MemberOp{{Attr: "s", Members: table.Set{"x"}}}}
			b.write(up(b.key("x"), only))
			b.absent(b.key("x"))
			b.write(up(b.key("x"), only), table.Op{Kind: table.Put, Key: b.key("y"), Item: table.Attrs{"a": "1"}})
			b.absent(b.key("x"))
			b.is(b.key("y"), table.Attrs{"a": "1"})
			only.ReturnNew = true
			if r := b.write(up(b.key("x"), only)); r.New != nil {
				b.Errorf("New is %v, want none", r.New)
			}
			only.ReturnNew, only.If = false, table.Exists()
			b.failed(0, nil, up(b.key("x"), only))
		}},
		{"an absent number counts as 0", func(b *bench) {
			k := b.key("x")
			for range 3 {
				b.write(up(k, table.Op{Add: []table.AddOp{{Path: table.P("n"), N: 5}, {Path: table.P("m"), N: -1}}}))
			}
			b.is(k, table.Attrs{"n": int64(15), "m": int64(-3)})
		}},
		{"numbers are exact over all 64 bits", func(b *bench) {
			k := b.put("x", table.Attrs{"max": int64(math.MaxInt64 - 1), "min": int64(math.MinInt64 + 1)})
			b.write(up(k, table.Op{Add: []table.AddOp{{Path: table.P("max"), N: 1}, {Path: table.P("min"), N: -1}}}))
			b.is(k, table.Attrs{"max": int64(math.MaxInt64), "min": int64(math.MinInt64)})
		}},
		{"members go into and out of a set, and the last one takes the attribute with it", func(b *bench) {
			k := b.key("x")
			add := func(s ...string) { b.write(up(k, table.Op{AddTo: []table.MemberOp{{Attr: "s", Members: s}}})) }
			take := func(s ...string) { b.write(up(k, table.Op{TakeFrom: []table.MemberOp{{Attr: "s", Members: s}}})) }
			add("c", "a")
			add("b", "a")
			b.is(k, table.Attrs{"s": table.Set{"a", "b", "c"}})
			take("b", "none")
			b.is(k, table.Attrs{"s": table.Set{"a", "c"}})
			take("a", "c")
			b.is(k, table.Attrs{})
			take("a")
			b.is(k, table.Attrs{})
			add("z")
			b.is(k, table.Attrs{"s": table.Set{"z"}})
		}},
		{"one update uses all five lists", func(b *bench) {
			k := b.put("x", table.Attrs{"n": int64(1), "in": table.Set{"a"}, "out": table.Set{"a", "b"}, "gone": "1", "m": table.Map{"k": "v"}})
			b.write(up(k, table.Op{
				Set: []table.SetOp{{Path: table.P("s"), Value: "new"}, {Path: table.P("m", "l"), Value: "w"}}, Add: []table.AddOp{{Path: table.P("n"), N: 1}},
				AddTo: []table.MemberOp{{Attr: "in", Members: table.Set{"b"}}}, TakeFrom: []table.MemberOp{{Attr: "out", Members: table.Set{"a"}}},
				Remove: []table.Path{table.P("gone"), table.P("m", "k")}, If: table.All(table.Exists(), table.Equal(table.P("n"), int64(1))),
			}))
			b.is(k, table.Attrs{"n": int64(2), "in": table.Set{"a", "b"}, "out": table.Set{"b"}, "s": "new", "m": table.Map{"l": "w"}})
		}},
		{"ReturnNew gives the item after the update", func(b *bench) {
			k := b.put("x", table.Attrs{"n": int64(1), "a": "1"})
			r := b.write(up(k, table.Op{Add: []table.AddOp{{Path: table.P("n"), N: 1}}, ReturnNew: true}))
			if d := cmp.Diff(&table.Item{Key: k, Attrs: table.Attrs{"n": int64(2), "a": "1"}}, r.New); d != "" {
				b.Errorf("New (-want +got):\n%s", d)
			}
			if r := b.write(up(k, table.Op{Remove: []table.Path{table.P("a")}})); r.New != nil {
				b.Errorf("New is %v though not asked for", r.New)
			}
		}},
		{"an update of the wrong kind is refused and changes nothing", func(b *bench) {
			a := table.Attrs{"s": "text", "n": int64(1), "set": table.Set{"a"}}
			k := b.put("x", a)
			b.refused(table.ErrInvalid, up(k, table.Op{Add: []table.AddOp{{Path: table.P("s"), N: 1}}}))
			b.refused(table.ErrInvalid, up(k, table.Op{AddTo: []table.MemberOp{{Attr: "n", Members: table.Set{"a"}}}}))
			b.refused(table.ErrInvalid, up(k, table.Op{TakeFrom: []table.MemberOp{{Attr: "s", Members: table.Set{"a"}}}}))
			b.refused(table.ErrInvalid, up(k, table.Op{Set: set(table.P("s", "k"), "v")}))
			b.refused(table.ErrInvalid, table.Op{Kind: table.Put, Key: b.key("y")}, up(k, table.Op{Add: []table.AddOp{{Path: table.P("s"), N: 1}}}))
			b.is(k, a)
			b.absent(b.key("y"))
		}},
	}
}

// memberCases are about paths into a map, the names of its members above all.
func memberCases() []testCase {
	names := []string{"a", "a.b", "c-d", "0000000001", "#x", ":v", "with space", "é😀", "[0]", "SET", "nul\x00", "'\"`"}
	up := func(k table.Key, op table.Op) table.Op {
		op.Kind, op.Key = table.Update, k
		return op
	}
	return []testCase{
		{"any name can be a member's name", func(b *bench) {
			k := b.put("x", table.Attrs{"m": table.Map{}})
			want := table.Map{}
			for i, n := range names {
				b.write(up(k, table.Op{Set: set(table.P("m", n), int64(i)), If: table.Lacks(table.P("m", n))}))
				want[n] = int64(i)
			}
			b.is(k, table.Attrs{"m": want})
			for i, n := range names {
				b.write(up(k, table.Op{Add: []table.AddOp{{Path: table.P("m", n), N: 1}}, If: table.Equal(table.P("m", n), int64(i))}))
				b.failed(0, nil, up(b.key("none"), table.Op{Set: set(table.P("a"), "1"), If: table.Has(table.P("m", n))}))
			}
			for _, n := range names {
				b.write(up(k, table.Op{Remove: []table.Path{table.P("m", n)}, If: table.Has(table.P("m", n))}))
			}
			b.is(k, table.Attrs{"m": table.Map{}})
		}},
		{"any name can be an attribute's name", func(b *bench) {
			k, want := b.key("x"), table.Attrs{}
			for i, n := range names {
				b.write(up(k, table.Op{Set: set(table.P(n), int64(i)), If: table.Lacks(table.P(n))}))
				want[n] = int64(i)
			}
			b.is(k, want)
		}},
		{"setting a member makes the map where it is absent", func(b *bench) {
			k := b.key("x")
			b.write(up(k, table.Op{Set: set(table.P("m", "a.b"), "1")}))
			b.is(k, table.Attrs{"m": table.Map{"a.b": "1"}})
			k = b.put("y", table.Attrs{"other": "1"})
			b.write(up(k, table.Op{Set: []table.SetOp{{Path: table.P("m", "a"), Value: "1"}, {Path: table.P("m", "b"), Value: table.Map{"in": "2"}}, {Path: table.P("m2", "c"), Value: int64(3)}}, Add: []table.AddOp{{Path: table.P("m", "n"), N: 4}}}))
			b.is(k, table.Attrs{"other": "1", "m": table.Map{"a": "1", "b": table.Map{"in": "2"}, "n": int64(4)}, "m2": table.Map{"c": int64(3)}})
		}},
		{"it does so in a transaction, with one map there and another absent", func(b *bench) {
			k := b.put("x", table.Attrs{"there": table.Map{"a": "1"}})
			b.write(
				table.Op{Kind: table.Put, Key: b.key("row"), Item: table.Attrs{"a": "1"}, If: table.NotExists()},
				up(k, table.Op{Set: []table.SetOp{{Path: table.P("there", "b"), Value: "2"}, {Path: table.P("m", "k"), Value: "v"}}, If: table.Exists()}),
				up(b.key("z"), table.Op{Set: set(table.P("m", "k"), "v")}),
			)
			b.is(k, table.Attrs{"there": table.Map{"a": "1", "b": "2"}, "m": table.Map{"k": "v"}})
			b.is(b.key("z"), table.Attrs{"m": table.Map{"k": "v"}})
			b.is(b.key("row"), table.Attrs{"a": "1"})
		}},
		{"where the map is absent a failed condition still wins", func(b *bench) {
			k := b.put("x", table.Attrs{"a": "1"})
			op := up(k, table.Op{Set: set(table.P("m", "k"), "v"), If: table.Equal(table.P("a"), "2")})
			b.failed(0, table.Attrs{"a": "1"}, op)
			b.failed(1, table.Attrs{"a": "1"}, table.Op{Kind: table.Put, Key: b.key("y")}, op)
			op.If = nil
			b.failed(1, nil, op, table.Op{Kind: table.Check, Key: b.key("z"), If: table.Exists()})
			b.is(k, table.Attrs{"a": "1"})
			b.absent(b.key("y"))
		}},
		{"removing a member of an absent map changes nothing", func(b *bench) {
			k := b.put("x", table.Attrs{"a": "1"})
			b.write(up(k, table.Op{Remove: []table.Path{table.P("m", "k")}}))
			b.is(k, table.Attrs{"a": "1"})
			b.write(up(k, table.Op{Remove: []table.Path{table.P("m", "k")}, Set: set(table.P("a"), "2")}))
			b.is(k, table.Attrs{"a": "2"})
		}},
		{"a nil map is written as an empty one", func(b *bench) {
			k := b.key("x")
			b.write(up(k, table.Op{Set: set(table.P("m"), table.Map(nil))}))
			b.is(k, table.Attrs{"m": table.Map{}})
			b.write(up(k, table.Op{Set: set(table.P("m", "k"), "v")}))
			b.is(k, table.Attrs{"m": table.Map{"k": "v"}})
		}},
		{"setting a whole map replaces it", func(b *bench) {
			k := b.put("x", table.Attrs{"m": table.Map{"a": "1"}})
			b.write(up(k, table.Op{Set: set(table.P("m"), table.Map{"b": "2"})}))
			b.is(k, table.Attrs{"m": table.Map{"b": "2"}})
		}},
	}
}
