package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// scenario is a population on some stacks.
type scenario struct {
	users  int
	stacks int
	name   string
	limits Limits
}

// turned is a stack whose knobs and quotas have been turned.
func turned(lane, account int, connects, requests float64) Limits {
	l := deployed()
	l.Lane, l.Account, l.Connects, l.Requests = lane, account, connects, requests
	return l
}

// scenarios are the populations of docs/scale.md, each as it is deployed and as it is
// turned there.
func scenarios() []scenario {
	return []scenario{
		{1_000, 1, "as deployed", deployed()},
		{100_000, 1, "as deployed", deployed()},
		{100_000, 1, "turned: lane 500, connect.rate 200", turned(500, quotaConcurrency, 200, quotaRequests)},
		{10_000_000, 1, "as deployed", deployed()},
		{10_000_000, 40, "40 stacks, each an account: lane 1000, connect.rate 400, concurrency 2000", turned(1000, 2000, 400, quotaRequests)},
	}
}

// Windows of a simulation, in seconds.
const (
	warmUp = 180
	window = 300
)

// pattern is how messages come.
type pattern struct {
	name  string
	burst float64
}

func patterns() []pattern { return []pattern{{"day curve", 0}, {"burst", burstShare}} }

// unlimited is a stack that nothing holds back.
func unlimited() Limits { return Limits{} }

// turnOf is the work of a turn.
func turnOf() Work { return Work{Accept: acceptSeconds, Run: runSeconds, Posts: posts} }

// userMonth is the money for a user's month, without tokens, on so many users a stack.
func userMonth(users int) float64 {
	messages := messagesADay * daysAMonth
	turns := messages * ((1-toolShare)*costPlain + toolShare*costTools) / 1000
	connected := messages / messagesAVisit * minutesAVisit * minutePrice
	return turns + connected + costIdle/float64(users)
}

// report simulates and gives the tables.
func report(all []scenario, seed uint64, progress func(string)) string {
	var waits, firsts strings.Builder
	waits.WriteString("| users | stacks | messages | peak /s | wait p50 | wait p99 | p99 for a runner alone | left waiting | runners needed | used | refused | USD a user and month |\n" +
		"|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---|---:|\n")
	var asked []population
	for _, s := range all {
		for _, p := range patterns() {
			progress(fmt.Sprintf("%s users, %s, %s", thousands(s.users), s.name, p.name))
			t := Traffic{Users: s.users / s.stacks, Window: window, Before: warmUp, Burst: p.burst}
			free := simulate(unlimited(), turnOf(), t, seed)
			got := simulate(s.limits, turnOf(), t, seed)
			fmt.Fprintf(&waits, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.4f |\n",
				thousands(s.users), s.name, p.name, figure(free.Arrivals.peak*float64(s.stacks)),
				wait(got.Waits, got.Waiting, 0.5), wait(got.Waits, got.Waiting, 0.99), wait(got.Own, got.Waiting, 0.99), thousands(got.Waiting*s.stacks),
				thousands(free.Runner*s.stacks), thousands(got.Runner*s.stacks), refused(got), userMonth(s.users/s.stacks))
			if s.stacks == 1 && s.limits == deployed() {
				asked = append(asked, population{s.users, p.name, wanted(s.users, free, s.limits)})
			}
		}
	}
	firsts.WriteString(matrix(asked))
	return "What holds a message up:\n\n" + waits.String() +
		"\nWhat a population on one stack, as deployed, asks for at its peak, in parts of the limit; over 100 % it breaks, and what stands highest in a column breaks first. The last columns are the users with whom it does:\n\n" + firsts.String() +
		fmt.Sprintf("\nSeed %d; %d s at the busiest hour, after %d s of the same.\n", seed, window, warmUp)
}

// population is what some users ask for.
type population struct {
	users int
	name  string // of the pattern
	asks  []quota
}

// of gives what it asks of one quota.
func (p population) of(name string) quota {
	return p.asks[slices.IndexFunc(p.asks, func(q quota) bool { return q.name == name })]
}

// matrix is the quotas against the populations, in the order in which they break while
// users become more; the first one of a population is bold. The last populations are the
// largest, of each pattern, and say where it breaks.
func matrix(all []population) string {
	var b strings.Builder
	b.WriteString("| limit | |")
	largest := all[len(all)-len(patterns()):]
	for _, p := range all {
		fmt.Fprintf(&b, " %s, %s |", thousands(p.users), p.name)
	}
	for _, p := range largest {
		fmt.Fprintf(&b, " breaks at, %s |", p.name)
	}
	fmt.Fprintf(&b, "\n|---|---:|%s\n", strings.Repeat("---:|", len(all)+len(largest)))
	for _, q := range largest[len(largest)-1].asks {
		fmt.Fprintf(&b, "| %s | %s |", q.name, thousands(int(q.limit)))
		for _, p := range all {
			cell := percent(p.of(q.name).share())
			if p.asks[0].name == q.name {
				cell = "**" + cell + "**"
			}
			b.WriteString(" " + cell + " |")
		}
		for i, p := range largest {
			at := thousands(rough(float64(p.users) / p.of(q.name).share()))
			if p.of(q.name).want == all[i].of(q.name).want {
				at = "never" // it does not grow with the users
			}
			b.WriteString(" " + at + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// rough keeps two digits.
func rough(v float64) int {
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return int(math.Floor(v/unit+0.5) * unit)
}

// wait is a quantile of the time from wake-up to runner. Those that had none by the end
// count with what they have waited, which is the least that it can be.
func wait(waits []float64, waiting int, q float64) string {
	n := len(waits) + waiting
	if n == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(waits))
	at := int(q * float64(n-1))
	if at >= len(sorted) {
		// Nobody who came in the window and waits has been there for longer than it.
		return "> " + seconds(slices.Max(append(sorted, window)))
	}
	return seconds(sorted[at])
}

func seconds(s float64) string {
	switch {
	case s < 0.0005:
		return "0"
	case s < 1:
		return fmt.Sprintf("%.0f ms", 1000*s)
	case s < 120:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f min", s/60)
}

// refused says who was told to try again.
func refused(r Result) string {
	var parts []string
	for _, p := range []struct {
		name string
		n    int
	}{{"connects", r.RefusedConnects}, {"frames", r.RefusedRequests}, {"invocations", r.RefusedInvocations}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", thousands(p.n), p.name))
		}
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// figure is a number with as many digits as it is worth.
func figure(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return thousands(int(v + 0.5))
}

func percent(share float64) string {
	if share < 0.01 {
		return "under 1 %"
	}
	return thousands(int(100*share+0.5)) + " %"
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
