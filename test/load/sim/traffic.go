package main

import "math/rand/v2"

// dayCurve is the share of a day's messages in each of its hours: people of one time
// zone, at work and in the evening.
var dayCurve = [24]float64{
	.010, .006, .004, .003, .004, .008, .018, .035, .058, .072, .076, .072,
	.062, .066, .072, .070, .064, .056, .048, .052, .056, .046, .028, .014,
}

// busiest is the hour with the most messages.
func busiest() (share float64) {
	for _, s := range dayCurve {
		share = max(share, s)
	}
	return share
}

// Traffic is what users do in a window of time.
type Traffic struct {
	Users  int
	Window float64 // seconds that are counted, at the busiest hour of the day
	Before float64 // seconds of the same traffic before them
	// Burst is the share of all users who send one message more in the first minute of
	// the window, over a connection of their own: something has happened.
	Burst float64
}

// burstSeconds is how long it takes them.
const burstSeconds = 60

// rate is how many messages come in a second.
func (t Traffic) rate() float64 {
	return float64(t.Users) * messagesADay * busiest() / 3600
}

// play plans the traffic in a simulation. Messages come by themselves (Poisson), whether
// or not earlier ones have been answered: each from one of the sessions that somebody is
// in, who thinks for a time before the next. One in messagesAVisit begins a visit and
// connects first.
func (t Traffic) play(s *sim) {
	active := max(1, int(t.rate()*thinkSeconds))
	next := 0
	var say func()
	say = func() {
		next++
		s.arrive(&message{session: s.rand.IntN(active), number: next, connects: s.rand.Float64() < 1/messagesAVisit})
		s.after(s.rand.ExpFloat64()/t.rate(), say)
	}
	s.after(s.rand.ExpFloat64()/t.rate(), say)
	for i := range int(float64(t.Users) * t.Burst) {
		m := &message{session: -1 - i, connects: true} // sessions apart from those above
		s.after(t.Before+s.rand.Float64()*burstSeconds, func() { s.arrive(m) })
	}
}

// simulate is one stack under some traffic.
func simulate(l Limits, w Work, t Traffic, seed uint64) Result {
	s := newSim(l, w, seed, t.Before)
	t.play(s)
	return s.finish(t.Before + t.Window)
}

// runSeconds is how long a run takes: most are plain, some have tool rounds; each model
// call takes half as long to one and a half times as long as the mean.
func runSeconds(r *rand.Rand) float64 {
	calls := 1
	if r.Float64() < toolShare {
		calls += toolRounds
	}
	seconds := runnerOverhead + float64(calls-1)*roundOverhead
	for range calls {
		seconds += modelSeconds * (0.5 + r.Float64())
	}
	return seconds
}
