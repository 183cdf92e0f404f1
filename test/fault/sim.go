package fault

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/claim"
	"laneway/shared/table"
	"laneway/shared/table/tabletest"
)

// Config of one simulation.
type Config struct {
	Seed uint64
	// Profile names what the scenario is made of; empty: the seed chooses.
	Profile string
	// Mutation makes the product wrong in one way; nil: as it is.
	Mutation *Mutation
	// Record keeps the timeline. Without it only violations are reported.
	Record bool
	// Lease is that of claims; all times that hang together with it are as much shorter.
	// 0: the default.
	Lease time.Duration
	// Open makes the tables, in the bubble; nil: a map in memory.
	Open func() (tables table.Store, closeTables func() error, err error)

	script *script
}

// script is a scenario that is told, not drawn.
type script struct {
	profile Profile
	play    func(*Sim) // adds the requests
	// at sees each call before it goes on, and may do something about it: then it gives
	// true, and the call waits.
	at func(*Sim, *call) bool
}

// Violation is a rule that was broken.
type Violation struct {
	Rule string // the checks' names, see docs/guarantees.md
	Text string
	Step int
	At   time.Duration
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (step %d, %s)", v.Rule, v.Text, v.Step, v.At.Truncate(time.Millisecond))
}

// Report is what came of a simulation.
type Report struct {
	Config
	Violations []Violation
	Timeline   []string
	Digest     uint64         // of the order of all calls: two runs that agree were the same
	Steps      int            // calls, timers, messages
	Virtual    time.Duration  // time that passed in it
	Points     map[string]int // named kill points at which a process was killed
	Faults     map[string]int // by kind
	Ends       map[string]int // how runs ended
	// Recovered are the times from the death of a claim's holder to the next claim.
	Recovered []time.Duration
}

const (
	// maxSteps bounds a simulation: one that is not at rest by then never will be.
	maxSteps = 60_000
	// maxVirtual likewise, in the simulation's own time.
	maxVirtual = 3 * time.Hour
)

// Sim is one simulation. Its fields under mu are shared with the processes'
// goroutines, which run only while the scheduler waits; the rest is the scheduler's.
type Sim struct {
	cfg   Config
	p     Profile
	rng   *rand.Rand
	start time.Time

	procs   []*proc // all that ever were, alive ones found by alive
	slots   []*slot
	boxes   *boxes
	conns   map[string]*conn
	ops     []*op
	store   *ground
	ghost   *ghost
	budget  budget
	late    kind // of writes that are overtaken
	calm    bool // nothing goes wrong any more
	sticky  *proc
	sweepAt time.Duration

	closeTables func() error

	mu         sync.Mutex
	parked     []*call
	timers     []*timer
	seq        int
	lastFault  int // step of the last thing that went wrong
	steps      int
	violations []Violation
	line       timeline
	points     map[string]int
	faults     map[string]int
}

// Run makes one simulation in a bubble of its own.
func Run(t *testing.T, c Config) *Report {
	t.Helper()
	var r *Report
	synctest.Test(t, func(*testing.T) { r = newSim(c).run() })
	return r
}

func newSim(c Config) *Sim {
	s := &Sim{
		cfg: c, rng: rand.New(rand.NewPCG(c.Seed, 0x6c616e65)), start: time.Now(),
		conns: make(map[string]*conn), points: make(map[string]int), faults: make(map[string]int),
	}
	s.line.on = c.Record
	s.p = profileOf(c)
	if c.script != nil {
		s.p = c.script.profile
	}
	s.boxes = newBoxes(s)
	s.store = &ground{s: s, tables: tabletest.NewModel()}
	if c.Open != nil {
		var err error
		if s.store.tables, s.closeTables, err = c.Open(); err != nil {
			s.violatef("kit", "tables: %v", err)
		}
	}
	s.ghost = newGhost(s)
	s.plan()
	return s
}

func (s *Sim) run() *Report {
	s.open()
	for s.next() {
	}
	s.close()
	s.ghost.finish()
	if s.closeTables != nil {
		if err := s.closeTables(); err != nil {
			s.violatef("kit", "tables: %v", err)
		}
	}
	r := &Report{
		Config: s.cfg, Violations: s.violations, Timeline: s.line.lines, Digest: s.line.digest, Steps: s.steps, Virtual: s.now(),
		Points: s.points, Faults: s.faults, Ends: s.ghost.ends(), Recovered: s.ghost.recovered,
	}
	r.Profile = s.p.Name
	return r
}

// next makes one step; false: there is none, or one went wrong.
func (s *Sim) next() bool {
	synctest.Wait()
	switch {
	case len(s.violations) > 0:
		return false
	case s.steps >= maxSteps || s.now() > maxVirtual:
		s.violatef("rest", "does not come to rest: %s", s.ghost.left())
		return false
	}
	s.persist()
	if !s.calm && s.played() {
		s.settleDown()
	}
	if s.calm && s.atRest() {
		return false
	}
	do := s.choose()
	if do == nil {
		s.violatef("rest", "nothing can go on: %s", s.ghost.left())
		return false
	}
	s.mu.Lock()
	s.steps++
	s.mu.Unlock()
	do()
	return true
}

// close ends every process and sees to it that nothing of them goes on.
func (s *Sim) close() {
	for _, p := range s.procs {
		s.end(p)
	}
	synctest.Wait()
}

// now is the time that has passed. Wall time of the bubble is the truth; processes may
// see it a little wrong.
func (s *Sim) now() time.Duration { return time.Since(s.start) }

func (s *Sim) violatef(rule, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := Violation{rule, fmt.Sprintf(format, args...), s.steps, time.Since(s.start)}
	s.violations = append(s.violations, v)
	s.line.add(s.steps, v.At, "!!", "VIOLATION "+v.Rule+": "+v.Text)
}

// notef writes a line of the timeline.
func (s *Sim) notef(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sayf(who, format, args...)
}

// sayf is notef under the lock.
func (s *Sim) sayf(who, format string, args ...any) {
	s.line.addf(s.steps, time.Since(s.start), who, format, args...)
}

// wrong notes that something goes wrong now: answers may come twice after it.
func (s *Sim) wrong(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[kind]++
	s.lastFault = s.steps
}

// times are those of rule C1, shorter with a shorter lease.
func (s *Sim) times() claim.Times {
	if s.cfg.Lease == 0 {
		return claim.Times{}
	}
	return claim.Times{Lease: s.cfg.Lease, Poll: s.cfg.Lease / 5}
}

// sweepEvery is how often the watchdog looks.
func (s *Sim) sweepEvery() time.Duration { return s.times().WithDefaults().Orphan }

// chance is true in one of n cases.
func (s *Sim) chance(n int) bool { return n > 0 && s.rng.IntN(n) == 0 }

func pick[T any](s *Sim, list []T) T { return list[s.rng.IntN(len(list))] }
