package tabletest

import (
	"errors"
	"fmt"
	"slices"

	"laneway/shared/table"
)

// entries follows an index query's cursors and returns "index sk/sk" of every entry.
func (b *bench) entries(q table.IndexQuery) []string {
	b.Helper()
	var got []string
	for range 1000 {
		p, err := b.s.Index(b.ctx(), q)
		if err != nil {
			b.Fatalf("Index: %v", err)
		}
		if q.Limit > 0 && len(p.Keys) > q.Limit {
			b.Fatalf("Index: %d keys in a page, limit %d", len(p.Keys), q.Limit)
		}
		for _, k := range p.Keys {
			got = append(got, k.SK+"/"+k.Key.SK)
		}
		if p.Next == "" {
			return got
		}
		q.After = p.Next
	}
	b.Fatal("the cursor never ends")
	return nil
}

func (b *bench) shows(q table.IndexQuery, want ...string) {
	b.Helper()
	b.eventually(fmt.Sprintf("index %s from %q to %q with %q", q.Index, q.From, q.To, want), func() bool {
		return slices.Equal(b.entries(q), want)
	})
}

func indexCases() []testCase {
	active := func(b *bench) table.IndexQuery {
		return table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: b.pk("A")}
	}
	in := func(b *bench, sk string) table.Attrs {
		return table.Attrs{"activePk": b.pk("A"), "activeSk": sk, "x": "1"}
	}
	return []testCase{
		{"an item is in an index while it has both of its attributes", func(b *bench) {
			q, k := active(b), b.put("x", table.Attrs{"a": "1"})
			b.shows(q)
			b.write(table.Op{Kind: table.Update, Key: k, Set: set(table.P("activePk"), b.pk("A"))})
			b.shows(q)
			b.write(table.Op{Kind: table.Update, Key: k, Set: set(table.P("activeSk"), "5")})
			b.shows(q, "5/x")
			b.write(table.Op{Kind: table.Update, Key: k, Set: set(table.P("activeSk"), "7")})
			b.shows(q, "7/x")
			b.write(table.Op{Kind: table.Update, Key: k, Remove: []table.Path{table.P("activeSk")}})
			b.shows(q)
			b.put("x", in(b, "8"))
			b.shows(q, "8/x")
			b.put("x", table.Attrs{"a": "1"})
			b.shows(q)
			b.put("x", in(b, "9"))
			b.shows(q, "9/x")
			b.write(table.Op{Kind: table.Delete, Key: k})
			b.shows(q)
		}},
		{"an index entry names its item", func(b *bench) {
			k, q := b.put("x", in(b, "5")), active(b)
			b.shows(q, "5/x")
			p, err := b.s.Index(b.ctx(), q)
			if err != nil || len(p.Keys) != 1 || p.Keys[0] != (table.IndexKey{Key: k, SK: "5"}) {
				b.Errorf("got %v, %v", p.Keys, err)
			}
		}},
		{"an item moves to another partition of an index", func(b *bench) {
			k, q, other := b.put("x", in(b, "5")), active(b), active(b)
			other.PK = b.pk("B")
			b.shows(q, "5/x")
			b.write(table.Op{Kind: table.Update, Key: k, Set: set(table.P("activePk"), other.PK)})
			b.shows(q)
			b.shows(other, "5/x")
		}},
		{"the indexes of a table are apart", func(b *bench) {
			b.put("x", table.Attrs{"recentPk": b.pk("A"), "recentSk": "1"})
			q := active(b)
			q.Index = table.IndexRecent
			b.shows(q, "1/x")
			b.shows(active(b))
		}},
		{"index bounds and limits, both ways", func(b *bench) {
			var all []string
			for _, sk := range []string{"1", "2", "2\x00", "2x", "3", "é"} {
				b.put("i"+sk, in(b, sk))
				all = append(all, sk+"/i"+sk)
			}
			b.shows(active(b), all...)
			for _, from := range []string{"", "1", "2", "2y", "z"} {
				for _, to := range []string{"", "1", "2", "3", "z"} {
					var want []string
					for i, sk := range []string{"1", "2", "2\x00", "2x", "3", "é"} {
						if within(sk, from, to) {
							want = append(want, all[i])
						}
					}
					for _, limit := range []int{0, 1, 2} {
						q := active(b)
						q.From, q.To, q.Limit = from, to, limit
						b.shows(q, want...)
						q.Desc = true
						back := slices.Clone(want)
						slices.Reverse(back)
						b.shows(q, back...)
					}
				}
			}
		}},
		{"items with one index key are all there, page by page", func(b *bench) {
			for i := range 7 {
				b.put(fmt.Sprintf("i%d", i), in(b, "same"))
			}
			b.put("z", in(b, "zz"))
			for _, desc := range []bool{false, true} {
				q := active(b)
				q.From, q.To, q.Limit, q.Desc = "same", "zz", 2, desc
				b.eventually("seven entries of one index key", func() bool {
					got := b.entries(q)
					slices.Sort(got)
					return slices.Equal(got, []string{"same/i0", "same/i1", "same/i2", "same/i3", "same/i4", "same/i5", "same/i6"})
				})
			}
		}},
		{"a question to an index that is none is refused", func(b *bench) {
			for _, q := range []table.IndexQuery{
				{Table: table.Sessions, Index: "none", PK: "p"},
				{Table: table.Runs, Index: table.IndexActive, PK: "p"},
				{Table: "none", Index: table.IndexActive, PK: "p"},
				{Table: table.Sessions, Index: table.IndexActive},
				{Table: table.Sessions, Index: table.IndexActive, PK: "p", After: "x"},
				{Table: table.Sessions, Index: table.IndexActive, PK: "p", Limit: -1},
			} {
				if _, err := b.s.Index(b.ctx(), q); !errors.Is(err, table.ErrInvalid) {
					b.Errorf("%+v: got %v, want ErrInvalid", q, err)
				}
			}
		}},
	}
}
