package tabletest

import (
	"errors"
	"strings"

	"laneway/shared/table"
)

func limitCases() []testCase {
	bad := "\xff"
	type row struct {
		name string
		ops  func(b *bench) []table.Op
		err  error
	}
	one := func(f func(k table.Key) table.Op) func(*bench) []table.Op {
		return func(b *bench) []table.Op { return []table.Op{f(b.key("x"))} }
	}
	put := func(a table.Attrs) func(*bench) []table.Op {
		return one(func(k table.Key) table.Op { return table.Op{Kind: table.Put, Key: k, Item: a} })
	}
	update := func(op table.Op) func(*bench) []table.Op {
		return one(func(k table.Key) table.Op { op.Kind, op.Key = table.Update, k; return op })
	}
	many := func(n int, each func(i int, k table.Key) table.Op) func(*bench) []table.Op {
		return func(b *bench) []table.Op {
			ops := make([]table.Op, n)
			for i, sk := range members(n) {
				ops[i] = each(i, b.key(sk))
			}
			return ops
		}
	}
	conds := func(n int) table.Cond {
		c := make([]table.Cond, n)
		for i := range c {
			c[i] = table.Exists()
		}
		return table.All(c...)
	}
	sized := func(k table.Key, size int) table.Attrs {
		it := table.Item{Key: k, Attrs: table.Attrs{"v": ""}}
		return table.Attrs{"v": strings.Repeat("x", size-it.Size())}
	}
	small := table.Key{Table: table.Sessions, PK: "p", SK: "s"}
	rows := []row{
		{"no ops", func(*bench) []table.Op { return nil }, table.ErrInvalid},
		{"no kind", one(func(k table.Key) table.Op { return table.Op{Key: k} }), table.ErrInvalid},
		{"an unknown table", one(func(k table.Key) table.Op { k.Table = "none"; return table.Op{Kind: table.Delete, Key: k} }), table.ErrInvalid},
		{"an empty partition key", one(func(k table.Key) table.Op { k.PK = ""; return table.Op{Kind: table.Delete, Key: k} }), table.ErrInvalid},
		{"an empty sort key", one(func(k table.Key) table.Op { k.SK = ""; return table.Op{Kind: table.Delete, Key: k} }), table.ErrInvalid},
		{"a partition key of 2049 bytes", one(func(k table.Key) table.Op {
			k.PK = strings.Repeat("x", 2049)
			return table.Op{Kind: table.Delete, Key: k}
		}), table.ErrInvalid},
		{"a sort key of 1025 bytes", one(func(k table.Key) table.Op {
			k.SK = strings.Repeat("x", 1025)
			return table.Op{Kind: table.Delete, Key: k}
		}), table.ErrInvalid},
		{"a key that is not UTF-8", one(func(k table.Key) table.Op { k.SK = bad; return table.Op{Kind: table.Delete, Key: k} }), table.ErrInvalid},
		{"the longest keys", one(func(k table.Key) table.Op {
			k.PK, k.SK = k.PK+strings.Repeat("x", 2048-len(k.PK)), strings.Repeat("y", 1024)
			return table.Op{Kind: table.Put, Key: k}
		}), nil},
		{"an item of 400 KB and a byte", one(func(k table.Key) table.Op {
			return table.Op{Kind: table.Put, Key: k, Item: sized(k, table.MaxItem+1)}
		}), table.ErrTooLarge},
		{"an item of 400 KB", one(func(k table.Key) table.Op {
			return table.Op{Kind: table.Put, Key: k, Item: sized(k, table.MaxItem)}
		}), nil},
		{"101 ops", many(101, func(_ int, k table.Key) table.Op { return table.Op{Kind: table.Put, Key: k} }), table.ErrTooLarge},
		{"100 ops", many(100, func(_ int, k table.Key) table.Op { return table.Op{Kind: table.Put, Key: k} }), nil},
		{"more than 4 MB", many(11, func(_ int, k table.Key) table.Op {
			return table.Op{Kind: table.Put, Key: k, Item: sized(k, table.MaxItem)}
		}), table.ErrTooLarge},
		{"an item twice", func(b *bench) []table.Op {
			return []table.Op{{Kind: table.Put, Key: b.key("x")}, {Kind: table.Check, Key: b.key("x"), If: table.Exists()}}
		}, table.ErrInvalid},
		{"a put with changes", one(func(k table.Key) table.Op {
			return table.Op{Kind: table.Put, Key: k, Set: set(table.P("a"), "1")}
		}), table.ErrInvalid},
		{"an update with an item", update(table.Op{Item: table.Attrs{"a": "1"}, Set: set(table.P("a"), "1")}), table.ErrInvalid},
		{"an update that changes nothing", update(table.Op{If: table.Exists()}), table.ErrInvalid},
		{"a check without a condition", one(func(k table.Key) table.Op { return table.Op{Kind: table.Check, Key: k} }), table.ErrInvalid},
		{"ReturnNew of a put", one(func(k table.Key) table.Op { return table.Op{Kind: table.Put, Key: k, ReturnNew: true} }), table.ErrInvalid},
		{"ReturnNew in a transaction", many(2, func(_ int, k table.Key) table.Op {
			return table.Op{Kind: table.Update, Key: k, Set: set(table.P("a"), "1"), ReturnNew: true}
		}), table.ErrInvalid},
		{"one path twice", update(table.Op{Set: set(table.P("a"), "1"), Remove: []table.Path{table.P("a")}}), table.ErrInvalid},
		{"a map and its member", update(table.Op{Set: set(table.P("m"), table.Map{}), Add: []table.AddOp{{Path: table.P("m", "k"), N: 1}}}), table.ErrInvalid},
		{"a member and its map", update(table.Op{Set: set(table.P("m", "k"), "1"), Remove: []table.Path{table.P("m")}}), table.ErrInvalid},
		{"101 paths", update(table.Op{Remove: manyPaths(101)}), table.ErrTooLarge},
		{"100 paths", update(table.Op{Remove: manyPaths(100)}), nil},
		{"a condition of 61 parts", one(func(k table.Key) table.Op { return table.Op{Kind: table.Check, Key: k, If: conds(60)} }), table.ErrTooLarge},
		{"a condition of 60 parts", one(func(k table.Key) table.Op {
			return table.Op{Kind: table.Put, Key: k, If: table.Any(table.NotExists(), conds(57))}
		}), nil},
		{"a nil condition inside another", one(func(k table.Key) table.Op { return table.Op{Kind: table.Delete, Key: k, If: table.All(nil)} }), table.ErrInvalid},
		{"a comparison with a set", one(func(k table.Key) table.Op {
			return table.Op{Kind: table.Delete, Key: k, If: table.Equal(table.P("a"), table.Set{"a"})}
		}), table.ErrInvalid},
		{"a bool that is less", one(func(k table.Key) table.Op {
			return table.Op{Kind: table.Delete, Key: k, If: table.Less(table.P("a"), true)}
		}), table.ErrInvalid},
		{"an empty set", put(table.Attrs{"a": table.Set{}}), table.ErrInvalid},
		{"a set with an empty member", put(table.Attrs{"a": table.Set{""}}), table.ErrInvalid},
		{"a set with a member twice", put(table.Attrs{"a": table.Set{"a", "b", "a"}}), table.ErrInvalid},
		{"no member to add", update(table.Op{AddTo: []table.MemberOp{{Attr: "a"}}}), table.ErrInvalid},
		{"an int that is no int64", put(table.Attrs{"a": 1}), table.ErrInvalid},
		{"a float", put(table.Attrs{"a": 1.5}), table.ErrInvalid},
		{"nil", put(table.Attrs{"a": nil}), table.ErrInvalid},
		{"a Go map", put(table.Attrs{"a": map[string]any{}}), table.ErrInvalid},
		{"an unknown kind deep inside", put(table.Attrs{"a": table.Map{"b": table.Map{"c": 1}}}), table.ErrInvalid},
		{"a string that is not UTF-8", put(table.Attrs{"a": bad}), table.ErrInvalid},
		{"a list that is not UTF-8", put(table.Attrs{"a": []string{bad}}), table.ErrInvalid},
		{"a name that is not UTF-8", put(table.Attrs{bad: "1"}), table.ErrInvalid},
		{"an empty name", put(table.Attrs{"": "1"}), table.ErrInvalid},
		{"an empty name in a map", put(table.Attrs{"a": table.Map{"": "1"}}), table.ErrInvalid},
		{"a map too deep", put(table.Attrs{"a": nested(table.MaxDepth + 1)}), table.ErrInvalid},
		{"a key part as an attribute", put(table.Attrs{"pk": "1"}), table.ErrInvalid},
		{"a key part in an update", update(table.Op{Remove: []table.Path{table.P("sk")}}), table.ErrInvalid},
		{"an empty index key", put(table.Attrs{"activePk": "", "activeSk": "1"}), table.ErrInvalid},
		{"an index key that is a number", put(table.Attrs{"activeSk": int64(1)}), table.ErrInvalid},
		{"an index key of 1025 bytes", update(table.Op{Set: set(table.P("recentSk"), strings.Repeat("x", 1025))}), table.ErrInvalid},
		{"a sum in an index key", update(table.Op{Add: []table.AddOp{{Path: table.P("activeSk"), N: 1}}}), table.ErrInvalid},
		{"an item that grows over 400 KB", func(b *bench) []table.Op {
			k := b.put("x", sized(small, 300<<10))
			return []table.Op{{Kind: table.Update, Key: k, Set: set(table.P("w"), strings.Repeat("x", 150<<10))}}
		}, table.ErrTooLarge},
	}
	var cases []testCase
	for _, r := range rows {
		name := "refused: "
		if r.err == nil {
			name = "taken: "
		}
		cases = append(cases, testCase{name + r.name, func(b *bench) {
			ops := r.ops(b)
			if r.err == nil {
				b.write(ops...)
				return
			}
			b.refused(r.err, ops...)
			if len(ops) > 1 {
				b.absent(ops[0].Key)
			}
		}})
	}
	return append(cases, testCase{"refused: reads with keys that no item has", func(b *bench) {
		for _, k := range []table.Key{{Table: "none", PK: "p", SK: "s"}, {Table: table.Runs, SK: "s"}, {Table: table.Runs, PK: "p"}, {Table: table.Runs, PK: bad, SK: "s"}} {
			if _, err := b.s.Get(b.ctx(), k); !errors.Is(err, table.ErrInvalid) {
				b.Errorf("Get %q: got %v, want ErrInvalid", k, err)
			}
		}
		for _, q := range []table.Query{{Table: "none", PK: "p"}, {Table: table.Runs}, {Table: table.Runs, PK: "p", Limit: -1}, {Table: table.Runs, PK: "p", From: bad}} {
			if _, err := b.s.Query(b.ctx(), q); !errors.Is(err, table.ErrInvalid) {
				b.Errorf("Query %+v: got %v, want ErrInvalid", q, err)
			}
		}
	}})
}

func manyPaths(n int) []table.Path {
	var ps []table.Path
	for _, m := range members(n) {
		ps = append(ps, table.P("m", m))
	}
	return ps
}
