package model

// settling begins lane.Service.SettleFree for what was read.
func (m *machine) settling(s *State, i uint8) {
	sl := &s.slots[i]
	if sl.pc = rPick; s.cut() != 0 {
		sl.pc = rCut
		return
	}
	sl.todo = s.uns
}

// settlesOwn begins the settling behind a terminal: its own run first, without asking
// for the origin's lease, which the terminal took.
func (m *machine) settlesOwn(s *State, sl *slot) {
	r := sl.run - 1
	*sl = slot{msg: sl.msg, lane: sl.lane, flag: fTerm, cur: r, todo: s.took(r) | bit(r)}
	if m.weak(AckFirst) {
		*sl = slot{pc: rAck, msg: sl.msg, lane: sl.lane}
		return
	}
	m.tell(sl)
}

// tell goes to the first thing that the end of run cur owes.
func (m *machine) tell(sl *slot) {
	switch {
	case m.sc.Runs[sl.cur].Origin:
		sl.pc = rCaller
	case m.sc.Wait == sl.cur+1:
		sl.pc = rTake
	default:
		m.told(sl)
	}
}

// told goes on behind run cur.
func (m *machine) told(sl *slot) {
	sl.done |= bit(sl.cur)
	sl.todo &^= bit(sl.cur)
	sl.cur, sl.kind = 0, 0
	if sl.pc = rPick; sl.todo == 0 {
		sl.pc = rWhatIs
	}
}

// settler is L5, step by step.
func (m *machine) settler(s State, i uint8) {
	sl := &s.slots[i]
	switch sl.pc {
	case rCut:
		if set := s.cut(); set != 0 {
			r := first(set)
			s.pend &^= bit(r)
			m.endWaiting(&s, r)
			if s.cut() == 0 {
				sl.pc = rAgain
			}
			m.add(opEndCut, r+1, s)
			return
		}
		sl.pc = rAgain
		m.add(opEndCutRefused, 0, s)
	case rAgain:
		if sl.pc, sl.todo = rPick, s.uns; sl.todo == 0 {
			sl.pc = rWhatIs
		}
		m.add(opReadUnsettled, 0, s)
	case rPick:
		m.lease(s, i)
	case rCaller:
		m.caller(s, i)
	case rTake, rPost, rDelete:
		m.row(s, i)
	case rWhatIs:
		m.whatIs(s, i)
	case rNudge:
		if r := s.lowest(); m.weak(NudgedAsAccept) && r != 0 {
			m.sendAccept(&s, r-1)
		} else {
			m.nudge(&s, sl.skip)
		}
		m.behind(sl)
		m.add(opNudgeSettled, 0, s)
	case rRemove:
		m.remove(s, i)
	case rDecide:
		m.decide(&s, i, sl.held)
		m.add(opDecideFree, 0, s)
	}
}

// lease makes this settler the one who tells the end of the next run.
func (m *machine) lease(s State, i uint8) {
	sl := &s.slots[i]
	r := first(sl.todo)
	st := &s.runs[r]
	if st.org != 0 || st.st == delivered && s.runs[st.into-1].out == none {
		sl.todo &^= bit(r)
		switch {
		case m.weak(HeldRemoved):
			sl.done |= bit(r)
		case m.weak(HeldNudged):
			sl.held |= bit(r)
			m.nudge(&s, m.nextLane(&s))
		default:
			sl.held |= bit(r)
			m.later(&s, m.nextLane(&s))
		}
		if sl.todo == 0 {
			sl.pc = rWhatIs
		}
		m.add(opHeld, r+1, s)
		return
	}
	st.org, sl.cur = 1, r
	if st.st == delivered {
		m.outcome(&s, r, s.runs[st.into-1].out)
		st.st = ended
	}
	m.tell(sl)
	m.add(opLease, r+1, s)
}

// caller tells the one who asked for the run.
func (m *machine) caller(s State, i uint8) {
	sl := &s.slots[i]
	r := sl.cur
	if st := &s.runs[r]; st.told < 2 {
		if st.told++; st.told == 2 && s.faulty == 0 {
			s.breaks(toldTwice)
		}
	}
	if m.sc.Wait == r+1 {
		sl.pc = rTake
	} else {
		m.told(sl)
	}
	m.add(opTellCaller, r+1, s)
}

// whatIs reads META behind what was told.
func (m *machine) whatIs(s State, i uint8) {
	sl := &s.slots[i]
	sl.n, sl.seq, sl.see = s.setN, s.seq, s.uns&sl.done
	sl.flag &^= fIdle
	if s.busy != 0 && s.active == 0 && s.pend == 0 && s.mail == 0 && sl.see == s.uns {
		sl.flag |= fIdle
	}
	later := sl.held != 0 && !sl.has(fTerm)
	if !later && m.workLeft(&s, sl.done) && !m.weak(NoLook) {
		sl.pc, sl.skip = rNudge, m.nextLane(&s)
	} else {
		m.behind(sl)
	}
	m.add(opReadSettled, 0, s)
}

// behind goes on behind the wake-up for what is left.
func (m *machine) behind(sl *slot) {
	if sl.skip = 0; sl.see != 0 || sl.has(fIdle) {
		sl.pc = rRemove
		return
	}
	m.finished(sl)
}

// finished goes on behind the settling.
func (m *machine) finished(sl *slot) {
	held, flag := sl.held, sl.flag
	*sl = slot{pc: rAck, msg: sl.msg, lane: sl.lane}
	if held != 0 && flag&fTerm == 0 {
		sl.pc, sl.held = rDecide, held
	}
}

// remove takes exactly the runs that were told off the unsettled ones; settlers come
// one after another by a count that each raises.
func (m *machine) remove(s State, i uint8) {
	sl := &s.slots[i]
	idle := sl.has(fIdle)
	holds := (s.setN == sl.n || m.weak(SettlersUnordered)) && (!idle || s.seq == sl.seq || m.weak(KeyStale))
	if !holds {
		sl.pc, sl.see = rWhatIs, 0
		m.add(opRemoveRefused, 0, s)
		return
	}
	gone := sl.see & s.uns
	if m.weak(ClearedWhole) {
		gone = s.uns
	}
	for r := range uint8(maxRuns) {
		if gone&bit(r) == 0 {
			continue
		}
		if m.owes(&s, r) || s.runs[r].out == none {
			s.breaks(untold)
		}
	}
	s.uns &^= gone
	if s.setN++; m.weak(SettlersUnordered) {
		s.setN = 0
	}
	if idle {
		s.busy = 0
	}
	m.finished(sl)
	m.add(opRemove, 0, s)
}
