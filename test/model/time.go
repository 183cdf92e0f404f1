package model

// Kinds of faults that a scenario counts out.
const (
	crashes = iota // of runners
	deaths         // of everybody else
	freezes
	lostAnswer
	lostSend
	duplicates
	storeFails
	shortTime // no fault: too little of the invocation is left
	sleeps    // no fault: the run waits for somebody
	nFaults
)

// timers bring what was armed.
func (m *machine) timers(s State) {
	for lane := range uint8(maxLanes) {
		if s.timer[lane] != 0 {
			n := s
			n.timer[lane] = 0
			m.nudge(&n, lane)
			m.add(opTimer, 0, n)
		}
	}
	if s.asleep != 0 && s.active != 0 && !m.sc.SleepForever {
		n := s
		n.asleep = 0
		m.add(opWakeTime, s.active, n)
	}
	if s.alarm != 0 && s.asleep == 0 {
		n := s
		n.alarm = 0
		m.nudge(&n, m.nextLane(&s))
		m.add(opTimer, 0, n)
	}
}

// holderLives says whether somebody who is neither dead nor frozen has the claim.
func (m *machine) holderLives(s *State) bool {
	for i := range s.slots {
		if sl := &s.slots[i]; sl.pc != rIdle && !sl.has(fFrozen) && sl.tok == s.token && sl.own == s.owner {
			return true
		}
	}
	return s.cmd.pc != cmOver && s.cmd.flag&cmFrozen == 0 && s.cmd.tok == s.token && s.cmd.own == s.owner
}

// times are what passing time does where somebody is dead or frozen. Whoever lives
// renews and finishes in time.
func (m *machine) times(s State) {
	for i := range s.slots {
		if s.slots[i].has(fFrozen) {
			m.frozen(s, uint8(i))
		}
	}
	if s.cmd.flag&cmFrozen != 0 {
		n := s
		n.cmd.flag = cmThawed
		m.add(opCommandThaw, 0, n)
	}
	if !m.sc.Eager && m.goesOn(step) {
		return
	}
	if s.owner != 0 && s.lease != 0 && !m.holderLives(&s) {
		n := s
		n.lease = 0
		m.add(opLeaseOver, 0, n)
	}
	for r := range uint8(maxRuns) {
		if s.runs[r].org != 0 && !m.tellerLives(&s, r) {
			n := s
			n.runs[r].org = 0
			m.add(opOriginOver, r+1, n)
		}
	}
	if s.wait.row == rowTaken && s.wait.lease != 0 && !m.answererLives(&s) {
		n := s
		n.wait.lease = 0
		m.add(opRowOver, m.sc.Wait, n)
	}
	for lane := range uint8(maxLanes) {
		if s.inFlight[lane] == orphan && !m.sc.NoRedelivery {
			n := s
			n.inFlight[lane] = free
			m.add(opVisible, 0, n)
		}
		if s.poolDead[lane] != 0 && !m.sc.NoRedelivery {
			n := s
			n.poolDead[lane]--
			m.nudge(&n, lane)
			m.add(opVisible, 0, n)
		}
	}
}

// goesOn says whether a transition of a class is possible.
func (m *machine) goesOn(c class) bool {
	for i := range m.out {
		if m.out[i].class() == c {
			return true
		}
	}
	return false
}

// frozen is what time does to a frozen runner: its message comes again, it thaws.
func (m *machine) frozen(s State, i uint8) {
	sl := &s.slots[i]
	if sl.msg != 0 {
		n := s
		if msg := sl.msg; msg <= maxLanes {
			n.inFlight[msg-1] = free
		} else {
			m.nudge(&n, msg-1-maxLanes)
		}
		n.slots[i].msg = 0
		m.add(opVisible, 0, n)
	}
	sl.flag &^= fFrozen
	who := sl.run
	if sl.tok == 0 {
		m.add(opThaw, who, s)
		return
	}
	if s.token == sl.tok && (s.owner == 0 || s.lease != 0) {
		m.add(opThaw, who, s) // it was short
	}
	if sl.pc < rPick {
		sl.flag |= fThawed
		if sl.pc != rClaim {
			sl.flag |= fOld
		}
	}
	m.add(opThawLate, who, s)
}

// tellerLives says whether somebody who is neither dead nor frozen tells the end of run
// r, or is about to see that another one does.
func (m *machine) tellerLives(s *State, r uint8) bool {
	for i := range s.slots {
		sl := &s.slots[i]
		if sl.has(fFrozen) || sl.pc < rPick || sl.pc > rRemove {
			continue
		}
		if (sl.done|sl.todo)&bit(r) != 0 || sl.pc >= rCaller && sl.pc <= rDelete && sl.cur == r {
			return true
		}
	}
	return false
}

func (m *machine) answererLives(s *State) bool {
	for i := range s.slots {
		if sl := &s.slots[i]; !sl.has(fFrozen) && (sl.pc == rPost || sl.pc == rDelete) {
			return true
		}
	}
	return s.wait.npc == nPost || s.wait.npc == nDelete || s.wait.pc == waGone
}

// faults are what the scenario has left of them.
func (m *machine) faults(s State) {
	for i := range uint8(maxSlots) {
		if s.left[crashes] > 0 && s.slots[i].pc != rIdle && !s.slots[i].has(fFrozen) {
			n := s
			n.left[crashes]--
			n.faulty = 1
			m.drop(&n, i)
			m.add(opCrash, s.slots[i].run, n)
		}
	}
	if s.left[deaths] > 0 {
		m.deaths(s)
	}
	if s.left[freezes] > 0 {
		for i := range s.slots {
			if sl := &s.slots[i]; sl.pc != rIdle && sl.pc != rAck && !sl.has(fFrozen) {
				n := s
				n.left[freezes]--
				n.faulty = 1
				n.slots[i].flag |= fFrozen
				m.add(opFreeze, sl.run, n)
			}
		}
	}
	if s.left[freezes] > 0 && s.cmd.pc != cmNew && s.cmd.pc != cmOver && s.cmd.flag == 0 {
		n := s
		n.left[freezes]--
		n.faulty = 1
		n.cmd.flag = cmFrozen
		m.add(opCommandFreeze, 0, n)
	}
	if s.left[duplicates] > 0 {
		for lane := range uint8(maxLanes) {
			if m.sc.uses(lane) && s.seq > 0 {
				n := s
				n.left[duplicates]--
				n.faulty = 1
				m.nudge(&n, lane)
				m.add(opDuplicate, 0, n)
			}
		}
	}
}

// deaths are those of gateways and of the notifier.
func (m *machine) deaths(s State) {
	dead := s
	dead.left[deaths]--
	dead.faulty = 1
	for r := range uint8(maxRuns) {
		g := s.gates[r]
		if g.pc == gOver || g.pc == gDead || g.pc == gNew && g.flag == 0 {
			continue
		}
		n := dead
		n.gates[r] = gate{pc: gDead, flag: g.flag & gSaid, repeats: g.repeats}
		if g.flag&gSaid != 0 && n.runs[r].st == absent {
			n.breaks(lostAccept)
		}
		m.add(opGatewayCrash, r+1, n)
	}
	if s.abort.pc == abNudge || s.stop == stNudge {
		n := dead
		if s.abort.pc == abNudge {
			n.abort = aborter{pc: abOver}
		} else {
			n.stop = stOver
		}
		m.add(opGatewayCrash, 0, n)
	}
	if s.cmd.pc != cmNew && s.cmd.pc != cmOver {
		n := dead
		n.cmd = command{pc: cmOver}
		m.add(opGatewayCrash, 0, n)
	}
	if s.wait.pc != waNew && s.wait.pc < waOver {
		n := dead
		n.wait.pc, n.wait.gcont = waDead, 0
		m.add(opGatewayCrash, m.sc.Wait, n)
	}
	if s.wait.npc != nIdle {
		n := dead
		n.wait.npc, n.wait.ncont = nIdle, none
		m.add(opNotifierCrash, m.sc.Wait, n)
	}
}

// watchdog is lane.Service.Sweep. It looks after a time in which whoever lives has
// done what there was to do.
func (m *machine) watchdog(s State) {
	ends := s.uns != 0 || s.cut() != 0
	if m.weak(NoSweep) || s.busy == 0 || !m.workLeft(&s, 0) || s.owned() && !ends {
		return
	}
	lane := m.nextLane(&s)
	if s.pool[lane] != 0 {
		return
	}
	if !m.sc.Eager && (m.goesOn(step) || m.goesOn(timed)) {
		return
	}
	if m.weak(SweepInGroup) {
		if s.group[lane] >= full {
			return
		}
		s.group[lane]++
	} else {
		m.nudge(&s, lane)
	}
	m.add(opSweep, 0, s)
}
