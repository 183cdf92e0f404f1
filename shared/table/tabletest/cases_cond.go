package tabletest

import (
	"math"

	"laneway/shared/table"
)

func conditionCases() []testCase {
	attrs := table.Attrs{
		"s": "bee", "n": int64(5), "yes": true, "empty": "", "set": table.Set{"a"},
		"m": table.Map{"k": "v", "n": int64(2), "deep": table.Map{"x": "1"}},
	}
	rows := []struct {
		name  string
		cond  table.Cond
		there bool // holds for the item above
		none  bool // holds for an absent item
	}{
		{"no condition", nil, true, true},
		{"exists", table.Exists(), true, false},
		{"not exists", table.NotExists(), false, true},
		{"has", table.Has(table.P("s")), true, false},
		{"has, empty", table.Has(table.P("empty")), true, false},
		{"has, absent", table.Has(table.P("no")), false, false},
		{"has member", table.Has(table.P("m", "k")), true, false},
		{"has absent member", table.Has(table.P("m", "no")), false, false},
		{"has member of no map", table.Has(table.P("s", "k")), false, false},
		{"lacks", table.Lacks(table.P("s")), false, true},
		{"lacks, absent", table.Lacks(table.P("no")), true, true},
		{"lacks member", table.Lacks(table.P("m", "no")), true, true},
		{"lacks member, there", table.Lacks(table.P("m", "k")), false, true},
		{"lacks member of no map", table.Lacks(table.P("s", "k")), true, true},
		{"lacks member of absent map", table.Lacks(table.P("no", "k")), true, true},
		{"equal string", table.Equal(table.P("s"), "bee"), true, false},
		{"equal other string", table.Equal(table.P("s"), "bea"), false, false},
		{"equal empty string", table.Equal(table.P("empty"), ""), true, false},
		{"absent is not empty", table.Equal(table.P("no"), ""), false, false},
		{"absent is not zero", table.Equal(table.P("no"), int64(0)), false, false},
		{"equal number", table.Equal(table.P("n"), int64(5)), true, false},
		{"equal bool", table.Equal(table.P("yes"), true), true, false},
		{"equal other bool", table.Equal(table.P("yes"), false), false, false},
		{"equal of another kind", table.Equal(table.P("n"), "5"), false, false},
		{"equal member", table.Equal(table.P("m", "k"), "v"), true, false},
		{"less", table.Less(table.P("n"), int64(6)), true, false},
		{"less, equal", table.Less(table.P("n"), int64(5)), false, false},
		{"less by value, not by digits", table.Less(table.P("n"), int64(10)), true, false},
		{"less, largest", table.Less(table.P("n"), int64(math.MaxInt64)), true, false},
		{"less, absent", table.Less(table.P("no"), int64(6)), false, false},
		{"less of another kind", table.Less(table.P("s"), int64(6)), false, false},
		{"less string", table.Less(table.P("s"), "bef"), true, false},
		{"less string, prefix", table.Less(table.P("s"), "bee "), true, false},
		{"greater", table.Greater(table.P("n"), int64(-5)), true, false},
		{"greater, equal", table.Greater(table.P("n"), int64(5)), false, false},
		{"greater member", table.Greater(table.P("m", "n"), int64(1)), true, false},
		{"greater string by bytes", table.Greater(table.P("s"), "Z"), true, false},
		{"all", table.All(table.Exists(), table.Has(table.P("s"))), true, false},
		{"all, one fails", table.All(table.Exists(), table.Has(table.P("no"))), false, false},
		{"all of none", table.All(), true, true},
		{"any", table.Any(table.NotExists(), table.Equal(table.P("n"), int64(5))), true, true},
		{"any, all fail", table.Any(table.Has(table.P("no")), table.Equal(table.P("n"), int64(4))), false, false},
		{"any of none", table.Any(), false, false},
		{"nested", table.All(table.Any(table.Lacks(table.P("owner")), table.Less(table.P("lease"), int64(9))), table.Any(table.All(table.Equal(table.P("s"), "bee"), table.Any()), table.All())), true, true},
		{"and binds before or", table.Any(table.All(table.Has(table.P("no")), table.Exists()), table.All(table.Exists(), table.Has(table.P("s")))), true, false},
		{"one path twice", table.All(table.Greater(table.P("n"), int64(4)), table.Less(table.P("n"), int64(6))), true, false},
	}
	var cases []testCase
	for _, r := range rows {
		cases = append(cases, testCase{"condition: " + r.name, func(b *bench) {
			there := b.put("there", attrs)
			b.judge(there, r.cond, r.there, attrs)
			b.judge(b.key("none"), r.cond, r.none, nil)
		}})
	}
	return append(cases, testCase{"twelve comparisons in one condition keep their values apart", func(b *bench) {
		a, all := table.Attrs{}, []table.Cond{}
		for _, n := range members(12) {
			a["n"+n] = "v" + n
			all = append(all, table.Equal(table.P("n"+n), "v"+n))
		}
		k := b.put("x", a)
		b.write(table.Op{Kind: table.Check, Key: k, If: table.All(all...)})
		all[11] = table.Equal(table.P("n011"), "v001")
		b.failed(0, a, table.Op{Kind: table.Check, Key: k, If: table.All(all...)})
	}})
}

// judge tries a condition on an update, alone and beside another op.
func (b *bench) judge(k table.Key, c table.Cond, holds bool, found table.Attrs) {
	b.Helper()
	op := table.Op{Kind: table.Delete, Key: k, If: c}
	beside := table.Op{Kind: table.Delete, Key: b.key("beside")}
	if !holds {
		b.failed(0, found, op)
		b.failed(1, found, beside, op)
		return
	}
	b.write(op)
	b.absent(k)
	if found != nil {
		b.write(table.Op{Kind: table.Put, Key: k, Item: found})
	}
	b.write(beside, op)
	b.absent(k)
}
