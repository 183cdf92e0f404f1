package table_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/table"
)

// Sizes as DynamoDB's documentation counts them.
func TestSizes(t *testing.T) {
	t.Parallel()
	empty := table.Item{Key: table.Key{Table: table.Runs, PK: "abc", SK: "é"}}
	base := len("pk") + 3 + len("sk") + 2
	if got := empty.Size(); got != base {
		t.Errorf("empty item: %d, want %d", got, base)
	}
	for _, r := range []struct {
		v    any
		want int
	}{
		{"", 0},
		{"héllo", 6},
		{true, 1},
		{[]byte{1, 2, 3}, 3},
		{int64(0), 1},
		{int64(7), 2},
		{int64(12), 2},
		{int64(123), 3},
		{int64(-123), 4},
		{int64(math.MinInt64), 2 + 10},
		{table.Set{"a", "bc"}, 3},
		{[]string{"a", "bc"}, 3 + 2 + 3},
		{table.Map{}, 3},
		{table.Map{"key": "val"}, 3 + 3 + 3 + 1},
		{table.Map{"m": table.Map{"k": true}}, 3 + 1 + (3 + 1 + 1 + 1) + 1},
	} {
		it := table.Item{Key: empty.Key, Attrs: table.Attrs{"name": r.v}}
		if got := it.Size() - base - len("name"); got != r.want {
			t.Errorf("%T %v: %d, want %d", r.v, r.v, got, r.want)
		}
	}
	if got := (*table.Item)(nil).Size(); got != 0 {
		t.Errorf("absent item: %d", got)
	}
}

func TestWriteUnits(t *testing.T) {
	t.Parallel()
	k := table.Key{Table: table.Sessions, PK: "p", SK: "s"}
	of := func(bytes int, a table.Attrs) *table.Item {
		it := &table.Item{Key: k, Attrs: table.Attrs{"v": strings.Repeat("x", bytes)}}
		maps.Copy(it.Attrs, a)
		return it
	}
	in, moved := table.Attrs{"activePk": "A", "activeSk": "1"}, table.Attrs{"activePk": "A", "activeSk": "2"}
	same := of(10, in)
	for _, r := range []struct {
		name          string
		before, after *table.Item
		transaction   bool
		want          float64
	}{
		{"new small item", nil, of(10, nil), false, 1},
		{"new item of 3 KB", nil, of(2500, nil), false, 3},
		{"shrinking costs the old size", of(2500, nil), of(10, nil), false, 3},
		{"deleting", of(1500, nil), nil, false, 2},
		{"deleting nothing", nil, nil, false, 1},
		{"in a transaction", nil, of(1500, nil), true, 4},
		{"into an index", of(10, nil), of(10, in), false, 2},
		{"within an index", of(10, in), of(10, moved), false, 3},
		{"out of an index", of(10, in), of(10, nil), false, 2},
		{"staying where it is in the index", of(10, in), of(20, in), false, 1},
		{"index entries cost no more in a transaction", of(10, nil), of(10, in), true, 3},
		{"deleted out of an index", of(10, in), nil, false, 2},
		{"checked", same, same, true, 2},
	} {
		if got := table.WriteUnits(r.before, r.after, r.transaction); got != r.want {
			t.Errorf("%s: %v, want %v", r.name, got, r.want)
		}
	}
	for bytes, want := range map[int]float64{0: 1, 1: 1, 4096: 1, 4097: 2, 1 << 20: 256} {
		if got := table.ReadUnits(bytes); got != want {
			t.Errorf("reading %d bytes: %v, want %v", bytes, got, want)
		}
	}
}

func TestApplyLeavesTheItemBeforeAlone(t *testing.T) {
	t.Parallel()
	fresh := func() *table.Item {
		return &table.Item{Key: table.Key{Table: table.Runs, PK: "p", SK: "s"}, Attrs: table.Attrs{
			"m": table.Map{"a": "1", "b": "2"}, "s": table.Set{"a", "b"}, "n": int64(1),
		}}
	}
	before := fresh()
	op := &table.Op{
		Kind: table.Update, Key: before.Key,
		Set: []table.SetOp{{Path: table.P("m", "c"), Value: "3"}}, Add: []table.AddOp{{Path: table.P("n"), N: 1}},
		TakeFrom: []table.MemberOp{{Attr: "s", Members: table.Set{"a"}}}, Remove: []table.Path{table.P("m", "a")},
	}
	after, err := table.Apply(op, before)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fresh(), before); d != "" {
		t.Errorf("before has changed:\n%s", d)
	}
	want := table.Attrs{"m": table.Map{"b": "2", "c": "3"}, "s": table.Set{"b"}, "n": int64(2)}
	if d := cmp.Diff(want, after.Attrs); d != "" {
		t.Errorf("after (-want +got):\n%s", d)
	}
}

// What AWS refuses and emulators may let through is said here, for all who use Apply.
func TestApplyRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	before := &table.Item{Key: table.Key{Table: table.Runs, PK: "p", SK: "s"}, Attrs: table.Attrs{
		"n": int64(1), "max": int64(math.MaxInt64), "min": int64(math.MinInt64), "m": table.Map{"s": "text"},
	}}
	for i, op := range []table.Op{
		{Add: []table.AddOp{{Path: table.P("max"), N: 1}}},
		{Add: []table.AddOp{{Path: table.P("min"), N: -1}}},
		{Add: []table.AddOp{{Path: table.P("m", "s"), N: 1}}},
		{Add: []table.AddOp{{Path: table.P("n", "s"), N: 1}}},
		{Set: []table.SetOp{{Path: table.P("n", "s"), Value: "1"}}},
		{Remove: []table.Path{table.P("n", "s")}},
	} {
		op.Kind, op.Key = table.Update, before.Key
		if _, err := table.Apply(&op, before); !errors.Is(err, table.ErrInvalid) {
			t.Errorf("row %d: got %v, want ErrInvalid", i, err)
		}
	}
}

// An error must be fit for a log: it names what is wrong and shows no value.
func TestErrorsShowNoValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	k := table.Key{Table: table.Runs, PK: secret, SK: secret}
	for i, op := range []table.Op{
		{Kind: table.Put, Key: k, Item: table.Attrs{"a": secret + "\xff"}},
		{Kind: table.Put, Key: k, Item: table.Attrs{"a": table.Set{secret, secret}}},
		{Kind: table.Put, Key: k, Item: table.Attrs{"a": []any{secret}}},
		{Kind: table.Delete, Key: k, If: table.Equal(table.P("a"), table.Set{secret})},
		{Kind: table.Put, Key: table.Key{Table: table.Runs, PK: secret}},
		{Kind: table.Put, Key: k, Item: table.Attrs{"a": strings.Repeat(secret, 100_000)}},
	} {
		err := table.Validate([]table.Op{op})
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("sk", "")
	f.Add("a\x00é", "AAA")
	f.Add("", "_w")
	f.Fuzz(func(t *testing.T, sk, bad string) {
		q := table.Query{Table: table.Runs, PK: "p", After: table.CursorAt(sk)}
		after, err := table.ValidateQuery(q)
		valid := table.ValidateKey(table.Key{Table: table.Runs, PK: "p", SK: sk}) == nil
		if (err == nil) != valid || valid && after != sk {
			t.Errorf("%q came back as %q, %v", sk, after, err)
		}
		// Anything a client may send as a cursor is a sort key or refused.
		q.After = bad
		if after, err := table.ValidateQuery(q); err != nil && !errors.Is(err, table.ErrInvalid) || err == nil && bad != "" && after == "" {
			t.Errorf("%q: %q, %v", bad, after, err)
		}
	})
}
