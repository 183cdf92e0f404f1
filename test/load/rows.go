package main

import "fmt"

// rows makes the table of what was found. Recorded figures of the stock gateway are
// those that the budgets were set by.
func (b *bench) rows() []row {
	of := func(f func(*figures) sample) (stock, ours value) {
		at := func(t *target) value {
			if t == nil {
				return value{}
			}
			found := f(&t.figures)
			v, ok := found.median()
			return value{v, ok}
		}
		return at(b.theirs), at(b.ours)
	}
	simple := func(figure, unit string, recorded float64, limit budget, f func(*figures) sample) row {
		r := row{figure: figure, unit: unit, recorded: recorded, budget: limit}
		r.stock, r.ours = of(f)
		return r
	}
	rows := []row{
		simple("runs per second, 16 sessions, instant model", "/s", 2.5, budget{times: 200}, func(f *figures) sample { return f.runs16 }),
		simple("– processor time of the gateway for one of them", "ms", 500, budget{}, func(f *figures) sample { return f.cpu16 }),
		simple("runs per second, 64 sessions", "/s", 0, budget{}, func(f *figures) sample { return f.runs64 }),
		simple("call to accepted reply, one session", "ms", 22, budget{part: 15}, func(f *figures) sample { return f.accept }),
		simple("call to accepted reply, 16 sessions", "ms", 0, budget{part: 100}, func(f *figures) sample { return f.accept16 }),
		simple("call to accepted reply, 64 sessions", "ms", 1200, budget{part: 100}, func(f *figures) sample { return f.accept64 }),
		simple("call to model request", "ms", 291, budget{part: 40}, func(f *figures) sample { return f.model }),
		simple("provider's first delta to client's event", "ms", 6, budget{part: 5}, func(f *figures) sample { return f.first }),
		simple("one more tool round, `read` of a small file", "ms", 44, budget{part: 10}, func(f *figures) sample { return f.round }),
		simple("whole overhead of a turn", "ms", 447, budget{part: 40}, func(f *figures) sample { return f.overhead }),
		b.memory(),
		simple("process start to first hello-ok", "ms", 16_000, budget{part: 50}, func(f *figures) sample { return f.hello }),
		simple("first run after it", "ms", 11_000, budget{part: 50}, func(f *figures) sample { return f.firstRun }),
		simple("5,000 deltas in 80 ms: delay of the last", "ms", 1200, budget{most: 100}, func(f *figures) sample { return f.last }),
		simple("– bytes of events for those 100 KB of text", "MB", 1.6, budget{most: 0.5}, func(f *figures) sample { return f.bytes }),
	}
	return append(rows, b.order(), b.growth(), b.neighbours(), b.endless())
}

func (b *bench) memory() row {
	r := row{figure: "resident memory after 200 sessions", unit: "MiB", recorded: 1670, budget: budget{part: 20}}
	show := func(t *target) (value, string) {
		if t == nil || len(t.rss) == 0 {
			return value{}, ""
		}
		v := value{t.rss[0], true}
		if t.filled >= sessions {
			return v, ""
		}
		return v, fmt.Sprintf("%s MiB (after %d)", number(v.v), t.filled)
	}
	r.stock, r.stockShown = show(b.theirs)
	r.ours, r.oursShown = show(b.ours)
	return r
}

func (b *bench) order() row {
	r := row{figure: "20 `agent` calls at once on one session, executed in order", budget: budget{exact: 1, words: "all"}}
	show := func(t *target) (value, string) {
		if t == nil || len(t.ordered) == 0 {
			return value{}, ""
		}
		n := len(t.ordered)
		return value{t.ordered.sum() / float64(n), true}, fmt.Sprintf("%.0f of %d trials", t.ordered.sum(), n)
	}
	r.stock, r.stockShown = show(b.theirs)
	r.ours, r.oursShown = show(b.ours)
	return r
}

func (b *bench) growth() row {
	r := row{figure: "overhead per turn at turn 200 against turn 1", budget: budget{most: 1.3}}
	show := func(t *target) (value, string) {
		if t == nil {
			return value{}, ""
		}
		first, last, ok := t.growth()
		if !ok || first <= 0 {
			return value{}, ""
		}
		shown := fmt.Sprintf("%s x (%s to %s ms)", number(last/first), number(first), number(last))
		if len(t.grown) < turns {
			shown += fmt.Sprintf(" at turn %d", len(t.grown))
		}
		return value{last / first, len(t.grown) >= turns}, shown
	}
	r.stock, r.stockShown = show(b.theirs)
	r.ours, r.oursShown = show(b.ours)
	return r
}

func (b *bench) neighbours() row {
	r := row{figure: "a run beside another session's backlog of 20, against an idle gateway (model: 100 ms)", budget: budget{most: 1.2}}
	show := func(t *target) (value, string) {
		if t == nil {
			return value{}, ""
		}
		alone, ok := t.alone.median()
		if !ok {
			return value{}, ""
		}
		beside, _ := t.beside.median()
		return value{beside / alone, true}, fmt.Sprintf("%s x (%s to %s ms)", number(beside/alone), number(alone), number(beside))
	}
	r.stock, r.stockShown = show(b.theirs)
	r.ours, r.oursShown = show(b.ours)
	return r
}

// flat is how many MiB a process may grow and still be called flat: what its collector
// lets come and go anyway.
const flat = 16

func (b *bench) endless() row {
	r := row{figure: "a tool that is asked for without end", budget: budget{exact: 1, words: "ended, memory flat"}}
	show := func(t *target) (value, string) {
		if t == nil || len(t.stopped) == 0 {
			return value{}, ""
		}
		how, ended := "not stopped within 15 s", 0.0
		if t.stopped[0] == 1 {
			how = "ended"
		}
		if t.stopped[0] == 1 && t.growthRSS[0] < flat {
			ended = 1
		}
		return value{ended, true}, fmt.Sprintf("%s: %.0f requests, %+.1f MiB", how, t.calls[0], t.growthRSS[0])
	}
	r.stock, r.stockShown = show(b.theirs)
	r.ours, r.oursShown = show(b.ours)
	return r
}
