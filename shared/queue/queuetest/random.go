package queuetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"laneway/shared/queue"
)

// random sends messages whose bodies say how often they fail. What each group
// sees is known then: every message until it succeeds or is given up, in order.
// Duplicates are sent in between and must not be seen.
func (c *check) random() {
	const groups, perGroup = 6, 8
	seed := rand.Uint64()
	c.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	type want struct{ seen, dead []string }
	model := make(map[string]*want)
	total, dead := 0, 0
	handler := func(_ context.Context, m queue.Message) error {
		var fails int
		if _, err := fmt.Sscanf(string(m.Body), m.Group+".%d", &fails); err != nil {
			c.Errorf("body %q in group %s", m.Body, m.Group)
		}
		c.note(m.Group + " " + string(m.Body) + "#" + strconv.Itoa(m.Receives))
		switch {
		case m.Receives > fails:
			return nil
		case fails%2 == 0:
			panic("no")
		}
		return errNo
	}
	type message struct{ group, dedup, body string }
	var all []message
	for g := range groups {
		group := "g" + strconv.Itoa(g)
		w := &want{}
		model[group] = w
		for i := range perGroup {
			fails := 0
			if rng.IntN(6) == 0 {
				fails = 1 + rng.IntN(MaxReceives)
			}
			body := fmt.Sprintf("%s.%d.%d", group, fails, i)
			all = append(all, message{group, strconv.Itoa(i), body})
			for n := 1; n <= min(fails+1, MaxReceives); n++ {
				w.seen = append(w.seen, group+" "+body+"#"+strconv.Itoa(n))
				total++
			}
			if fails == MaxReceives {
				w.dead = append(w.dead, body)
				dead++
			}
		}
	}
	c.start(handler, nil)
	// Groups are mixed, each in its own order.
	slices.SortStableFunc(all, func(a, b message) int { return len(a.dedup) - len(b.dedup) })
	next := make(map[string][]message)
	for _, m := range all {
		next[m.group] = append(next[m.group], m)
	}
	for len(next) > 0 {
		group := "g" + strconv.Itoa(rng.IntN(groups))
		left := next[group]
		if len(left) == 0 {
			delete(next, group)
			continue
		}
		m := left[0]
		next[group] = left[1:]
		c.send(queue.Main, m.group, m.dedup, m.body)
		if rng.IntN(3) == 0 {
			c.send(queue.Main, m.group, m.dedup, "a duplicate")
		}
	}
	got := make(map[string][]string)
	for _, line := range c.count(total) {
		group := line[:2]
		got[group] = append(got[group], line)
	}
	var wantDead []string
	for group, w := range model {
		if !slices.Equal(got[group], w.seen) {
			c.Errorf("group %s:\n saw %q\nwant %q", group, got[group], w.seen)
		}
		wantDead = append(wantDead, w.dead...)
	}
	gotDead := c.letters(queue.Main, dead)
	slices.Sort(wantDead)
	slices.Sort(gotDead)
	if !slices.Equal(gotDead, wantDead) {
		c.Errorf("dead letters %q, want %q", gotDead, wantDead)
	}
}
