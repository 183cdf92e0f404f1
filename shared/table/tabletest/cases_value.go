package tabletest

import (
	"math"
	"strings"

	"laneway/shared/table"
)

func valueCases() []testCase {
	rows := []struct {
		name      string
		give, got any // got nil: as given
	}{
		{"string", "text", nil},
		{"empty string", "", nil},
		{"string with every kind of character", "a\x00b\n\té😀\u2028", nil},
		{"long string", strings.Repeat("é", 100_000), nil},
		{"zero", int64(0), nil},
		{"negative", int64(-42), nil},
		{"largest", int64(math.MaxInt64), nil},
		{"smallest", int64(math.MinInt64), nil},
		{"beyond a float", int64(1<<53 + 1), nil},
		{"true", true, nil},
		{"false", false, nil},
		{"bytes", []byte{0, 1, 254, 255}, nil},
		{"empty bytes", []byte{}, nil},
		{"nil bytes", []byte(nil), []byte{}},
		{"set, sorted", table.Set{"b", "a", "é"}, table.Set{"a", "b", "é"}},
		{"list, in its order", []string{"b", "a", "b", ""}, nil},
		{"empty list", []string{}, nil},
		{"nil list", []string(nil), []string{}},
		{"map", table.Map{"s": "x", "n": int64(1), "b": true, "y": []byte{1}, "l": []string{"q"}, "m": table.Map{"deep": table.Map{}}, "set": table.Set{"a"}}, nil},
		{"empty map", table.Map{}, nil},
		{"nil map", table.Map(nil), table.Map{}},
		{"map as deep as it may be", nested(table.MaxDepth), nil},
	}
	var cases []testCase
	for _, r := range rows {
		cases = append(cases, testCase{"value: " + r.name, func(b *bench) {
			want := r.got
			if want == nil {
				want = r.give
			}
			k := b.put("put", table.Attrs{"v": r.give})
			b.is(k, table.Attrs{"v": want})
			b.failed(0, table.Attrs{"v": want}, table.Op{Kind: table.Check, Key: k, If: table.NotExists()})
			b.write(table.Op{Kind: table.Update, Key: b.key("up"), Set: set(table.P("v"), r.give)})
			b.is(b.key("up"), table.Attrs{"v": want})
		}})
	}
	return cases
}

// nested is a Map with so many levels.
func nested(levels int) table.Map {
	m := table.Map{}
	for range levels - 1 {
		m = table.Map{"m": m}
	}
	return m
}
