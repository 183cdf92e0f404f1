package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Step is one line of a trace.
type Step struct {
	Text  string
	State State
}

// replay walks the shortest way to a state again, and says what happened on it.
func (m *machine) replay(seen *store, parent []uint32, at uint32) []Step {
	var way []uint32
	for i := at; i != 0; i = parent[i] {
		way = append(way, i)
	}
	slices.Reverse(way)
	names := [maxSlots]string{"A", "B"}
	here := m.start()
	var steps []Step
	for _, i := range way {
		want := *seen.at(i)
		for _, e := range m.next(&here) {
			if e.to != want {
				continue
			}
			steps = append(steps, Step{m.line(&e, &here, names), e.to})
			if e.swapped {
				names[0], names[1] = names[1], names[0]
			}
			break
		}
		here = want
	}
	return steps
}

// line says a transition in words, with the runner that made it.
func (m *machine) line(e *edge, before *State, names [maxSlots]string) string {
	t := ops[e.op].text
	if strings.HasPrefix(t, "runner") || strings.HasPrefix(t, "settler") || strings.HasPrefix(t, "RUNNER") {
		if i, ok := changed(e, before); ok {
			word, rest, _ := strings.Cut(t, " ")
			t = word + " " + names[i] + rest[:0] + " " + rest
			if before0, ok0 := strings.CutSuffix(word, ":"); ok0 {
				t = before0 + " " + names[i] + ": " + rest
			}
		}
	}
	if e.who != 0 {
		t += fmt.Sprintf(" (run %d)", e.who)
	}
	if e.lost {
		t += " — APPLIED, THE ANSWER IS LOST"
	}
	return t
}

// changed says which slot a transition moved.
func changed(e *edge, before *State) (int, bool) {
	after := e.to.slots
	if e.swapped {
		after[0], after[1] = after[1], after[0]
	}
	for i := range after {
		if after[i] != before.slots[i] {
			return i, true
		}
	}
	return 0, false
}

// Trace is the way to what is broken, line by line; empty where nothing is.
func (res Result) Trace() string {
	var b strings.Builder
	for i, s := range res.trace {
		fmt.Fprintf(&b, "%4d. %s\n", i+1, s.Text)
	}
	if n := len(res.trace); n > 0 {
		fmt.Fprintf(&b, "      %s\n      %s\n", res.Broken, res.trace[n-1].State.words())
	}
	return b.String()
}

// words are what one needs of a state to understand the end of a trace.
func (s *State) words() string {
	set := func(bits uint8) string {
		var out []string
		for r := range uint8(maxRuns) {
			if bits&bit(r) != 0 {
				out = append(out, strconv.FormatUint(uint64(r+1), 10))
			}
		}
		return "{" + strings.Join(out, " ") + "}"
	}
	states := []string{"absent", "pending", "steered", "delivered", "ended"}
	ends := []string{"", " ok", " aborted", " failed", ""}
	var runs []string
	for r := range s.runs {
		if st := &s.runs[r]; st.st != absent {
			runs = append(runs, fmt.Sprintf("%d=%s%s seq %d", r+1, states[st.st], ends[st.out], st.seq))
		}
	}
	return fmt.Sprintf("META: token %d, held %t, lease %d, active %d, pending %s, mail %s, unsettled %s, cutoff %d, cancel %d, indexed %d, asleep %d; runs: %s; queues: %v %v %v",
		s.token, s.owner != 0, s.lease, s.active, set(s.pend), set(s.mail), set(s.uns), s.cutoff, s.cancel, s.busy, s.asleep,
		strings.Join(runs, ", "), s.group, s.inFlight, s.pool)
}
