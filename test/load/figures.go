package main

import (
	"slices"
	"time"
)

// sample is what was measured of one figure: times in ms, other values as they are.
type sample []float64

func (s *sample) add(d time.Duration) { *s = append(*s, float64(d)/1e6) }
func (s *sample) addValue(v float64)  { *s = append(*s, v) }
func (s *sample) median() (float64, bool) {
	if len(*s) == 0 {
		return 0, false
	}
	v := slices.Sorted(slices.Values(*s))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, true
}

func (s *sample) sum() (sum float64) {
	for _, v := range *s {
		sum += v
	}
	return sum
}

// figures are what was found of one gateway.
type figures struct {
	hello, firstRun                sample
	accept, model, first, overhead sample // one turn on an idle gateway
	round                          sample
	rss                            sample // MiB
	filled                         int64  // sessions that there were then
	runs16, accept16, cpu16        sample // runs a second; ms; ms of processor a run
	runs64, accept64, cpu64        sample
	last, bytes                    sample // ms; MB
	ordered                        sample // 1 for each trial in order
	alone, beside                  sample
	long                           string // the session of growth
	grown                          sample // overhead turn by turn
	fresher                        sample // of first turns, beside the last of those
	calls, growthRSS, stopped      sample
}

// growth is the overhead of the last turns against that of first ones: those beside
// them, or where the time was too short for these, the first of the session.
func (f *figures) growth() (first, last float64, ok bool) {
	if len(f.grown) < 2*edge {
		return 0, 0, false
	}
	begin, end := f.grown[:edge], f.grown[len(f.grown)-edge:]
	if len(f.fresher) > 0 {
		begin = f.fresher
	}
	first, _ = begin.median()
	last, _ = end.median()
	return first, last, true
}
