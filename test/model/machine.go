package model

// class says what makes a transition happen.
type class uint8

const (
	step  class = iota // a live process goes on, or a client does something
	timed              // a timer that somebody armed for it comes
	time               // time passes: leases run out, messages become visible, frozen processes thaw
	swept              // the watchdog
	fault
)

// edge is one transition.
type edge struct {
	op  op
	who uint8 // the run that it is about, index+1; 0: none
	to  State
	// Runner slots are kept in order, so that states that differ only in which of them
	// does what are one. swapped says that this transition exchanged the two.
	swapped bool
	lost    bool // its answer is lost
}

func (e *edge) class() class {
	switch {
	case e.lost:
		return fault
	case e.op == opWakeTime && (e.to.uns != 0 || e.to.cut() != 0):
		return swept // what has ended must not wait for a sleeper
	}
	return ops[e.op].class
}

// machine gives the transitions of a state, under the rules that a variant leaves.
type machine struct {
	sc  Scenario
	v   Variant
	out []edge
	// after says that a run is like the one before it in everything, so that nothing is
	// lost if it is accepted after it.
	after [maxRuns]bool
}

func newMachine(sc Scenario, v Variant) *machine {
	m := &machine{sc: sc, v: v}
	for r := uint8(1); r < maxRuns; r++ {
		named := func(n uint8) bool { return n == r || n == r+1 }
		m.after[r] = sc.Runs[r] == sc.Runs[r-1] && !named(sc.Abort) && !named(sc.Wait)
	}
	return m
}

func (m *machine) weak(f Flaw) bool { return m.v.Flaws&f != 0 }

// start is the state before anything has happened.
func (m *machine) start() State {
	s := State{left: m.sc.Faults, polls: m.sc.Conflicts}
	for r := range s.gates {
		if m.sc.Runs[r].Kind == None {
			s.gates[r].pc = gOver
		}
		s.gates[r].repeats = m.sc.Runs[r].Repeats
	}
	if m.sc.Abort == 0 {
		s.abort.pc = abOver
	}
	if !m.sc.Stop {
		s.stop = stOver
	}
	if m.sc.Command == "" {
		s.cmd.pc = cmOver
	}
	if m.sc.Wait == 0 {
		s.wait.pc = waOver
	}
	if !m.sc.Subscribe {
		s.sub = 2
	}
	return s
}

// next lists the transitions out of a state, in an order that is always the same. The
// slice is good until the next call.
func (m *machine) next(s *State) []edge {
	m.out = m.out[:0]
	for r := range uint8(maxRuns) {
		m.gateway(*s, r)
	}
	for i := range uint8(maxSlots) {
		if s.slots[i].pc != rIdle && !s.slots[i].has(fFrozen) {
			m.runner(*s, i)
		}
	}
	m.receive(*s)
	m.aborts(*s)
	m.stops(*s)
	m.commands(*s)
	m.waits(*s)
	m.notifier(*s)
	m.subscribes(*s)
	m.timers(*s)
	m.times(*s)
	m.faults(*s)
	m.watchdog(*s)
	return m.out
}

// add makes a transition to s.
func (m *machine) add(o op, who uint8, s State) { m.put(edge{op: o, who: who, to: s}) }

// addLost is add for a write that was applied and whose answer is lost.
func (m *machine) addLost(o op, who uint8, s State) {
	if s.left[lostAnswer] == 0 {
		return
	}
	s.left[lostAnswer]--
	s.faulty = 1
	m.put(edge{op: o, who: who, to: s, lost: true})
}

func (m *machine) put(e edge) {
	m.invariants(&e.to)
	forget(&e.to)
	if less(&e.to.slots[1], &e.to.slots[0]) {
		e.to.slots[0], e.to.slots[1] = e.to.slots[1], e.to.slots[0]
		e.swapped = true
	}
	m.out = append(m.out, e)
}

// forget drops origin leases that nobody will look at any more.
func forget(s *State) {
	for r := range uint8(maxRuns) {
		if s.runs[r].org == 0 || s.uns&bit(r) != 0 {
			continue
		}
		if (s.slots[0].todo|s.slots[1].todo)&bit(r) == 0 {
			s.runs[r].org = 0
		}
	}
}

// less orders slots: those at work first.
func less(a, b *slot) bool {
	switch {
	case a.pc != b.pc:
		return a.pc > b.pc
	case a.tok != b.tok:
		return a.tok > b.tok
	case a.msg != b.msg:
		return a.msg < b.msg
	case a.flag != b.flag:
		return a.flag < b.flag
	case a.todo != b.todo:
		return a.todo < b.todo
	case a.done != b.done:
		return a.done < b.done
	case a.held != b.held:
		return a.held < b.held
	case a.cur != b.cur:
		return a.cur < b.cur
	case a.n != b.n:
		return a.n < b.n
	case a.seq != b.seq:
		return a.seq < b.seq
	case a.see != b.see:
		return a.see < b.see
	case a.run != b.run:
		return a.run < b.run
	}
	return a.skip < b.skip || a.skip == b.skip && (a.own < b.own || a.own == b.own && (a.lane < b.lane || a.lane == b.lane && a.kind < b.kind))
}

// lane is the lane of a run.
func (m *machine) lane(r uint8) uint8 { return m.sc.Runs[r].Lane }

// nextLane is the lane of the run that a wake-up is meant for.
func (m *machine) nextLane(s *State) uint8 {
	switch {
	case s.active != 0:
		return m.lane(s.active - 1)
	case s.lowest() != 0:
		return m.lane(s.lowest() - 1)
	}
	return 0
}

// asleep says whether the active run waits for its wake time.
func (m *machine) asleep(s *State) bool {
	if s.active == 0 || s.asleep == 0 {
		return false
	}
	return m.weak(SleepIgnoresMarks) || !s.marked()
}

// maySleep says whether a run may go to sleep: for ever only where somebody will stop
// it.
func (m *machine) maySleep(s *State, r uint8) bool {
	switch {
	case s.left[sleeps] == 0:
		return false
	case !m.sc.SleepForever:
		return true
	case m.sc.Stop:
		return s.stop == stNew
	}
	return m.sc.Abort == r+1 && s.abort.pc == abNew
}

// workLeft says whether a wake-up has anything to do, runs in except not counted as
// unsettled.
func (m *machine) workLeft(s *State, except uint8) bool {
	switch {
	case s.cut() != 0, s.uns&^except != 0:
		return true
	case s.active == 0:
		return s.pend != 0
	}
	return !s.owned() && !m.asleep(s)
}

// full is how many messages of one kind are kept apart: more of them are the same.
const full = 2

// nudge sends a wake-up in a group of its own.
func (m *machine) nudge(s *State, lane uint8) { s.pool[lane] = min(s.pool[lane]+1, full) }

// later sends one through the notifier.
func (m *machine) later(s *State, lane uint8) { s.timer[lane] = 1 }

// break_ remembers the first thing that a transition broke.
func (s *State) breaks(c code) {
	if s.violate == sound {
		s.violate = c
	}
}

// settled says whether all that was accepted is done and everybody has been told.
func (m *machine) settled(s *State) bool {
	if s.active != 0 || s.pend|s.mail|s.uns != 0 || s.busy != 0 || s.owner != 0 && s.lease != 0 {
		return false
	}
	for r := range s.runs {
		if g := s.gates[r].pc; g != gOver && g != gDead {
			return false
		}
		if st := &s.runs[r]; st.st != absent && st.st != ended || m.owes(s, uint8(r)) {
			return false
		}
	}
	for i := range s.slots {
		if s.slots[i].pc != rIdle {
			return false
		}
	}
	if s.abort.pc != abOver || s.stop != stOver || s.cmd.pc != cmOver || s.wait.pc != waOver && s.wait.pc != waDead {
		return false
	}
	return s.wait.row == rowNone || s.wait.row == rowGone
}

// owes says whether the caller of a run that has ended was not told. One that was
// answered as stopped in the reply has nothing to wait for.
func (m *machine) owes(s *State, r uint8) bool {
	st := &s.runs[r]
	return m.sc.Runs[r].Origin && st.st == ended && st.told == 0 && st.seq != 0
}
