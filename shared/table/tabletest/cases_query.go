package tabletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"laneway/shared/table"
)

// pages follows the cursors of a query and returns the sort keys of every page.
func (b *bench) pages(q table.Query) [][]string {
	b.Helper()
	var pages [][]string
	for range 1000 {
		p, err := b.s.Query(b.ctx(), q)
		if err != nil {
			b.Fatalf("Query: %v", err)
		}
		var sks []string
		for _, it := range p.Items {
			if it.Key.Table != q.Table || it.Key.PK != q.PK {
				b.Errorf("item of another partition: %v", it.Key)
			}
			sks = append(sks, it.Key.SK)
		}
		pages = append(pages, sks)
		if p.Next == "" {
			return pages
		}
		q.After = p.Next
	}
	b.Fatal("the cursor never ends")
	return nil
}

func queryCases() []testCase {
	fill := func(b *bench, sks ...string) table.Query {
		for _, sk := range sks {
			b.put(sk, table.Attrs{"name": sk})
		}
		for _, beside := range []string{"o", "p\x00", "p0", "pp"} {
			b.write(table.Op{Kind: table.Put, Key: table.Key{Table: table.Sessions, PK: b.pk(beside), SK: "c"}})
		}
		return table.Query{Table: table.Sessions, PK: b.pk("p")}
	}
	return []testCase{
		{"a query of an empty partition has no items and no cursor", func(b *bench) {
			p, err := b.s.Query(b.ctx(), table.Query{Table: table.Sessions, PK: b.pk("none")})
			if err != nil || len(p.Items) != 0 || p.Next != "" {
				b.Errorf("got %v, %q, %v", p.Items, p.Next, err)
			}
		}},
		{"a query is in the order of the sort key's bytes", func(b *bench) {
			want := []string{"\x00", "0", "1", "10", "9", "A", "Z", "a", "a\x00", "a\x00b", "a!", "aa", "é", "\uffff", "😀"}
			q := fill(b, want...)
			if got := slices.Concat(b.pages(q)...); !slices.Equal(got, want) {
				b.Errorf("got %q", got)
			}
			q.Desc = true
			slices.Reverse(want)
			if got := slices.Concat(b.pages(q)...); !slices.Equal(got, want) {
				b.Errorf("backwards: got %q", got)
			}
		}},
		{"bounds: From is in, To is out, with every limit, both ways", func(b *bench) {
			all := []string{"a", "b", "b0", "c", "d", "e"}
			q := fill(b, all...)
			for _, from := range []string{"", "0", "a", "b", "bb", "e", "z"} {
				for _, to := range []string{"", "a", "b", "c", "cc", "e", "z"} {
					var want []string
					for _, sk := range all {
						if within(sk, from, to) {
							want = append(want, sk)
						}
					}
					for _, limit := range []int{0, 1, 2, 4} {
						q := q
						q.From, q.To, q.Limit = from, to, limit
						b.expectPages(q, want)
						q.Desc = true
						back := slices.Clone(want)
						slices.Reverse(back)
						b.expectPages(q, back)
					}
				}
			}
		}},
		{"a page ends at 1 MB and the cursor goes on behind it", func(b *bench) {
			var want []string
			for i := range 9 {
				sk := fmt.Sprintf("%02d", i)
				b.put(sk, table.Attrs{"v": strings.Repeat("x", 300<<10)})
				want = append(want, sk)
			}
			pages := b.pages(table.Query{Table: table.Sessions, PK: b.pk("p")})
			if got := slices.Concat(pages...); !slices.Equal(got, want) {
				b.Errorf("got %q", got)
			}
			for _, p := range pages {
				if len(p) > 4 {
					b.Errorf("a page of %d items of 300 KB", len(p))
				}
			}
			pages = b.pages(table.Query{Table: table.Sessions, PK: b.pk("p"), Desc: true})
			slices.Reverse(want)
			if got := slices.Concat(pages...); !slices.Equal(got, want) {
				b.Errorf("backwards: got %q", got)
			}
		}},
		{"a cursor holds while items come and go", func(b *bench) {
			q := fill(b, "a", "c", "e")
			q.Limit = 2
			p, err := b.s.Query(b.ctx(), q)
			if err != nil || len(p.Items) != 2 || p.Next == "" {
				b.Fatalf("first page: %v, %q, %v", p.Items, p.Next, err)
			}
			b.write(table.Op{Kind: table.Delete, Key: b.key("c")}, table.Op{Kind: table.Put, Key: b.key("b")}, table.Op{Kind: table.Put, Key: b.key("d")})
			q.After = p.Next
			if got := slices.Concat(b.pages(q)...); !slices.Equal(got, []string{"d", "e"}) {
				b.Errorf("got %q", got)
			}
		}},
		{"a cursor that is none, or of another range, is refused", func(b *bench) {
			q := fill(b, "a", "b", "c")
			q.Limit = 1
			p, err := b.s.Query(b.ctx(), q)
			if err != nil {
				b.Fatal(err)
			}
			for _, bad := range []table.Query{{After: "nonsense"}, {After: "*"}, {After: p.Next, From: "b"}, {After: p.Next + p.Next}} {
				bad.Table, bad.PK = q.Table, q.PK
				if _, err := b.s.Query(b.ctx(), bad); !errors.Is(err, table.ErrInvalid) {
					b.Errorf("cursor %q from %q: got %v, want ErrInvalid", bad.After, bad.From, err)
				}
			}
		}},
		{"the newest items first", func(b *bench) {
			q := fill(b, "1", "2", "3", "META")
			q.To, q.Desc, q.Limit = "META", true, 2
			p, err := b.s.Query(b.ctx(), q)
			if err != nil || len(p.Items) != 2 || p.Items[0].Key.SK != "3" || p.Items[1].Attrs.Str("name") != "2" {
				b.Errorf("got %v, %v", p.Items, err)
			}
		}},
	}
}

// expectPages wants full pages, but for the last, and allows one empty page at the end.
func (b *bench) expectPages(q table.Query, want []string) {
	b.Helper()
	pages := b.pages(q)
	if got := slices.Concat(pages...); !slices.Equal(got, want) {
		b.Errorf("from %q to %q, limit %d, backwards %v: got %q, want %q", q.From, q.To, q.Limit, q.Desc, got, want)
	}
	for i, p := range pages {
		if q.Limit > 0 && (len(p) > q.Limit || len(p) < q.Limit && i < len(pages)-2) {
			b.Errorf("from %q to %q, limit %d: page %d has %d items", q.From, q.To, q.Limit, i, len(p))
		}
	}
}
