package main

import (
	"math"
	"math/rand/v2"
)

// Limits are the quotas and knobs that a message meets in one stack. 0 is none.
type Limits struct {
	Lane     int     // MaximumConcurrency of the lane's mapping: laneway.lane.main
	Account  int     // concurrent executions of the account
	Scaling  float64 // new environments a second of a function
	Pollers  float64 // batches at once with which a mapping begins
	Growth   float64 // more of them a second
	Connects float64 // new connections a second: laneway.connect.rate
	Requests float64 // requests and posts a second of API Gateway
	Burst    float64 // and its bucket
}

// Work is what a message asks for.
type Work struct {
	Accept float64 // seconds of the gateway
	Run    func(r *rand.Rand) float64
	Posts  float64 // posts to connections of a run, mean
}

// message is one message of a user.
type message struct {
	session  int
	number   int     // in its session
	connects bool    // it is the first of a visit
	accepted float64 // when its wake-up was sent
	ready    float64 // when no other of its session was before it
	tries    int
}

// Result is what came of a simulation, counted from the beginning of its window.
type Result struct {
	Messages int
	Waits    []float64 // seconds from the wake-up to its runner, of those that had one
	Own      []float64 // of them, what was not waiting for the session's other runs
	Waiting  int       // accepted, not begun when the window ended

	Connects, Requests, Sends, Arrivals series
	Runner, Gateway                     int    // most at once
	Started                             int    // environments of the runner
	Scaled                              series // of them, by ten seconds
	RefusedConnects, RefusedRequests    int
	RefusedInvocations                  int
}

// sim is one stack while time goes by. It has one lane: what the others do is the same,
// with other caps.
type sim struct {
	agenda
	limits Limits
	work   Work
	rand   *rand.Rand
	from   float64

	connects, requests bucket
	gateway, runner    function
	pollers, grown     float64            // batches that the mapping handles at once by now, and since when
	groups             map[int][]*message // what waits behind the head of a session, head first
	ready              []*message         // heads that may begin, in the order of their wake-ups
	head               int                // of ready
	blocked            bool               // a later look at ready is planned
	res                Result

	onStart func(m *message) // for tests
	onEnd   func(m *message)
}

func newSim(l Limits, w Work, seed uint64, from float64) *sim {
	s := &sim{limits: l, work: w, rand: rand.New(rand.NewPCG(seed, 1)), from: from, groups: map[int][]*message{}}
	s.connects = bucket{rate: l.Connects, burst: 2 * l.Connects}
	s.requests = bucket{rate: l.Requests, burst: l.Burst}
	s.gateway.scaling = bucket{rate: l.Scaling, burst: 10 * l.Scaling}
	s.runner.scaling = s.gateway.scaling
	s.pollers = l.Pollers
	s.res.Scaled.width = scalingWindow
	s.runner.scaled = &s.res.Scaled
	for _, c := range []*series{&s.res.Connects, &s.res.Requests, &s.res.Sends, &s.res.Arrivals, &s.res.Scaled} {
		c.from = from
	}
	return s
}

func (s *sim) counted() bool { return s.now >= s.from }

// again has a refused client try again: after a second, doubled each time, with jitter.
func (s *sim) again(m *message, count *int, what func(*message)) {
	if s.counted() {
		*count++
	}
	wait := min(30, math.Pow(2, float64(m.tries))) * (0.5 + s.rand.Float64())
	m.tries++
	s.after(wait, func() { what(m) })
}

// arrive is a message that its user has written.
func (s *sim) arrive(m *message) {
	s.res.Arrivals.add(s.now, 1)
	if s.counted() {
		s.res.Messages++
	}
	if m.connects {
		s.connect(m)
		return
	}
	s.frame(m)
}

func (s *sim) connect(m *message) {
	s.res.Connects.add(s.now, 1)
	if !s.connects.take(s.now) {
		s.again(m, &s.res.RefusedConnects, s.connect)
		return
	}
	s.requests.owe(s.now, handshake)
	s.res.Requests.add(s.now, handshake)
	s.after(s.work.Accept, func() { s.frame(m) })
}

// frame is the call of agent at the WebSocket API, and the gateway behind it.
func (s *sim) frame(m *message) {
	s.res.Requests.add(s.now, 1)
	if !s.requests.take(s.now) {
		s.again(m, &s.res.RefusedRequests, s.frame)
		return
	}
	if s.full() || !s.gateway.start(s.now) {
		s.again(m, &s.res.RefusedInvocations, s.frame)
		return
	}
	if s.counted() {
		s.res.Gateway = max(s.res.Gateway, s.gateway.busy)
	}
	s.after(s.work.Accept, func() {
		s.gateway.end()
		s.accept(m)
	})
}

func (s *sim) full() bool {
	return s.limits.Account > 0 && s.gateway.busy+s.runner.busy >= s.limits.Account
}

// accept sends the wake-up: it waits behind those of its session.
func (s *sim) accept(m *message) {
	m.accepted = s.now
	s.res.Sends.add(s.now, 1)
	waiting, busy := s.groups[m.session]
	s.groups[m.session] = append(waiting, m)
	if !busy {
		m.ready = s.now
		s.ready = append(s.ready, m)
		s.dispatch()
	}
}

// polled says whether the mapping handles one more batch. It grows while more is wanted.
func (s *sim) polled() bool {
	if s.limits.Pollers == 0 || s.runner.busy < int(s.pollers) {
		return true
	}
	s.pollers += s.limits.Growth * min(s.now-s.grown, lookAgain)
	s.grown = s.now
	return s.runner.busy < int(s.pollers)
}

// lookAgain is when a mapping that got no environment tries again.
const lookAgain = 0.1

// dispatch hands heads of sessions to the runner, as many as may run.
func (s *sim) dispatch() {
	for s.head < len(s.ready) {
		if s.limits.Lane > 0 && s.runner.busy >= s.limits.Lane {
			return // the end of a run looks again
		}
		if !s.polled() || s.full() || !s.runner.start(s.now) {
			if !s.blocked {
				s.blocked = true
				s.after(lookAgain, func() { s.blocked = false; s.dispatch() })
			}
			return
		}
		m := s.ready[s.head]
		s.ready[s.head] = nil // it may be collected
		s.head++
		s.begin(m)
	}
	s.ready, s.head = s.ready[:0], 0
}

func (s *sim) begin(m *message) {
	if s.onStart != nil {
		s.onStart(m)
	}
	if m.accepted >= s.from {
		s.res.Waits = append(s.res.Waits, s.now-m.accepted)
		s.res.Own = append(s.res.Own, s.now-m.ready)
	}
	if s.counted() {
		s.res.Runner = max(s.res.Runner, s.runner.busy)
	}
	takes := s.work.Run(s.rand)
	// Posts are spread over the run.
	for i := range int(takes) + 1 {
		s.res.Requests.add(s.now+float64(i), s.work.Posts/float64(int(takes)+1))
	}
	s.after(takes, func() {
		s.requests.owe(s.now, s.work.Posts)
		s.runner.end()
		if s.onEnd != nil {
			s.onEnd(m)
		}
		rest := s.groups[m.session][1:]
		if len(rest) == 0 {
			delete(s.groups, m.session)
		} else {
			s.groups[m.session] = rest
			rest[0].ready = s.now
			s.ready = append(s.ready, rest[0])
		}
		s.dispatch()
	})
}

// finish ends the simulation and counts what waits.
func (s *sim) finish(until float64) Result {
	s.run(until)
	for _, all := range s.groups {
		s.res.Waiting += len(all)
	}
	s.res.Waiting -= s.runner.busy
	s.res.Started = s.runner.started
	return s.res
}
