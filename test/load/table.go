package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// row is a line of the table.
type row struct {
	figure string
	unit   string
	stock  value
	ours   value
	// recorded is the stock gateway's figure as it was measured before, for a run
	// without it; 0: none.
	recorded float64
	budget   budget
	// What is shown instead of the two values where a number does not tell it all; it may
	// be there when the value is not: then too little was measured to judge it.
	stockShown, oursShown string
}

// value is a figure, or none.
type value struct {
	v  float64
	ok bool
}

// budget is what a figure is allowed to be. One of its members is set; none: the row
// has no budget.
type budget struct {
	part  float64 // at most 1/part of the stock gateway's
	times float64 // at least times the stock gateway's
	most  float64 // at most this, in the row's unit
	exact float64 // just this
	words string  // what it is called, where a number would tell nothing
}

func (b budget) String() string {
	switch {
	case b.words != "":
		return b.words
	case b.part > 0:
		return "≤ 1/" + number(b.part)
	case b.times > 0:
		return "≥ " + number(b.times) + " x"
	case b.most > 0:
		return "≤ " + number(b.most)
	case b.exact > 0:
		return number(b.exact)
	}
	return ""
}

// against is what the values of a row are judged by: the stock gateway's figure, of
// this run or recorded.
func (r row) against() value {
	if r.stock.ok {
		return r.stock
	}
	return value{r.recorded, r.recorded > 0}
}

func (r row) met() string {
	b, s := r.budget, r.against()
	judged := func(ok bool) string {
		if ok {
			return "met"
		}
		return "**not met**"
	}
	switch {
	case b == budget{}:
		return ""
	case !r.ours.ok:
		return "not measured"
	case b.part > 0 && s.ok:
		return judged(r.ours.v*b.part <= s.v)
	case b.times > 0 && s.ok:
		return judged(r.ours.v >= s.v*b.times)
	case b.most > 0:
		return judged(r.ours.v <= b.most)
	case b.exact > 0:
		return judged(r.ours.v == b.exact)
	}
	return "not measured"
}

func (r row) ratio() string {
	s := r.against()
	switch {
	case !r.ours.ok || !s.ok || r.ours.v == 0 || s.v == 0 || r.unit == "":
		return ""
	case r.ours.v < s.v:
		return "1/" + number(s.v/r.ours.v)
	}
	return number(r.ours.v/s.v) + " x"
}

// number has three digits that count.
func number(v float64) string {
	switch {
	case v >= 100 || v == float64(int64(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func (r row) cell(v value, shown string) string {
	switch {
	case shown != "":
		return shown
	case !v.ok:
		return "–"
	case r.unit == "ms" && v.v >= 10_000:
		return number(v.v/1000) + " s"
	case r.unit == "":
		return number(v.v)
	}
	return number(v.v) + " " + r.unit
}

func (r row) line() string {
	stock := r.cell(r.stock, r.stockShown)
	if !r.stock.ok && r.stockShown == "" && r.recorded > 0 {
		stock = "(" + r.cell(value{r.recorded, true}, "") + ")"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", r.figure, stock, r.cell(r.ours, r.oursShown), r.ratio(), r.budget, r.met())
}

// print writes the table.
func (b *bench) print(w io.Writer, machine string) {
	var out strings.Builder
	out.WriteString("| figure | stock gateway | laneway | ratio | budget | |\n|---|---:|---:|---:|---:|---|\n")
	for _, r := range b.rows() {
		out.WriteString(r.line())
	}
	fmt.Fprintf(&out, "\n%s", machine)
	if b.theirs == nil {
		out.WriteString(" The stock gateway was not measured; in brackets what it was before, on a quiet machine of two cores.")
	}
	out.WriteString("\n")
	for _, t := range b.targets {
		for _, f := range t.failures {
			fmt.Fprintf(&out, "\nFailed: %s", f)
		}
	}
	_, _ = io.WriteString(w, out.String())
}

// machine says on what it was measured, and how quiet that was.
func machine(others float64) string {
	model := ""
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, "model name"); ok {
				model = ", " + strings.TrimSpace(strings.TrimLeft(rest, "\t :"))
				break
			}
		}
	}
	memory := ""
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			kb, _ := strconv.ParseFloat(f[1], 64)
			memory = fmt.Sprintf(", %.0f GB", kb/1e6)
		}
	}
	return fmt.Sprintf("Machine: %d cores%s%s, %s/%s, %s. Other processes kept %.1f cores busy meanwhile.",
		runtime.NumCPU(), model, memory, runtime.GOOS, runtime.GOARCH, runtime.Version(), max(0, others))
}
