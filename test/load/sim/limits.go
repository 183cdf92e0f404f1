package main

import (
	"cmp"
	"math"
)

// bucket is a token bucket: rate tokens a second, at most burst of them kept. A rate of
// 0 is no limit.
type bucket struct {
	rate, burst float64
	tokens      float64
	at          float64
	begun       bool
}

func (b *bucket) fill(now float64) {
	if !b.begun {
		b.tokens, b.at, b.begun = b.burst, now, true
	}
	b.tokens = min(b.burst, b.tokens+(now-b.at)*b.rate)
	b.at = now
}

// take takes a token, if there is one.
func (b *bucket) take(now float64) bool {
	if b.rate == 0 {
		return true
	}
	b.fill(now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// owe takes n tokens whether they are there or not: what can't be refused leaves less
// for what can.
func (b *bucket) owe(now, n float64) {
	if b.rate == 0 {
		return
	}
	b.fill(now)
	b.tokens -= n
}

// series counts by the second and knows the most of a second. Seconds come in order,
// but for a few that are told ahead.
type series struct {
	counts map[int]float64
	peak   float64
	from   float64 // what is before is not looked at
	width  float64 // of a count; 0: a second
}

func (s *series) add(at, n float64) {
	if at < s.from {
		return
	}
	if s.counts == nil {
		s.counts = map[int]float64{}
	}
	second := int(math.Floor(at / cmp.Or(s.width, 1)))
	s.counts[second] += n
	s.peak = max(s.peak, s.counts[second])
}

// function is a Lambda function: environments that are busy or warm, and how fast new
// ones may be made.
type function struct {
	busy, environments int
	scaling            bucket
	started            int
	scaled             *series // by when they were made; nil: nobody asks
}

// start begins an invocation if an environment is free or may be made.
func (f *function) start(now float64) bool {
	if f.busy == f.environments {
		if !f.scaling.take(now) {
			return false
		}
		f.environments++
		f.started++
		if f.scaled != nil {
			f.scaled.add(now, 1)
		}
	}
	f.busy++
	return true
}

func (f *function) end() { f.busy-- }
