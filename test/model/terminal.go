package model

// ends is loop's terminal: one transaction, of one of two kinds.
func (m *machine) ends(s State, i uint8) {
	sl := &s.slots[i]
	r := sl.run - 1
	switch sl.pc {
	case rOK:
		m.commit(s, i, opTerminalOK, write{
			holds: func(s *State) bool {
				return (s.mail == 0 || m.weak(OkIgnoresMail)) && (!s.marked() || m.weak(OkIgnoresMark)) && m.heard(s, &s.slots[i])
			},
			refused: func(s *State, sl *slot) {
				late := !m.heard(s, sl)
				if s.sub == 1 {
					sl.flag |= fSubs
				}
				switch {
				case s.marked():
					sl.pc, sl.kind = rMail, aborted
				case late:
				case s.mail != 0:
					sl.pc, sl.see = rDeliver, s.mail
				}
			},
			do:   func(s *State) { m.terminal(s, i, r, okay) },
			then: m.settlesOwn,
		})
	case rMail:
		sl.pc, sl.see = rEnd, s.mail
		m.add(opReadMail, r+1, s)
	case rEnd:
		kind, seen := sl.kind, sl.see
		m.commit(s, i, opTerminal, write{
			holds: func(s *State) bool {
				return (s.mail == seen || m.weak(NoMoveBack)) && m.heard(s, &s.slots[i])
			},
			refused: func(s *State, sl *slot) {
				if sl.pc, sl.see = rMail, 0; s.sub == 1 {
					sl.flag |= fSubs
				}
			},
			do: func(s *State) {
				m.moveBack(s, seen)
				m.terminal(s, i, r, kind)
			},
			then: m.settlesOwn,
		})
	}
}

// heard says whether the stream knows everybody who listens.
func (m *machine) heard(s *State, sl *slot) bool {
	return s.sub != 1 || sl.has(fSubs) || m.weak(SubscribersIgnored)
}

// moveBack puts what was not delivered back among the pending runs, each at its own
// accept sequence.
func (m *machine) moveBack(s *State, seen uint8) {
	if m.weak(NoMoveBack) {
		return
	}
	for w := range uint8(maxRuns) {
		if seen&bit(w) == 0 {
			continue
		}
		st := &s.runs[w]
		st.st, st.into = pending, 0
		if m.weak(MovedAnew) {
			s.seq++
			st.seq = s.seq
		}
	}
	s.pend |= seen
	s.mail &^= seen
}

// terminal is the end of run r: outcome, unsettled, and the claim given up.
func (m *machine) terminal(s *State, i, r, kind uint8) {
	switch {
	case kind == okay && s.banned&bit(r) != 0:
		s.breaks(stopped)
	case kind == aborted && m.sc.Abort != r+1 && s.runSeq(r) > s.cutoff:
		s.breaks(wrongStop)
	}
	if s.sub == 1 && !s.slots[i].has(fSubs) {
		s.breaks(unheard)
	}
	m.userRow(s, r)
	m.outcome(s, r, kind)
	s.uns |= bit(r)
	if !m.weak(TakenForgotten) {
		s.uns |= s.took(r)
	}
	st := &s.runs[r]
	if st.st, st.org = ended, 1; st.prog == progCalls {
		st.prog = progDone
	}
	s.active, s.attempt, s.stalled, s.asleep, s.cancel = 0, 0, 0, 0, 0
	m.free(s)
}

// outcome writes the one outcome of a run.
func (m *machine) outcome(s *State, r, kind uint8) {
	if s.runs[r].out != none {
		s.breaks(secondEnd)
	}
	s.runs[r].out = kind
}

// begins checks that run r may begin now, in this lane.
func (m *machine) begins(s *State, r, lane uint8) {
	st := &s.runs[r]
	if st.out != none || st.st != pending {
		s.breaks(begunAgain)
	}
	if s.banned&bit(r) != 0 || st.seq <= s.cutoff {
		s.breaks(stopped)
	}
	if lane != m.lane(r) {
		s.breaks(otherLane)
	}
	for w := range uint8(maxRuns) {
		o := &s.runs[w]
		if o.seq != 0 && o.acc < st.acc && o.seq > s.cutoff && (o.st == pending || o.st == steered) && o.out == none && w != r {
			s.breaks(order)
		}
	}
}
