package model

// pc is where a runner is.
type pc uint8

const (
	rIdle    pc = iota
	rForward    // sends a wake-up to the lane of the run that is next
	rClaim      // takes the claim for what it decided
	rLook       // reads META before a model call, then the model answers
	rDeliver    // commits what was steered in
	rCalls      // commits the model's message with its calls
	rPlan       // the same, but the calls run in the next attempt
	rLedger     // reads what became of open calls
	rBegin      // commits "started" for planned calls
	rCheck      // is the claim fresh?
	rEffect     // the tool does it
	rResult     // commits the result of the first call
	rResults    // commits the results as rows
	rOK         // terminal ok
	rMail       // reads the mailbox for any other terminal
	rEnd        // any other terminal
	rLeave      // commits a checkpoint
	rLeft       // sends its wake-up
	rSleep      // commits a sleep
	rSlept      // arms its alarm
	rGiveUp     // releases the claim, the wake-up comes again
	rReturn     // returns an error
	rCut        // ends a pending run that a stop covers
	rAgain      // reads META after that
	rPick       // settles: the next run
	rCaller     // tells its caller
	rTake       // takes the waiter's row
	rPost       // posts to it
	rDelete     // deletes the row
	rWhatIs     // reads META behind it
	rNudge      // sends a wake-up for what is left
	rRemove     // takes the runs off the unsettled ones
	rDecide     // decides again behind runs that others hold
	rAck
)

// receive is a runner that gets a wake-up: it reads META and decides.
func (m *machine) receive(s State) {
	idle := uint8(maxSlots)
	for i := range uint8(maxSlots) {
		if s.slots[i].pc == rIdle {
			idle = i
		}
	}
	if idle == maxSlots {
		return
	}
	for lane := range uint8(maxLanes) {
		if s.group[lane] > 0 && s.inFlight[lane] == free {
			n := s
			n.inFlight[lane] = received
			n.slots[idle] = slot{msg: 1 + lane, lane: lane}
			m.decide(&n, idle, 0)
			m.add(opReceive, 0, n)
		}
		if s.pool[lane] > 0 {
			n := s
			n.pool[lane]--
			n.slots[idle] = slot{msg: 1 + maxLanes + lane, lane: lane}
			m.decide(&n, idle, 0)
			m.add(opReceive, 0, n)
		}
	}
}

// decide is lane.Decide on META as it is; runs in held are not counted as unsettled.
func (m *machine) decide(s *State, i uint8, held uint8) {
	sl := &s.slots[i]
	*sl = slot{msg: sl.msg, lane: sl.lane, flag: sl.flag & fFrozen}
	settle := s.uns&^held != 0 || s.cut() != 0 && !m.weak(CutoffNotRead)
	live := s.owned() || m.asleep(s)
	if m.weak(LiveFirst) && live || m.weak(HolderSettles) {
		settle = false
	}
	next := s.active
	if next == 0 {
		next = s.lowest()
		if m.weak(AnyNext) {
			next = m.highest(s)
		}
	}
	switch {
	case settle:
		m.settling(s, i)
	case live, next == 0:
		sl.pc = rAck
	case m.lane(next-1) != sl.lane && !m.weak(AnyLane):
		sl.pc = rForward
	default:
		sl.pc, sl.run, sl.n = rClaim, next, s.token
	}
}

// highest is what a variant takes for the run that is next.
func (m *machine) highest(s *State) (next uint8) {
	for r := range uint8(maxRuns) {
		if s.pend&bit(r) != 0 && (s.runSeq(r) > s.cutoff || m.weak(CutoffNotRead)) && (next == 0 || s.runSeq(r) > s.runSeq(next-1)) {
			next = r + 1
		}
	}
	return next
}

// runner is the next step of the runner in slot i.
func (m *machine) runner(s State, i uint8) {
	sl := &s.slots[i]
	who := sl.run
	switch sl.pc {
	case rForward:
		lane := m.nextLane(&s)
		m.nudge(&s, lane)
		sl.pc = rAck
		m.add(opForward, 0, s)
	case rClaim:
		m.claim(s, i)
	case rLook:
		m.look(s, i)
	case rDeliver:
		m.deliver(s, i)
	case rCalls, rPlan, rLedger, rBegin, rCheck, rEffect, rResult, rResults:
		m.tools(s, i)
	case rOK, rMail, rEnd:
		m.ends(s, i)
	case rLeave, rSleep:
		m.leaves(s, i)
	case rLeft:
		if s.token == sl.tok && m.weak(WriteNoOwner) {
			// A goroutine that outlives the release: refused, it changes nothing.
			n := s
			n.breaks(fenced)
			m.add(opLate, who, n)
		}
		m.nudge(&s, m.nextLane(&s))
		sl.pc = rAck
		m.add(opNudgeCheckpoint, who, s)
	case rSlept:
		s.alarm = 1
		sl.pc = rAck
		m.add(opAlarm, who, s)
	case rGiveUp:
		m.commit(s, i, opGiveUp, write{
			do:   func(s *State) { m.free(s) },
			then: func(s *State, sl *slot) { sl.pc = rReturn },
		})
	case rReturn:
		m.drop(&s, i)
		m.add(opReturn, who, s)
	case rAck:
		m.ack(&s, i)
		m.add(opAck, 0, s)
	default:
		m.settler(s, i)
	}
}

// claim is claim.Service.Start or Resume: one conditional update.
func (m *machine) claim(s State, i uint8) {
	sl := &s.slots[i]
	r := sl.run - 1
	if sl.has(fApplied) {
		// Its own write id is in the item while nobody has claimed since.
		if sl.flag &^= fApplied; s.token == sl.tok && s.owner == sl.own {
			m.claimed(&s, i)
			m.add(opAnswerFound, r+1, s)
			return
		}
		m.decide(&s, i, 0)
		m.add(opClaimRefused, r+1, s)
		return
	}
	starts := s.active == 0
	member := s.active == r+1
	if starts {
		member = s.pend&bit(r) != 0
	}
	holds := s.token == sl.n || m.weak(ClaimNoToken)
	holds = holds && (!s.owned() || m.weak(ClaimNoLease))
	holds = holds && (member || m.weak(ClaimNoMember) && starts)
	holds = holds && (!starts || s.runSeq(r) > s.cutoff || m.weak(ClaimNoCutoff) || m.weak(CutoffNotRead))
	if !holds {
		if m.weak(RefusedIsAcked) {
			*sl = slot{pc: rAck, msg: sl.msg, lane: sl.lane}
		} else {
			m.decide(&s, i, 0)
		}
		m.add(opClaimRefused, r+1, s)
		return
	}
	o := opResume
	if starts {
		o = opStart
		m.begins(&s, r, sl.lane)
		s.pend &^= bit(r)
		s.active, s.attempt, s.stalled = r+1, 1, 1
	} else {
		s.attempt = min(s.attempt+1, 15)
		s.stalled = min(s.stalled+1, maxStalls+1)
		s.asleep = 0
	}
	s.token++
	if s.token > maxToken {
		s.breaks(endless)
	}
	s.owner, s.lease, s.nest = (r+1)|s.attempt<<2, 1, 0
	if s.owner >= cmdOwner {
		s.owner = cmdOwner - 1
	}
	sl.tok, sl.own = s.token, s.owner
	l := s
	l.slots[i].flag |= fApplied
	m.claimed(&s, i)
	m.add(o, r+1, s)
	m.addLost(o, r+1, l)
}

// maxStalls is claim.Times.Stalls, and maxToken more claims than any run needs.
const (
	maxStalls = 3
	maxToken  = 13
)

// claimed is the beginning of an attempt.
func (m *machine) claimed(s *State, i uint8) {
	sl := &s.slots[i]
	r := sl.run - 1
	flag := uint8(0)
	if sl.has(fThawed) {
		flag = fThawed | fOld // the renewal that a claim is counts from when it was sent
	}
	*sl = slot{msg: sl.msg, lane: sl.lane, tok: sl.tok, own: sl.own, run: sl.run, flag: flag}
	if s.sub == 1 {
		sl.flag |= fSubs
	}
	switch {
	case s.marked():
		sl.pc, sl.kind = rMail, aborted
	case s.stalled > maxStalls && !m.weak(NoLimit):
		sl.pc, sl.kind = rMail, failed
	case s.runs[r].prog == progCalls:
		sl.pc = rLedger
	default:
		sl.pc = rLook
	}
}

// look is what comes before a model call, and what the model's answer leads to.
func (m *machine) look(s State, i uint8) {
	sl := &s.slots[i]
	r := sl.run - 1
	plan := m.sc.Runs[r]
	if s.token != sl.tok || s.owner != sl.own {
		m.loses(&s, sl)
		m.hush(&s, i)
		m.add(opStale, r+1, s)
		return
	}
	switch {
	case s.marked():
		sl.pc, sl.kind = rMail, aborted
		m.add(opSeesMark, r+1, s)
		return
	case sl.has(fOld):
		sl.pc = rLeave
		m.add(opLapsed, r+1, s)
		return
	case s.mail != 0:
		sl.pc, sl.see = rDeliver, s.mail
		m.add(opSeesMail, r+1, s)
		return
	}
	if s.sub == 1 {
		sl.flag |= fSubs
	}
	if plan.Poison {
		n := s
		m.drop(&n, i)
		n.faulty = 1
		m.add(opPoison, r+1, n)
		return
	}
	if plan.Long {
		m.tooLong(s, i)
		return
	}
	n := s
	n.slots[i].pc = rOK
	if plan.Tools && s.runs[r].prog == progNone {
		n.slots[i].pc = rCalls
		if m.weak(ToolsFirst) {
			n.slots[i].pc, n.slots[i].cur = rCheck, 0
		}
	}
	m.add(opModel, r+1, n)
	if s.left[shortTime] > 0 {
		n := s
		n.left[shortTime]--
		n.slots[i].pc = rLeave
		m.add(opShort, r+1, n)
		if plan.Tools && s.runs[r].prog == progNone {
			n.slots[i].pc = rPlan
			m.add(opModelShort, r+1, n)
		}
	}
	if m.maySleep(&s, r) {
		n := s
		n.left[sleeps]--
		n.slots[i].pc = rSleep
		m.add(opSleeps, r+1, n)
	}
	if s.left[storeFails] > 0 {
		n := s
		n.left[storeFails]--
		n.faulty = 1
		n.slots[i].pc = rGiveUp
		m.add(opStoreFails, r+1, n)
	}
}

// tooLong is a model call that takes longer than an invocation may.
func (m *machine) tooLong(s State, i uint8) {
	sl := &s.slots[i]
	st := &s.runs[sl.run-1]
	if st.prog == progDone && !m.weak(CutForEver) {
		sl.pc, sl.kind = rMail, failed
		m.add(opTooLong, sl.run, s)
		return
	}
	sl.pc, sl.see = rLeave, 1 // that it was cut is in the checkpoint
	m.add(opCut, sl.run, s)
}

// deliver is the commit of what was steered in, on the condition that nobody has taken
// one of the messages back.
func (m *machine) deliver(s State, i uint8) {
	sl := &s.slots[i]
	r, seen := sl.run-1, sl.see
	there := s.mail&seen == seen
	m.commit(s, i, opDeliver, write{
		holds:   func(*State) bool { return there },
		refused: func(_ *State, sl *slot) { sl.pc, sl.see = rLook, 0 },
		do: func(s *State) {
			for w := range uint8(maxRuns) {
				if seen&bit(w) == 0 {
					continue
				}
				t := &s.runs[w]
				if t.st != steered {
					s.breaks(order)
				}
				t.st, t.into = delivered, r+1
				t.user++
			}
			s.mail &^= seen
			s.stalled = 0
			m.userRow(s, r)
		},
		then: func(_ *State, sl *slot) { sl.pc, sl.see = rLook, 0 },
	})
}

// leaves is the commit that ends an attempt and not the run.
func (m *machine) leaves(s State, i uint8) {
	sl := &s.slots[i]
	r, cut := sl.run-1, sl.see
	sleep := sl.pc == rSleep
	w := write{
		do: func(s *State) {
			m.free(s)
			s.stalled = 0
			if cut != 0 {
				s.runs[r].prog = progDone
			}
			if sleep {
				s.asleep = 1
			}
		},
		then: func(_ *State, sl *slot) {
			switch {
			case sleep:
				sl.pc = rSlept
			case m.weak(LeaveSilent):
				sl.pc = rAck
			default:
				sl.pc = rLeft
			}
		},
	}
	if !sleep {
		m.commit(s, i, opLeave, w)
		return
	}
	w.holds = func(s *State) bool { return !s.marked() || m.weak(SleepBlind) }
	w.refused = func(_ *State, sl *slot) { sl.pc, sl.kind = rMail, aborted }
	m.commit(s, i, opSleep, w)
}

// write is what a holder commits under its claim.
type write struct {
	holds   func(*State) bool // a further condition; nil: none
	refused func(*State, *slot)
	do      func(*State)
	then    func(*State, *slot)
}

// commit is claim.Holder.Commit: one transaction that checks token and owner in the
// item that it advances (C2), and is sent again until it is decided (C5, C6).
func (m *machine) commit(s State, i uint8, o op, w write) {
	sl := &s.slots[i]
	who := sl.run
	if sl.has(fApplied) && !m.weak(LostIsNo) {
		sl.flag &^= fApplied
		if s.token != sl.tok {
			m.hush(&s, i)
			m.add(opStale, who, s)
			return
		}
		w.then(&s, sl)
		m.add(opAnswerFound, who, s)
		return
	}
	sl.flag &^= fApplied
	mine := s.token == sl.tok && s.owner == sl.own
	may := mine
	switch {
	case m.weak(WriteUnfenced):
		may = true
	case m.weak(WriteNoOwner):
		may = s.token == sl.tok
	case m.weak(EndUnfenced) && (o == opTerminal || o == opTerminalOK):
		may = true
	}
	if !may {
		m.loses(&s, sl)
		m.hush(&s, i)
		m.add(opStale, who, s)
		return
	}
	if w.holds != nil && !w.holds(&s) {
		w.refused(&s, sl)
		m.add(o+1, who, s)
		return
	}
	if s.polls > 0 && (o == opTerminalOK || o == opTerminal) {
		n := s
		n.polls--
		if m.weak(ConflictIsNo) {
			m.hush(&n, i)
		}
		m.add(opConflict, who, n)
	}
	if !mine {
		s.breaks(fenced)
	}
	if s.lease = 1; s.owner == 0 {
		s.lease = 0
	}
	sl.flag &^= fOld | fThawed
	w.do(&s)
	l := s
	w.then(&s, &s.slots[i])
	m.add(o, who, s)
	l.slots[i].flag |= fApplied
	m.addLost(o, who, l)
}

// loses checks that nobody takes the claim of a holder that was never frozen.
func (m *machine) loses(s *State, sl *slot) {
	if !sl.has(fThawed) && !m.weak(LostIsNo) {
		s.breaks(lostHold)
	}
}

// free gives the claim up.
func (m *machine) free(s *State) { s.owner, s.lease, s.nest = 0, 0, 0 }

// hush is what a superseded holder does: not a word more, then the acknowledgement.
func (m *machine) hush(s *State, i uint8) {
	sl := &s.slots[i]
	*sl = slot{pc: rAck, msg: sl.msg, lane: sl.lane}
}

// ack takes the message off its queue, if it is still this runner's.
func (m *machine) ack(s *State, i uint8) {
	if msg := s.slots[i].msg; msg != 0 && msg <= maxLanes {
		s.group[msg-1]--
		s.inFlight[msg-1] = free
	}
	s.slots[i] = slot{}
}

// drop leaves the message to come again, and its group blocked until then.
func (m *machine) drop(s *State, i uint8) {
	switch msg := s.slots[i].msg; {
	case msg == 0:
	case msg <= maxLanes:
		s.inFlight[msg-1] = orphan
	default:
		lane := msg - 1 - maxLanes
		s.poolDead[lane] = min(s.poolDead[lane]+1, full)
	}
	s.slots[i] = slot{}
}
