package lineartest

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// items is how many there are. A value is 0 where there is no item.
const items = 3

type values [items]int64

// what a call does.
type what int

const (
	get  what = iota // one item
	swap             // one item, if it has a value
	move             // two items, if both have a value, in one transaction
	add              // a number to one item, which is given back
)

// input is a call. A value that is written is written by nobody else.
type input struct {
	what   what
	at     [2]int // items; of one only the first counts
	want   [2]int64
	set    [2]int64
	amount int64
}

// output is its answer.
type output struct {
	unknown bool  // it was lost
	failed  bool  // a condition did
	op      int   // which
	value   int64 // that was read, or found at the failed condition, or is there now
}

func (in input) holds(v values) bool {
	return v[in.at[0]] == in.want[0] && (in.what != move || v[in.at[1]] == in.want[1])
}

// done is what the values are behind the call.
func (in input) done(v values) values {
	switch in.what {
	case get:
	case add:
		v[in.at[0]] += in.amount
	case move:
		if in.holds(v) {
			v[in.at[0]], v[in.at[1]] = in.set[0], in.set[1]
		}
	case swap:
		if in.holds(v) {
			v[in.at[0]] = in.set[0]
		}
	}
	return v
}

// fits says whether an answer can be that of the call, made at these values.
func (in input) fits(out output, v values) bool {
	switch {
	case out.unknown:
		return true
	case in.what == get:
		return out.value == v[in.at[0]]
	case in.what == add:
		return out.value == v[in.at[0]]+in.amount
	case out.failed:
		return out.value == v[in.at[out.op]] && out.value != in.want[out.op]
	}
	return in.holds(v)
}

// model is one map that everybody works on, one after the other. A call without an
// answer ends behind all others, so it can have been done at any time, and where the
// search puts it last, never.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return values{} },
		Step: func(state, call, answer any) (bool, any) {
			v, in, out := state.(values), call.(input), answer.(output)
			if !in.fits(out, v) {
				return false, state
			}
			return true, in.done(v)
		},
		DescribeOperation: func(call, answer any) string { return fmt.Sprintf("%+v gave %+v", call, answer) },
	}
}
