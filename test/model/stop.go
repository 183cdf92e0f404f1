package model

// Where an abort is.
const (
	abNew = iota
	abKnows
	abAct
	abNudge
	abOver
)

// Where its run was.
const (
	doCancel = iota + 1
	doWithdraw
	doEnd
)

// aborts is lane.Service.StopRun: the record is read, then META, then the one
// transaction that fits, which is looked for again where its condition failed.
func (m *machine) aborts(s State) {
	if s.abort.pc == abOver {
		return
	}
	ab, r := &s.abort, m.sc.Abort-1
	switch ab.pc {
	case abNew:
		ab.st = s.runs[r].st
		if ab.pc = abKnows; ab.st == absent || ab.st == delivered || ab.st == ended {
			ab.pc = abOver
		}
		m.add(opStopReadsRecord, r+1, s)
	case abKnows:
		ab.pc = abAct
		switch {
		case s.active == r+1:
			ab.do = doCancel
		case ab.st == steered:
			ab.do = doWithdraw
		case s.pend&bit(r) != 0:
			ab.do = doEnd
		default:
			ab.pc, ab.do = abNew, 0
		}
		ab.st = 0
		m.add(opStopReadsSession, r+1, s)
	case abAct:
		m.abortActs(s, r)
	case abNudge:
		m.nudge(&s, m.nextLane(&s))
		s.abort = aborter{pc: abOver}
		m.add(opNudgeStop, r+1, s)
	}
}

func (m *machine) abortActs(s State, r uint8) {
	ab := &s.abort
	lost := ab.flag != 0
	var holds bool
	var o op
	switch ab.do {
	case doCancel:
		o = opCancel
		if holds = s.active == r+1; m.weak(MarkUnnamed) {
			holds = s.active != 0
		}
	case doWithdraw:
		o = opWithdraw
		holds = s.mail&bit(r) != 0 && s.runs[r].st == steered
	case doEnd:
		o = opEndPending
		if holds = s.pend&bit(r) != 0; m.weak(EndPendingBlind) {
			holds = true
		}
	}
	if !holds {
		// The lost answer was a yes, or the run has moved.
		if *ab = (aborter{}); lost {
			ab.pc = abNudge
		}
		m.add(opStopRefused, r+1, s)
		return
	}
	conflict := s
	ab.pc, ab.flag, ab.do = abNudge, 0, 0
	switch o {
	case opCancel:
		s.cancel = r + 1
		if m.weak(MarkUnnamed) {
			s.cancel = s.active
		}
		s.banned |= bit(r)
		if s.owned() {
			s.abort = aborter{pc: abOver}
		}
	case opWithdraw:
		s.mail &^= bit(r)
		m.endWaiting(&s, r)
		s.busy = 1
	case opEndPending:
		s.pend &^= bit(r)
		m.endWaiting(&s, r)
	}
	if m.weak(StopSilent) {
		s.abort = aborter{pc: abOver}
	}
	m.add(o, r+1, s)
	if o != opCancel {
		l := s
		l.abort = aborter{pc: abAct, do: conflict.abort.do, flag: 1}
		m.addLost(o, r+1, l)
	}
	if conflict.polls > 0 {
		// Somebody else's transaction is under way: nothing was written, it is sent again.
		conflict.polls--
		if m.weak(ConflictIsNo) {
			conflict.abort = aborter{pc: abOver}
		}
		m.add(opConflict, r+1, conflict)
	}
}

// endWaiting ends a run that has not begun.
func (m *machine) endWaiting(s *State, r uint8) {
	m.outcome(s, r, aborted)
	s.runs[r].st = ended
	s.banned |= bit(r)
	if !m.weak(EndPendingSilent) {
		s.uns |= bit(r)
	}
}

// Where the session-wide stop is.
const (
	stNew = iota
	stNudge
	stOver
)

// stops is lane.Service.StopAll. Its write holds on the accept sequence that was read,
// so reading and writing are one step.
func (m *machine) stops(s State) {
	switch s.stop {
	case stNew:
		hit := s.pend&^s.cut() != 0 || s.active != 0 && !s.marked()
		if !m.weak(StopIgnoresMail) {
			hit = hit || s.mail != 0
		}
		s.stops = 1
		m.ban(&s, s.seq)
		if s.stop = stOver; hit {
			s.cutoff, s.stop = s.seq, stNudge
			if m.weak(StopSilent) {
				s.stop = stOver
			}
		}
		m.add(opStopAll, 0, s)
	case stNudge:
		s.stop = stOver
		m.nudge(&s, m.nextLane(&s))
		m.add(opNudgeStop, 0, s)
	}
}

// Where a command is.
const (
	cmNew = iota
	cmNest
	cmInner
	cmUnnest
	cmWrite
	cmRelease
	cmLook
	cmNudge
	cmOver
)

const (
	cmFrozen = 1 << iota
	cmThawed // ghost: it was frozen
)

// cmdOwner is the command as an owner; attempts of runs are below it.
const cmdOwner = 0xf0

// commands is rpc.Gateway.underClaim: an inject, a reset, or one that takes the claim
// once more inside.
func (m *machine) commands(s State) {
	c := &s.cmd
	if c.flag&cmFrozen != 0 {
		return
	}
	switch c.pc {
	case cmNew:
		if m.sc.Command == Reset && s.stop != stOver {
			return // it stops the session's work first
		}
		if s.owned() && !m.weak(CommandWaitless) {
			s.cmd = command{pc: cmOver}
			m.add(opBusy, 0, s)
			return
		}
		s.token++
		s.owner, s.lease, s.nest = cmdOwner, 1, 0
		c.tok, c.own, c.pc = s.token, cmdOwner, cmWrite
		if m.sc.Command == Nested {
			c.pc = cmNest
		}
		m.add(opCommand, 0, s)
	case cmNest:
		m.commandWrites(s, opNest, cmInner, func(s *State) { s.nest++ })
	case cmInner:
		m.commandWrites(s, opCommandWrites, cmUnnest, func(*State) {})
	case cmUnnest:
		m.commandWrites(s, opUnnest, cmWrite, func(s *State) {
			s.nest--
			if m.weak(NestedFrees) {
				s.owner, s.lease = 0, 0
			}
		})
	case cmWrite:
		if m.sc.Command == Reset && s.active != 0 && !m.weak(ResetBlind) {
			c.pc = cmRelease // busy: a run that has begun goes on where it was
			m.add(opBusy, 0, s)
			return
		}
		m.commandWrites(s, opCommandWrites, cmRelease, m.commandRow)
	case cmRelease:
		next := uint8(cmLook)
		if m.weak(ReleaseSilent) {
			next = cmOver
		}
		m.commandWrites(s, opRelease, next, func(s *State) { s.owner, s.lease, s.nest = 0, 0, 0 })
	case cmLook:
		*c = command{pc: cmOver}
		if m.workLeft(&s, 0) {
			c.pc = cmNudge
		}
		m.add(opLookReleased, 0, s)
	case cmNudge:
		*c = command{pc: cmOver}
		m.nudge(&s, m.nextLane(&s))
		m.add(opNudgeReleased, 0, s)
	}
}

// commandRow is the command's row in the transcript. Calls that are open get results
// first: nothing stands between a call and its result.
func (m *machine) commandRow(s *State) {
	if s.active == 0 {
		return
	}
	if m.sc.Command == Reset {
		s.breaks(resetUnder)
		return
	}
	if st := &s.runs[s.active-1]; st.prog == progCalls {
		if m.weak(InjectBetween) {
			s.breaks(invalid)
		}
		st.prog = progDone
	}
}

func (m *machine) commandWrites(s State, o op, next uint8, write func(*State)) {
	c := &s.cmd
	if s.token != c.tok || s.owner != c.own {
		if c.flag&cmThawed == 0 {
			s.breaks(lostHold) // it lives: nobody may have taken the claim from it
		}
		s.cmd = command{pc: cmOver}
		m.add(opCommandStale, 0, s)
		return
	}
	s.lease = 1
	write(&s)
	if c.pc = next; next == cmOver || next == cmLook {
		*c = command{pc: next}
	}
	m.add(o, 0, s)
}

// subscribes is connection.Service.Subscribe while a run is active.
func (m *machine) subscribes(s State) {
	if s.sub != 0 || s.active == 0 {
		return
	}
	s.sub = 1
	s.subRev = 1
	m.add(opSubscribe, s.active, s)
}
