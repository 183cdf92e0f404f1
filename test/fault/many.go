package fault

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Batch is a number of seeds.
type Batch struct {
	First, Count uint64
	Profile      string // empty: each seed's own
	Mutation     *Mutation
	// Most is how many failing seeds are gathered before the rest is left out; 0: 3.
	Most int
	// Tell, if set, is told of progress now and then.
	Tell func(done uint64)
}

// Summary is what came of a batch.
type Summary struct {
	Seeds    uint64
	Steps    int
	Took     time.Duration
	Virtual  time.Duration
	Failed   []*Report // with their timelines, by seed
	Points   map[string]int
	Faults   map[string]int
	Ends     map[string]int
	Profiles map[string]int
}

// Many runs seeds, as many side by side as there are processors.
func Many(t *testing.T, b Batch) *Summary {
	t.Helper()
	sum := &Summary{Points: map[string]int{}, Faults: map[string]int{}, Ends: map[string]int{}, Profiles: map[string]int{}}
	if b.Most == 0 {
		b.Most = 3
	}
	began := time.Now()
	var mu sync.Mutex
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				mu.Lock()
				enough := len(sum.Failed) >= b.Most
				mu.Unlock()
				if n >= b.Count || enough {
					return
				}
				c := Config{Seed: b.First + n, Profile: b.Profile, Mutation: b.Mutation}
				r := Run(t, c)
				if len(r.Violations) > 0 {
					c.Record = true
					if again := Run(t, c); len(again.Violations) > 0 {
						r = again
					}
				}
				mu.Lock()
				sum.add(r)
				done := sum.Seeds
				mu.Unlock()
				if b.Tell != nil && done%500 == 0 {
					b.Tell(done)
				}
			}
		})
	}
	wg.Wait()
	sum.Took = time.Since(began)
	slices.SortFunc(sum.Failed, func(a, b *Report) int { return cmp.Compare(a.Seed, b.Seed) })
	return sum
}

func (s *Summary) add(r *Report) {
	s.Seeds++
	s.Steps += r.Steps
	s.Virtual += r.Virtual
	s.Profiles[r.Profile]++
	for from, to := range map[*map[string]int]map[string]int{&r.Points: s.Points, &r.Faults: s.Faults, &r.Ends: s.Ends} {
		for k, n := range *from {
			to[k] += n
		}
	}
	if len(r.Violations) > 0 {
		s.Failed = append(s.Failed, r)
	}
}

// Print writes what was run, and the failing seeds.
func (s *Summary) Print(w io.Writer) {
	for _, r := range s.Failed {
		r.Print(w)
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d seeds, %d steps, %s of their time, in %s: %d failed\n",
		s.Seeds, s.Steps, s.Virtual.Truncate(time.Second), s.Took.Truncate(time.Millisecond), len(s.Failed))
	for _, l := range []struct {
		name string
		of   map[string]int
	}{{"runs ended", s.Ends}, {"went wrong", s.Faults}, {"died at", s.Points}} {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(l.of)) {
			parts = append(parts, fmt.Sprintf("%s %d", k, l.of[k]))
		}
		fmt.Fprintf(w, "%s: %s\n", l.name, strings.Join(parts, ", "))
	}
}
