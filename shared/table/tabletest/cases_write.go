package tabletest

import (
	"context"
	"errors"

	"laneway/shared/table"
)

func writeCases() []testCase {
	return []testCase{
		{"a write that returned is seen by Get and Query", func(b *bench) {
			for i := range int64(20) {
				k := b.put("x", table.Attrs{"n": i})
				b.is(k, table.Attrs{"n": i})
				p, err := b.s.Query(b.ctx(), table.Query{Table: k.Table, PK: k.PK})
				if err != nil || len(p.Items) != 1 || p.Items[0].Attrs.Int("n") != i {
					b.Fatalf("Query after write %d: %v, %v", i, p.Items, err)
				}
			}
		}},
		{"Get of an absent item is ErrNotFound", func(b *bench) { b.absent(b.key("x")) }},
		{"a put replaces the whole item", func(b *bench) {
			b.put("x", table.Attrs{"a": "1", "b": "2"})
			b.is(b.put("x", table.Attrs{"b": "3"}), table.Attrs{"b": "3"})
		}},
		{"an item without attributes is not an absent one", func(b *bench) {
			b.is(b.put("x", nil), table.Attrs{})
		}},
		{"deleting removes, and deleting an absent item succeeds", func(b *bench) {
			k := b.put("x", table.Attrs{"a": "1"})
			for range 2 {
				b.write(table.Op{Kind: table.Delete, Key: k})
				b.absent(k)
			}
		}},
		{"items of equal sort keys in other partitions and tables are others", func(b *bench) {
			k := b.put("x", table.Attrs{"a": "1"})
			other, elsewhere := k, k
			other.PK, elsewhere.Table = b.pk("q"), table.Runs
			b.write(table.Op{Kind: table.Put, Key: other, Item: table.Attrs{"a": "2"}}, table.Op{Kind: table.Put, Key: elsewhere, Item: table.Attrs{"a": "3"}})
			b.is(k, table.Attrs{"a": "1"})
			b.is(other, table.Attrs{"a": "2"})
			b.is(elsewhere, table.Attrs{"a": "3"})
		}},
		{"a transaction does all ops", func(b *bench) {
			gone, checked := b.put("gone", table.Attrs{"a": "1"}), b.put("checked", table.Attrs{"a": "1"})
			b.write(
				table.Op{Kind: table.Put, Key: b.key("new"), Item: table.Attrs{"a": "2"}, If: table.NotExists()},
				table.Op{Kind: table.Update, Key: b.key("up"), Add: []table.AddOp{{Path: table.P("n"), N: 2}}},
				table.Op{Kind: table.Delete, Key: gone, If: table.Exists()},
				table.Op{Kind: table.Check, Key: checked, If: table.Equal(table.P("a"), "1")},
			)
			b.is(b.key("new"), table.Attrs{"a": "2"})
			b.is(b.key("up"), table.Attrs{"n": int64(2)})
			b.absent(gone)
			b.is(checked, table.Attrs{"a": "1"})
		}},
		{"a transaction with a failed condition does nothing, and says which op and what was there", func(b *bench) {
			k := b.put("there", table.Attrs{"owner": "me", "n": int64(4)})
			b.failed(2, table.Attrs{"owner": "me", "n": int64(4)},
				table.Op{Kind: table.Put, Key: b.key("new"), Item: table.Attrs{"a": "1"}},
				table.Op{Kind: table.Delete, Key: b.key("none")},
				table.Op{Kind: table.Update, Key: k, Set: []table.SetOp{{Path: table.P("n"), Value: int64(5)}}, If: table.Equal(table.P("owner"), "you")},
			)
			b.absent(b.key("new"))
			b.is(k, table.Attrs{"owner": "me", "n": int64(4)})
		}},
		{"a failed condition over an absent item finds none", func(b *bench) {
			b.failed(0, nil, table.Op{Kind: table.Put, Key: b.key("x"), If: table.Exists()})
			b.failed(0, nil, table.Op{Kind: table.Delete, Key: b.key("x"), If: table.Exists()})
			b.failed(0, nil, table.Op{Kind: table.Check, Key: b.key("x"), If: table.Exists()})
			b.failed(1, nil, table.Op{Kind: table.Put, Key: b.key("y")}, table.Op{Kind: table.Check, Key: b.key("x"), If: table.Exists()})
			b.absent(b.key("x"))
			b.absent(b.key("y"))
		}},
		{"of several failed conditions the first is told", func(b *bench) {
			k := b.put("x", table.Attrs{"a": "1"})
			b.failed(0, table.Attrs{"a": "1"},
				table.Op{Kind: table.Check, Key: k, If: table.NotExists()},
				table.Op{Kind: table.Check, Key: b.key("y"), If: table.Exists()})
		}},
		{"every single op tells what its failed condition found", func(b *bench) {
			k, a := b.put("x", table.Attrs{"a": "1"}), table.Attrs{"a": "1"}
			b.failed(0, a, table.Op{Kind: table.Put, Key: k, If: table.NotExists()})
			b.failed(0, a, table.Op{Kind: table.Update, Key: k, Remove: []table.Path{table.P("a")}, If: table.NotExists()})
			b.failed(0, a, table.Op{Kind: table.Delete, Key: k, If: table.NotExists()})
			b.failed(0, a, table.Op{Kind: table.Check, Key: k, If: table.NotExists()})
			b.is(k, a)
		}},
		{"a check alone passes and changes nothing", func(b *bench) {
			k := b.put("x", table.Attrs{"a": "1"})
			b.write(table.Op{Kind: table.Check, Key: k, If: table.Exists()})
			b.write(table.Op{Kind: table.Check, Key: b.key("y"), If: table.NotExists()})
			b.is(k, table.Attrs{"a": "1"})
			b.absent(b.key("y"))
		}},
		{"a write sent again under its own condition fails instead of doubling", func(b *bench) {
			op := table.Op{Kind: table.Put, Key: b.key("x"), Item: table.Attrs{"id": "w1"}, If: table.NotExists()}
			b.write(op)
			b.failed(0, table.Attrs{"id": "w1"}, op)
		}},
		{"nothing is written once the context has ended", func(b *bench) {
			ctx, cancel := context.WithCancel(b.ctx())
			cancel()
			if _, err := b.s.Write(ctx, table.Op{Kind: table.Put, Key: b.key("x")}); !errors.Is(err, context.Canceled) {
				b.Errorf("Write: got %v, want context.Canceled", err)
			}
			if _, err := b.s.Get(ctx, b.key("x")); !errors.Is(err, context.Canceled) {
				b.Errorf("Get: got %v, want context.Canceled", err)
			}
			b.absent(b.key("x"))
		}},
		{"what a caller does with its values afterwards changes nothing", func(b *bench) {
			v := table.Attrs{"b": []byte("abc"), "m": table.Map{"k": "v"}}
			k := b.put("x", v)
			v["b"].([]byte)[0], v["m"].(table.Map)["k"] = 'z', "w"
			want := table.Attrs{"b": []byte("abc"), "m": table.Map{"k": "v"}}
			b.is(k, want)
			it, err := b.s.Get(b.ctx(), k)
			if err != nil {
				b.Fatal(err)
			}
			it.Attrs.Bytes("b")[0], it.Attrs.MapOf("m")["k"] = 'y', "u"
			b.is(k, want)
		}},
	}
}
