package rpc

import (
	"errors"
	"fmt"
	"strings"

	"laneway/shared/lane"
)

// ErrQueue is the class of every error of ParseQueue.
var ErrQueue = errors.New("rpc: queue settings")

// ParseQueue reads the queue settings of a gateway (spec: runtime 2.2), written as
// behind /queue: a mode, debounce:<duration>, cap:<n>, drop:<policy>, each at most
// once or not at all. What is not said is that of lane.DefaultRules.
func ParseQueue(text string) (lane.Rules, error) {
	var d directive
	for word := range strings.FieldsSeq(text) {
		used, err := d.take(word)
		if err != nil {
			return lane.Rules{}, fmt.Errorf("%w: %w", ErrQueue, err)
		}
		if !used || d.reset {
			return lane.Rules{}, fmt.Errorf("%w: %q is none; %s", ErrQueue, clipWord(word), strings.TrimSuffix(queueOptions, "; default to reset"))
		}
	}
	return d.over(lane.DefaultRules), nil
}

// over is what holds where the directive says nothing.
func (d *directive) over(r lane.Rules) lane.Rules {
	r.Mode, r.Drop = orElse(d.mode, r.Mode), orElse(d.drop, r.Drop)
	if d.debounce != nil {
		r.Debounce = *d.debounce
	}
	if d.limit != nil {
		r.Cap = int(*d.limit)
	}
	return r
}
