package model

import (
	"hash/maphash"
	"slices"
)

// store keeps every state once. States lie in blocks, so that growing copies none.
type store struct {
	seed   maphash.Seed
	blocks [][]State
	n      int
	table  []uint32 // index+1 of a state, at a place that its hash says; 0: free
}

const blockSize = 1 << 14

func newStore() *store {
	return &store{seed: maphash.MakeSeed(), table: make([]uint32, 1<<12)}
}

func (t *store) at(i uint32) *State { return &t.blocks[i/blockSize][i%blockSize] }

// put gives the index of s, and whether it is new.
func (t *store) put(s *State) (uint32, bool) {
	if 2*t.n >= len(t.table) {
		t.grow()
	}
	place := t.place(s)
	if i := t.table[place]; i != 0 {
		return i - 1, false
	}
	i := uint32(t.n)
	if t.n%blockSize == 0 {
		t.blocks = append(t.blocks, make([]State, 0, blockSize))
	}
	last := len(t.blocks) - 1
	t.blocks[last] = append(t.blocks[last], *s)
	t.n++
	t.table[place] = i + 1
	return i, true
}

func (t *store) place(s *State) int {
	mask := len(t.table) - 1
	for p := int(maphash.Comparable(t.seed, *s)) & mask; ; p = (p + 1) & mask {
		if i := t.table[p]; i == 0 || *t.at(i - 1) == *s {
			return p
		}
	}
}

func (t *store) grow() {
	t.table = make([]uint32, 2*len(t.table))
	for i := range t.n {
		t.table[t.place(t.at(uint32(i)))] = uint32(i) + 1
	}
}

// Result is what a search found.
type Result struct {
	States, Edges int
	Cut           bool // the limit on states was reached: nothing is proved
	Depth         int  // steps of the longest shortest way to a state
	Broken        Check
	Steps         int // of the shortest trace to what is broken
	trace         []Step
}

// graph is the search's memory of the edges, in the order in which states were found.
type graph struct {
	from []uint32 // edges of state i are to[from[i]:from[i+1]]
	to   []uint32
	kind []class
}

// Search visits every state that the scenario can reach under a variant of the rules
// and stops at the first thing that is broken, on a shortest way to it. At most limit
// states are visited.
func Search(sc Scenario, v Variant, limit int) Result {
	m := newMachine(sc, v)
	seen, g := newStore(), &graph{}
	var parent, depth []uint32
	res := Result{}
	start := m.start()
	seen.put(&start)
	parent, depth = append(parent, 0), append(depth, 0)
	for i := 0; ; i++ { // more are found on the way
		if i >= seen.n {
			break
		}
		here := uint32(i)
		s := *seen.at(here)
		g.from = append(g.from, uint32(len(g.to)))
		for _, e := range m.next(&s) {
			to, fresh := seen.put(&e.to)
			if fresh {
				parent, depth = append(parent, here), append(depth, depth[i]+1)
			}
			g.to, g.kind = append(g.to, to), append(g.kind, e.class())
			if e.to.violate != sound {
				res.States, res.Edges = seen.n, len(g.to)
				return res.broken(m, seen, parent, to, e.to.violate)
			}
		}
		if seen.n > limit {
			res.Cut = true
			break
		}
	}
	res.States, res.Edges = seen.n, len(g.to)
	if n := len(depth); n > 0 {
		res.Depth = int(slices.Max(depth))
	}
	if res.Cut {
		return res
	}
	g.from = append(g.from, uint32(len(g.to)))
	if i, ok := g.stalled(m, seen); ok {
		return res.broken(m, seen, parent, i, stall)
	}
	if i, ok := g.storm(); ok {
		return res.broken(m, seen, parent, i, storm)
	}
	if i, ok := g.stuck(m, seen); ok {
		return res.broken(m, seen, parent, i, stuck)
	}
	return res
}

func (res Result) broken(m *machine, seen *store, parent []uint32, at uint32, why code) Result {
	res.Broken = checks[why]
	res.trace = m.replay(seen, parent, at)
	res.Steps = len(res.trace)
	return res
}

// stalled looks for a state that is not settled, that was reached without any fault,
// and out of which only the watchdog leads: then the rules leave everyday work to it.
func (g *graph) stalled(m *machine, seen *store) (uint32, bool) {
	for i := range seen.n {
		at := uint32(i)
		s := seen.at(at)
		if s.faulty != 0 || m.settled(s) {
			continue
		}
		goes := false
		for e := g.from[i]; e < g.from[i+1]; e++ {
			goes = goes || g.kind[e] == step || g.kind[e] == timed
		}
		if !goes {
			return at, true
		}
	}
	return 0, false
}

// stuck looks for a state from which no settled state can be reached any more without
// further faults.
func (g *graph) stuck(m *machine, seen *store) (uint32, bool) {
	n := seen.n
	count := make([]uint32, n+1)
	for e, to := range g.to {
		if g.kind[e] != fault {
			count[to+1]++
		}
	}
	for i := range n {
		count[i+1] += count[i]
	}
	back, fill := make([]uint32, count[n]), slices.Clone(count)
	for i := range n {
		for e := g.from[i]; e < g.from[i+1]; e++ {
			if to := g.to[e]; g.kind[e] != fault {
				back[fill[to]] = uint32(i)
				fill[to]++
			}
		}
	}
	good := make([]bool, n)
	var todo []uint32
	for i := range n {
		if m.settled(seen.at(uint32(i))) {
			good[i], todo = true, append(todo, uint32(i))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range back[count[at]:count[at+1]] {
			if !good[from] {
				good[from], todo = true, append(todo, from)
			}
		}
	}
	for i := range n {
		if !good[i] {
			return uint32(i), true
		}
	}
	return 0, false
}

// storm looks for a circle of steps that live processes make by themselves: wake-ups
// that send wake-ups for ever.
func (g *graph) storm() (uint32, bool) {
	n := len(g.from) - 1
	in := make([]uint32, n)
	for e, to := range g.to {
		if g.kind[e] == step {
			in[to]++
		}
	}
	var todo []uint32
	for i := range n {
		if in[i] == 0 {
			todo = append(todo, uint32(i))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n--
		for e := g.from[at]; e < g.from[at+1]; e++ {
			if to := g.to[e]; g.kind[e] == step {
				if in[to]--; in[to] == 0 {
					todo = append(todo, to)
				}
			}
		}
	}
	if n == 0 {
		return 0, false
	}
	for i := range in {
		if in[i] > 0 {
			return uint32(i), true
		}
	}
	return 0, false
}
