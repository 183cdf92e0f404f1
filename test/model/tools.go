package model

// tools is one step with two tool calls that must not happen twice.
func (m *machine) tools(s State, i uint8) {
	sl := &s.slots[i]
	r := sl.run - 1
	st := &s.runs[r]
	switch sl.pc {
	case rCalls:
		row := uint8(ledStarted)
		if m.weak(NoLedger) {
			row = ledPlanned
		}
		m.commit(s, i, opCalls, write{
			do:   func(s *State) { m.callsRow(s, r, row) },
			then: func(_ *State, sl *slot) { sl.pc, sl.cur = rCheck, 0 },
		})
	case rPlan:
		row := uint8(ledPlanned)
		if m.weak(LeaveBeforeTools) {
			row = ledStarted
		}
		m.commit(s, i, opPlan, write{
			do:   func(s *State) { m.callsRow(s, r, row) },
			then: func(_ *State, sl *slot) { sl.pc = rLeave },
		})
	case rLedger:
		m.ledger(s, i)
	case rBegin:
		skip := sl.skip
		m.commit(s, i, opBegin, write{
			do: func(s *State) {
				for c := range uint8(maxCalls) {
					if skip&bit(c) == 0 {
						s.runs[r].led[c] = ledStarted
						if m.weak(NoLedger) {
							s.runs[r].led[c] = ledPlanned
						}
					}
				}
			},
			then: func(_ *State, sl *slot) { m.nextCall(sl, 0) },
		})
	case rCheck:
		m.check(s, i)
	case rEffect:
		if st.eff[sl.cur]++; st.eff[sl.cur] > 1 {
			s.breaks(twice)
		}
		if m.nextCall(sl, sl.cur+1); sl.pc == rCheck {
			sl.pc, sl.cur = rResult, first(^sl.skip&(bit(maxCalls)-1))
		}
		m.add(opEffect, r+1, s)
	case rResult:
		cur := sl.cur
		m.commit(s, i, opResult, write{
			do:   func(s *State) { s.runs[r].led[cur] = ledDone },
			then: func(_ *State, sl *slot) { m.nextCall(sl, cur+1) },
		})
	case rResults:
		m.commit(s, i, opResults, write{
			do: func(s *State) {
				st := &s.runs[r]
				if st.prog != progCalls && !m.weak(ToolsFirst) {
					s.breaks(invalid)
				}
				st.prog = progDone
				st.led = [maxCalls]uint8{ledDone, ledDone}
				s.stalled = 0
				m.userRow(s, r)
			},
			then: func(_ *State, sl *slot) { sl.pc, sl.skip, sl.cur = rLook, 0, 0 },
		})
	}
}

// callsRow is the model's message with its calls and their ledger rows.
func (m *machine) callsRow(s *State, r, row uint8) {
	st := &s.runs[r]
	if st.prog != progNone {
		s.breaks(invalid)
	}
	st.prog = progCalls
	st.led = [maxCalls]uint8{row, row}
	s.stalled = 0
	m.userRow(s, r)
}

// userRow is the run's message in the transcript, with its first commit (A4).
func (m *machine) userRow(s *State, r uint8) {
	st := &s.runs[r]
	if st.user == 0 {
		st.user = 1
		return
	}
	if st.user == 1 && m.weak(UserRowAgain) && s.attempt > 1 {
		st.user = 2
		s.breaks(doubled)
	}
}

// ledger reads what the attempt before this one left of the calls.
func (m *machine) ledger(s State, i uint8) {
	sl := &s.slots[i]
	r := sl.run - 1
	planned := false
	for c := range uint8(maxCalls) {
		switch s.runs[r].led[c] {
		case ledDone:
			sl.skip |= bit(c)
		case ledStarted:
			if m.weak(StartedRuns) {
				planned = true
				continue
			}
			sl.skip |= bit(c)
			if s.faulty == 0 {
				s.breaks(unknown)
			}
		default:
			planned = true
		}
	}
	if sl.pc = rResults; planned {
		sl.pc = rBegin
	}
	m.add(opLedger, r+1, s)
}

// nextCall goes to the next call without a result, from c on.
func (m *machine) nextCall(sl *slot, c uint8) {
	for ; c < maxCalls; c++ {
		if sl.skip&bit(c) == 0 {
			sl.pc, sl.cur = rCheck, c
			return
		}
	}
	sl.pc, sl.cur = rResults, 0
}

// check is what comes before a call: nothing starts under a claim that is not fresh.
func (m *machine) check(s State, i uint8) {
	sl := &s.slots[i]
	if s.marked() && s.token == sl.tok {
		n := s
		n.slots[i].pc, n.slots[i].kind, n.slots[i].skip, n.slots[i].cur = rMail, aborted, 0, 0
		m.add(opSeesMark, sl.run, n)
	}
	if sl.has(fOld) && !m.weak(StaleStarts) {
		sl.skip |= bit(sl.cur)
		m.nextCall(sl, sl.cur+1)
		m.add(opNotFresh, sl.run, s)
		return
	}
	if sl.has(fOld) {
		s.breaks(lapsed)
	}
	sl.pc = rEffect
	m.add(opFresh, sl.run, s)
}
