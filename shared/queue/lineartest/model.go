package lineartest

import (
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// input is a call: a body is sent into a group, or handled.
type input struct {
	group   int
	body    string
	receive bool
}

// output is what came of it.
type output struct {
	unknown bool // of a send: its answer was lost
	failed  bool // of a handler: the message stays
}

// line is a group: what waits, in order, and what was ever sent. Each is a list of
// bodies, so that two lines can be compared.
type line struct{ waiting, known string }

func (l line) sent(body string) line {
	if slices.Contains(strings.Fields(l.known), body) {
		return l // a deduplication id is taken once
	}
	return line{l.waiting + body + " ", l.known + body + " "}
}

// model is one line for each group, in which everybody works one after the other.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, groups)
			for _, c := range all {
				g := c.Input.(input).group
				parts[g] = append(parts[g], c)
			}
			return parts
		},
		Init: func() any { return line{} },
		Step: func(state, call, answer any) (bool, any) {
			l, in, out := state.(line), call.(input), answer.(output)
			if !in.receive {
				return true, l.sent(in.body)
			}
			rest, first := strings.CutPrefix(l.waiting, in.body+" ")
			if !first {
				return false, l
			}
			if !out.failed {
				l.waiting = rest
			}
			return true, l
		},
	}
}
