package model

// Where a gateway is.
const (
	gNew     = iota
	gPicture // has read META
	gSend    // accepted: the wake-up, then the reply
	gKey     // a variant: sets the index key by itself
	gOver
	gDead // without a reply
)

const (
	gApplied  = 1 << iota // the transaction was applied, its answer is lost
	gSaid                 // the client has the reply
	gStopSeen             // a stop mark was in the picture
	gSent                 // a variant: the wake-up went first
)

// gateway is lane.Service.Accept and Steer for the call of run r. The transactions
// hold on the accept sequence that was read, and a steer's on everything that it was
// decided on, so reading and writing are one step where nothing else is looked at; a
// steer, and variants that trust their reading, read first.
func (m *machine) gateway(s State, r uint8) {
	g := &s.gates[r]
	if m.after[r] && s.runs[r-1].st == absent && s.gates[r-1].pc != gDead {
		return
	}
	switch g.pc {
	case gNew:
		reads := m.sc.Runs[r].Kind == Steer || m.weak(StopReadBefore)
		switch {
		case m.weak(ReplyFirst) && g.flag&gSaid == 0:
			g.flag |= gSaid
			m.add(opReplyEarly, r+1, s)
		case m.weak(WakeFirst) && g.flag&gSent == 0:
			g.flag |= gSent
			m.sendAccept(&s, r)
			m.add(opWakeEarly, r+1, s)
		case reads:
			m.picture(&s, r)
			g.pc = gPicture
			m.add(opReadSession, r+1, s)
		default:
			m.accept(s, r)
		}
	case gPicture:
		m.accept(s, r)
	case gKey:
		s.busy, g.pc = 1, gSend
		m.add(opKeyLate, r+1, s)
	case gSend:
		m.reply(s, r)
	}
	if g.pc == gOver || g.pc == gDead {
		m.repeat(s, r)
	}
}

// picture is what is remembered of a reading of META.
func (m *machine) picture(s *State, r uint8) {
	g := &s.gates[r]
	g.act, g.seq = 0, s.seq
	steers := s.active != 0 && !s.marked() && (s.pend == 0 || m.weak(SteerOvertakes))
	if m.sc.Runs[r].Kind == Steer && steers {
		g.act = s.active
	}
	g.flag &^= gStopSeen
	if s.stops != 0 {
		g.flag |= gStopSeen
	}
}

// accept is the transaction.
func (m *machine) accept(s State, r uint8) {
	g, st := &s.gates[r], &s.runs[r]
	if st.st != absent && (!m.weak(AcceptNotAbsent) || g.pc == gOver) {
		// The key is known: a repeat, or the write whose answer was lost (C5).
		own := g.flag&gApplied != 0
		g.flag &^= gApplied
		if g.pc = gSend; st.st == ended && !own {
			g.pc = gOver
			g.flag |= gSaid
		}
		m.add(opKnown, r+1, s)
		return
	}
	overtaken := m.sc.Runs[r].Early && s.stops != 0
	if m.weak(StopReadBefore) {
		overtaken = m.sc.Runs[r].Early && g.flag&gStopSeen != 0
	}
	if overtaken {
		st.st, st.out, g.pc = ended, aborted, gOver
		g.flag |= gSaid
		m.add(opAcceptStopped, r+1, s)
		return
	}
	if g.act != 0 {
		m.steer(s, r)
		return
	}
	if g.pc == gPicture && g.seq != s.seq && m.sc.Runs[r].Kind == Steer {
		m.picture(&s, r)
		m.add(opAcceptRefused, r+1, s)
		return
	}
	before := s.seq
	s.seq++
	st.st, st.seq, st.acc = pending, s.seq, s.seq
	s.pend |= bit(r)
	g.pc = gSend
	if s.busy == 0 && m.weak(KeyLate) {
		g.pc = gKey
	} else {
		s.busy = 1
	}
	if m.sc.Runs[r].Kind == Interrupt && before > 0 {
		s.cutoff = before
		m.ban(&s, before)
	}
	if s.seq > 7 {
		s.breaks(endless)
	}
	if m.sc.Runs[r].Early && s.stops != 0 {
		s.banned |= bit(r)
	}
	m.add(opAccept, r+1, s)
	s.gates[r].pc = gPicture
	s.gates[r].flag |= gApplied
	m.addLost(opAccept, r+1, s)
}

// steer puts the message into the mailbox of the run that was active when META was
// read, if everything is as it was.
func (m *machine) steer(s State, r uint8) {
	g, st := &s.gates[r], &s.runs[r]
	holds := s.active == g.act && s.seq == g.seq && s.cancel == 0 && s.cutoff < s.runSeq(g.act-1) && s.pend == 0
	switch {
	case m.weak(SteerBlind):
		holds = s.seq == g.seq
	case m.weak(SteerOvertakes):
		holds = s.active == g.act && s.cancel == 0 && s.cutoff < s.runSeq(g.act-1)
	}
	if !holds {
		m.picture(&s, r)
		m.add(opSteerRefused, r+1, s)
		return
	}
	if s.pend != 0 && s.lowest() != 0 {
		s.breaks(order)
	}
	s.seq++
	st.st, st.seq, st.acc, st.into = steered, s.seq, s.seq, g.act
	s.mail |= bit(r)
	g.pc = gOver
	g.flag |= gSaid
	m.add(opSteer, r+1, s)
	s.gates[r].pc = gPicture
	s.gates[r].flag |= gApplied
	s.gates[r].flag &^= gSaid
	m.addLost(opSteer, r+1, s)
}

// reply sends the wake-up and the reply. A send that fails is logged and no more.
func (m *machine) reply(s State, r uint8) {
	failed := s
	g := &s.gates[r]
	m.sendAccept(&s, r)
	g.pc = gOver
	g.flag |= gSaid
	m.add(opSendAccept, r+1, s)
	if failed.left[lostSend] > 0 {
		failed.left[lostSend]--
		failed.faulty = 1
		failed.gates[r].pc = gOver
		failed.gates[r].flag |= gSaid
		m.add(opSendFailed, r+1, failed)
	}
}

// sendAccept is A1's wake-up. Its deduplication id is that of the run: a second one
// within five minutes is swallowed.
func (m *machine) sendAccept(s *State, r uint8) {
	if s.runs[r].sent == 0 {
		s.runs[r].sent = 1
		s.group[m.lane(r)]++
	}
}

// repeat is a client that got no reply, or lost it, and asks again with its key.
func (m *machine) repeat(s State, r uint8) {
	g := &s.gates[r]
	if g.repeats == 0 || s.runs[r].st == absent && g.pc == gOver {
		return
	}
	*g = gate{repeats: g.repeats - 1, flag: g.flag & gSaid}
	m.add(opRepeat, r+1, s)
}

// ban remembers, for the checks, which runs nobody may begin any more: those accepted
// up to seq that have not ended.
func (m *machine) ban(s *State, seq uint8) {
	for i := range uint8(maxRuns) {
		st := &s.runs[i]
		if (st.st == pending || st.st == steered) && st.seq != 0 && st.seq <= seq {
			s.banned |= bit(i)
		}
	}
}
