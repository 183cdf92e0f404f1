package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"laneway/shared/cost"
	"laneway/shared/meter"
)

// The budgets of a plain turn: no tools, two seconds of stream, one client.
const (
	budgetAccept     = 2 // calls in a row before the reply, at a gateway that knows the connection
	budgetStranger   = 3 // at one that does not
	budgetModel      = 3 // before the model request
	budgetWrites     = 24
	budgetReads      = 8
	budgetThousand   = 0.05 // USD
	budgetColdMs     = 60
	budgetGatewayMiB = 15
	budgetRunnerMiB  = 25
)

// budgets is the table of what is budgeted.
func (f *figures) budgets() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| figure of a plain turn | measured | budget | |\n|---|---:|---:|---|\n")
	row := func(figure string, v float64, format string, budget float64) {
		met := "met"
		if v > budget {
			met = "**not met**"
		}
		fmt.Fprintf(&b, "| %s | "+format+" | ≤ %s | %s |\n", figure, v, number(budget), met)
	}
	used := mean(f.plain)
	usual := func(of func(turn) int) float64 { return float64(median(each(f.plain, of))) }
	row("service calls in a row before the accepted reply, gateway knows the connection",
		usual(func(t turn) int { return t.beforeAccepted }), "%.0f", budgetAccept)
	row("– gateway that sees the connection for the first time, new session", float64(f.newcomer.beforeAccepted), "%.0f", budgetStranger)
	row("– the same, session that it has not seen either", float64(f.stranger.beforeAccepted), "%.0f", budgetStranger)
	row("service calls in a row of the runner before the model request", usual(func(t turn) int { return t.beforeModel }), "%.0f", budgetModel)
	row("DynamoDB write units", used[meter.TableWriteUnits], "%.1f", budgetWrites)
	row("DynamoDB read units, history ≤ 4 KB", used[meter.TableReadUnits], "%.1f", budgetReads)
	row("cost of 1,000 without tokens, USD", 1000*cost.Of(cost.Used{Counts: used}).Cloud, "%.4f", budgetThousand)
	for _, name := range functions {
		ms := float64(median(f.cold[name])) / float64(time.Millisecond)
		least := float64(slices.Min(f.cold[name])) / float64(time.Millisecond)
		row(fmt.Sprintf("cold start of the %s, ms (least: %.0f)", name, least), ms, "%.0f", budgetColdMs)
	}
	for _, name := range functions {
		most := float64(budgetGatewayMiB)
		if name == "runner" {
			most = budgetRunnerMiB
		}
		row("zip of the "+name+", MiB", float64(f.zip[name])/(1<<20), "%.1f", most)
	}
	fmt.Fprintf(&b, "\nUnits by table (writes, reads): %s. With %d tool rounds: %s.\n", tables(f.plain), rounds, tables(f.tools))
	posts := median(each(f.plain, func(t turn) int { n, _ := units(t.runCalls); return n }))
	more := median(each(f.tools, func(t turn) int { n, _ := units(t.runCalls); return n }))
	fmt.Fprintf(&b, "A plain turn makes %.1f requests to DynamoDB, %.0f to SQS (two of them the mapping's) and %d posts (%d with tools); its gateway is busy for %s, its runner for %s.\n",
		used[meter.TableCalls], used[meter.QueueCalls], posts, more,
		median(each(f.plain, func(t turn) time.Duration { return t.accept.took() })).Round(time.Millisecond),
		median(each(f.plain, func(t turn) time.Duration { return t.run.took() })).Round(10*time.Millisecond))
	fmt.Fprintf(&b, "\nMachine: %d cores, %s/%s, %s; %d plain turns.\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), len(f.plain))
	return b.String()
}

// tables lists the units by table.
func tables(turns []turn) string {
	writes := byTable(turns, func(c call) map[string]float64 { return c.Writes })
	reads := byTable(turns, func(c call) map[string]float64 { return c.Reads })
	names := map[string]bool{}
	for _, m := range []map[string]float64{writes, reads} {
		for name := range m {
			names[name] = true
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, fmt.Sprintf("%s %.1f, %.1f", name, writes[name], reads[name]))
	}
	return strings.Join(out, "; ")
}

func number(v float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
