package main

import (
	"strings"
	"testing"
)

func TestRowsAreJudged(t *testing.T) {
	t.Parallel()
	known := func(v float64) value { return value{v, true} }
	for _, c := range []struct {
		what       string
		row        row
		met, ratio string
	}{
		{"a part of the stock figure", row{stock: known(30), ours: known(2), budget: budget{part: 15}}, "met", "1/15"},
		{"more than that part", row{stock: known(30), ours: known(2.1), budget: budget{part: 15}}, "**not met**", "1/14.3"},
		{"the measured stock figure wins over the recorded", row{stock: known(10), recorded: 30, ours: known(2), budget: budget{part: 15}}, "**not met**", "1/5"},
		{"the recorded one is used where there is none", row{recorded: 30, ours: known(2), budget: budget{part: 15}}, "met", "1/15"},
		{"nothing to compare with", row{ours: known(2), budget: budget{part: 15}}, "not measured", ""},
		{"a multiple", row{stock: known(2.5), ours: known(500), budget: budget{times: 200}}, "met", "200 x"},
		{"less than it", row{stock: known(2.5), ours: known(499), budget: budget{times: 200}}, "**not met**", "200 x"},
		{"a bound", row{ours: known(100), budget: budget{most: 100}}, "met", ""},
		{"above it", row{ours: known(101), budget: budget{most: 100}}, "**not met**", ""},
		{"all trials", row{ours: known(1), budget: budget{exact: 1}}, "met", ""},
		{"not all", row{ours: known(0.9), budget: budget{exact: 1}}, "**not met**", ""},
		{"not measured", row{stock: known(1), budget: budget{most: 1}}, "not measured", ""},
		{"no budget", row{stock: known(1), ours: known(2)}, "", "2 x"},
	} {
		c.row.unit = "ms"
		if got := c.row.met(); got != c.met {
			t.Errorf("%s: %q, not %q", c.what, got, c.met)
		}
		if got := c.row.ratio(); got != c.ratio {
			t.Errorf("%s: ratio %q, not %q", c.what, got, c.ratio)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   sample
		want float64
		ok   bool
	}{{nil, 0, false}, {sample{3}, 3, true}, {sample{4, 1, 2}, 2, true}, {sample{8, 1, 3, 2}, 2.5, true}} {
		if got, ok := c.in.median(); got != c.want || ok != c.ok {
			t.Errorf("of %v: %v, %v", c.in, got, ok)
		}
	}
}

func TestNothingMeasuredIsNothingMet(t *testing.T) {
	t.Parallel()
	b := &bench{ours: &target{name: "laneway"}}
	var out strings.Builder
	b.print(&out, "Machine.")
	for line := range strings.Lines(out.String()) {
		if strings.HasSuffix(strings.TrimSpace(line), "| met |") {
			t.Errorf("met without a measurement: %s", line)
		}
	}
	if rows := strings.Count(out.String(), "not measured"); rows < 15 {
		t.Errorf("%d rows say that they were not measured", rows)
	}
}
