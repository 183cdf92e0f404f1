package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// erlangC is the mean wait of a queue with c servers, in mean times of service, by the
// formula for arrivals and service without memory (M/M/c).
func erlangC(c int, load float64) float64 {
	sum, term := 0.0, 1.0 // term is load^k/k!
	for k := range c {
		sum += term
		term *= load / float64(k+1)
	}
	last := term * float64(c) / (float64(c) - load)
	return last / (sum + last) / (float64(c) - load)
}

// queue plays messages of sessions of their own, at a rate, against a lane of c and
// service of mean 1 s.
func queue(l Limits, rate, until float64, service func(*rand.Rand) float64) Result {
	s := newSim(l, Work{Run: service}, 7, until/10)
	next := 0
	var say func()
	say = func() {
		next++
		s.accept(&message{session: next})
		s.after(s.rand.ExpFloat64()/rate, say)
	}
	s.after(0, say)
	return s.finish(until)
}

func mean(all []float64) (sum float64) {
	for _, v := range all {
		sum += v / float64(len(all))
	}
	return sum
}

func TestQueueWaitIsThatOfErlangsFormula(t *testing.T) {
	t.Parallel()
	// A check of the formula itself: one server at load r waits r/(1-r).
	if got := erlangC(1, 0.5); math.Abs(got-1) > 1e-12 {
		t.Fatalf("formula: %v", got)
	}
	for _, c := range []struct {
		servers int
		load    float64
	}{{1, 0.5}, {2, 1.6}, {8, 6.4}, {16, 13}} {
		got := mean(queue(Limits{Lane: c.servers}, c.load, 300_000/c.load, (*rand.Rand).ExpFloat64).Waits)
		want := erlangC(c.servers, c.load)
		if math.Abs(got-want) > 0.08*want {
			t.Errorf("%d servers at load %v: wait %.4f s, the formula says %.4f s", c.servers, c.load, got, want)
		}
	}
}

// watched is a simulation whose starts and ends are looked at.
func watched(l Limits, traffic Traffic, seed uint64) (*sim, *watch) {
	s, w := newSim(l, turnOf(), seed, 0), &watch{running: map[int]*message{}, last: map[int]int{}}
	s.onStart = func(m *message) {
		w.started++
		if w.running[m.session] != nil {
			w.overlaps++
		}
		if last, ok := w.last[m.session]; ok && m.accepted < w.accepted[last] {
			w.disorder++
		}
		w.accepted = append(w.accepted, m.accepted)
		w.running[m.session], w.last[m.session] = m, len(w.accepted)-1
		w.most = max(w.most, len(w.running))
		w.together = max(w.together, s.runner.busy+s.gateway.busy)
	}
	s.onEnd = func(m *message) { delete(w.running, m.session) }
	traffic.play(s)
	return s, w
}

type watch struct {
	running                                     map[int]*message
	last                                        map[int]int
	accepted                                    []float64
	started, overlaps, disorder, most, together int
}

func TestSessionsKeepTheirOrderAndCapsHold(t *testing.T) {
	t.Parallel()
	for _, l := range []Limits{
		{Lane: 5},
		{Lane: 40, Account: 30, Scaling: 2, Pollers: 5, Growth: 5, Connects: 3, Requests: 60, Burst: 20},
		{},
	} {
		// Few people who write a lot: sessions have messages that wait for each other.
		s, w := watched(l, Traffic{Users: 20_000, Window: 600, Burst: 0.01}, 3)
		res := s.finish(600)
		if w.overlaps > 0 || w.disorder > 0 || w.started < 200 {
			t.Errorf("%+v: %d started, %d beside another of their session, %d out of order", l, w.started, w.overlaps, w.disorder)
		}
		if l.Lane > 0 && (w.most > l.Lane || res.Runner > l.Lane) {
			t.Errorf("%+v: %d at once", l, w.most)
		}
		if l.Account > 0 && w.together > l.Account {
			t.Errorf("%+v: %d invocations at once", l, w.together)
		}
	}
	// That the watch sees it: a session with two servers overlaps.
	s, w := watched(Limits{}, Traffic{Users: 1}, 1)
	s.begin(&message{session: 4})
	s.begin(&message{session: 4})
	if w.overlaps != 1 {
		t.Error("an overlap is not seen")
	}
}

func TestAMessageThatWaitsForItsSessionIsNotOvertaken(t *testing.T) {
	t.Parallel()
	var order []int
	s := newSim(Limits{Lane: 2}, Work{Run: func(*rand.Rand) float64 { return 10 }}, 1, 0)
	s.onStart = func(m *message) { order = append(order, m.number) }
	for i, session := range []int{1, 1, 2, 1, 2} {
		s.accept(&message{session: session, number: i})
	}
	s.finish(100)
	if want := []int{0, 2, 1, 4, 3}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	t.Run("throttled", func(t *testing.T) {
		t.Parallel()
		l := Limits{Lane: 4, Account: 10, Scaling: 1, Pollers: 2, Growth: 0.1, Connects: 2, Requests: 30, Burst: 5}
		s := newSim(l, turnOf(), 9, 0)
		for i := range 500 {
			m := &message{session: i, connects: true}
			s.after(float64(i)/100, func() { s.arrive(m) })
		}
		res := s.finish(100_000)
		if len(res.Waits) != 500 || res.Waiting != 0 || res.RefusedConnects == 0 {
			t.Errorf("%d ran, %d wait, %d refused", len(res.Waits), res.Waiting, res.RefusedConnects)
		}
	})
}

func TestScalingOfAFunction(t *testing.T) {
	t.Parallel()
	s := newSim(Limits{Scaling: 100}, Work{Run: func(*rand.Rand) float64 { return 1000 }}, 1, 0)
	for i := range 5000 {
		s.accept(&message{session: i})
	}
	for _, c := range []struct{ at, want float64 }{{0, 1000}, {5, 1500}, {10, 2000}, {40, 5000}, {60, 5000}} {
		s.run(c.at)
		if got := float64(s.runner.environments); math.Abs(got-c.want) > 15 {
			t.Errorf("after %v s: %v environments, want %v", c.at, got, c.want)
		}
	}
	if s.res.Scaled.peak > 2*1000 {
		t.Errorf("%v in ten seconds", s.res.Scaled.peak)
	}
}

func TestGrowthOfAMapping(t *testing.T) {
	t.Parallel()
	s := newSim(Limits{Pollers: 5, Growth: 5}, Work{Run: func(*rand.Rand) float64 { return 1000 }}, 1, 0)
	for i := range 500 {
		s.accept(&message{session: i})
	}
	for _, c := range []struct{ at, want float64 }{{0, 5}, {10, 55}, {60, 305}} {
		s.run(c.at)
		if got := float64(s.runner.busy); math.Abs(got-c.want) > 3 {
			t.Errorf("after %v s: %v at once, want %v", c.at, got, c.want)
		}
	}
}

func TestBucket(t *testing.T) {
	t.Parallel()
	b := bucket{rate: 2, burst: 4}
	taken := func(now float64) (n int) {
		for b.take(now) {
			n++
		}
		return n
	}
	if got := []int{taken(0), taken(1), taken(1.4), taken(100)}; !slices.Equal(got, []int{4, 2, 0, 4}) {
		t.Errorf("taken %v", got)
	}
	b.owe(100, 3)
	if taken(101) != 0 || taken(103) == 0 {
		t.Error("what is owed is not paid back")
	}
	for free := (bucket{}); !free.take(0); {
		t.Fatal("no limit refuses")
	}
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	few := scenarios()[:2]
	quiet := func(string) {}
	one := report(few, 5, quiet)
	if again := report(few, 5, quiet); again != one {
		t.Errorf("the same seed gives\n%s\nand\n%s", one, again)
	}
	if other := report(few, 6, quiet); strings.ReplaceAll(other, "Seed 6", "Seed 5") == one {
		t.Error("the seed changes nothing")
	}
}

func TestMoreUsersAskForMore(t *testing.T) {
	t.Parallel()
	var last []quota
	for _, users := range []int{10_000, 100_000} {
		now := wanted(users, simulate(unlimited(), turnOf(), Traffic{Users: users, Window: 120, Before: 60}, 1), deployed())
		for _, q := range now {
			if !slices.IsSortedFunc(now, func(a, b quota) int { return -compare(a.share(), b.share()) }) {
				t.Fatal("not by what is nearest to its limit")
			}
			i := slices.IndexFunc(last, func(was quota) bool { return was.name == q.name })
			if i >= 0 && q.want <= last[i].want && q.name != "one session's key in `sessions`" {
				t.Errorf("%s: %v for %d users, fewer wanted %v", q.name, q.want, users, last[i].want)
			}
		}
		last = now
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestMatrixSaysWhatBreaksFirstAndWhere(t *testing.T) {
	t.Parallel()
	asks := func(lane, table float64) []quota {
		all := []quota{{"lane", 16, lane}, {"table", 1000, table}, {"key", 1000, 5}}
		slices.SortStableFunc(all, func(a, b quota) int { return -compare(a.share(), b.share()) })
		return all
	}
	got := matrix([]population{
		{100, "day curve", asks(1, 100)},
		{100, "burst", asks(8, 400)},
		{1000, "day curve", asks(8, 1000)},
		{1000, "burst", asks(80, 4000)},
	})
	for _, line := range []string{
		"| lane | 16 | 6 % | **50 %** | 50 % | **500 %** | 2,000 | 200 |",
		"| table | 1,000 | **10 %** | 40 % | **100 %** | 400 % | 1,000 | 250 |",
		"| key | 1,000 | under 1 % | under 1 % | under 1 % | under 1 % | never | never |",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
}

func TestDayCurveIsOfOneDay(t *testing.T) {
	t.Parallel()
	var sum float64
	for _, share := range dayCurve {
		sum += share
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the hours add up to %v", sum)
	}
	s := newSim(Limits{}, turnOf(), 2, 0)
	tr := Traffic{Users: 200_000}
	tr.play(s)
	s.run(1000)
	if got, want := float64(s.res.Messages)/1000, tr.rate(); math.Abs(got-want) > 0.05*want {
		t.Errorf("%v messages a second, want %v", got, want)
	}
}

func TestFiguresAreWritten(t *testing.T) {
	t.Parallel()
	r := []float64{0, 0.25, 3}
	for _, c := range []struct{ got, want string }{
		{wait(r, 7, 0.1), "0"},
		{wait(r, 7, 0.2), "250 ms"},
		{wait(r, 7, 0.5), "> 5 min"},
		{wait(nil, 0, 0.5), "–"},
		{thousands(1234567), "1,234,567"},
		{thousands(12), "12"},
		{percent(2.5), "250 %"},
		{thousands(rough(38_461)), "38,000"},
		{thousands(rough(995_000)), "1,000,000"},
		{seconds(240), "4 min"},
		{refused(Result{RefusedConnects: 1200}), "1,200 connects"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
