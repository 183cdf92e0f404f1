package model

// Where the gateway of agent.wait is.
const (
	waNew = iota
	waArm
	waRow
	waLook
	waTake
	waGone
	waOver
	waDead
)

// A waiter's row.
const (
	rowNone = iota
	rowOpen
	rowTaken
	rowGone
)

// Where the notifier is.
const (
	nIdle = iota
	nTake
	nPost
	nDelete
)

// outcomeOf is what a wait for run r is answered with; none while it lasts.
func (m *machine) outcomeOf(s *State, r uint8) uint8 {
	st := &s.runs[r]
	if st.st == delivered {
		return s.runs[st.into-1].out
	}
	return st.out
}

// waits is notify.Service.Wait and Attach: timer, row, the record again.
func (m *machine) waits(s State) {
	w := &s.wait
	if w.pc >= waOver {
		return
	}
	r := m.sc.Wait - 1
	switch w.pc {
	case waNew:
		switch {
		case m.outcomeOf(&s, r) != none:
			w.pc = waOver
		case m.weak(RowBeforeTimer):
			w.pc = waRow
		default:
			w.pc = waArm
		}
		m.add(opWaitLooks, r+1, s)
	case waArm:
		w.timer = 1
		if w.pc = waRow; m.weak(RowBeforeTimer) {
			w.pc = waLook
		}
		m.add(opWaitTimer, r+1, s)
	case waRow:
		w.row = rowOpen
		switch {
		case m.weak(ReadBeforeRow):
			w.pc = waOver
		case m.weak(RowBeforeTimer):
			w.pc = waArm
		default:
			w.pc = waLook
		}
		m.add(opWaitRow, r+1, s)
	case waLook:
		if w.pc = waOver; m.outcomeOf(&s, r) != none {
			w.pc, w.gcont = waTake, m.outcomeOf(&s, r)
		}
		m.add(opWaitLooksAgain, r+1, s)
	case waTake:
		cont := w.gcont
		if w.pc, w.gcont = waOver, 0; m.take(&s, &cont) {
			w.pc, w.gcont = waGone, cont
		}
		m.add(opWaitTakes, r+1, s)
	case waGone:
		w.row, w.lease, w.cont = rowGone, 0, none
		m.answers(&s, w.gcont)
		w.pc, w.gcont = waOver, 0
		m.add(opWaitReplies, r+1, s)
	}
}

// take is run.WaitRow.Take: the caller becomes the answerer, and cont what is written
// in the row.
func (m *machine) take(s *State, cont *uint8) bool {
	w := &s.wait
	if w.row != rowOpen && w.row != rowTaken || w.row == rowTaken && w.lease != 0 && !m.weak(RowNotTaken) {
		return false
	}
	if w.cont != none {
		*cont = w.cont
	} else if !m.weak(AnswerNotStored) {
		w.cont = *cont
	}
	w.row, w.lease = rowTaken, 1
	return true
}

// answers is a frame to the waiter.
func (m *machine) answers(s *State, cont uint8) {
	w := &s.wait
	switch {
	case w.posts == 0:
		w.first = cont
	case w.first != cont:
		s.breaks(otherAnswer)
	case s.faulty == 0:
		s.breaks(answeredTwice)
	}
	w.posts = min(w.posts+1, 2)
}

// row is notify.Service.Waiters for the one row that there is.
func (m *machine) row(s State, i uint8) {
	sl, w := &s.slots[i], &s.wait
	r := sl.cur
	switch sl.pc {
	case rTake:
		cont := m.outcomeOf(&s, r)
		if m.take(&s, &cont) {
			sl.pc, sl.kind = rPost, cont
		} else {
			if w.row == rowTaken {
				w.timer = 1
			}
			m.told(sl)
		}
		m.add(opTakeRow, r+1, s)
	case rPost:
		m.answers(&s, sl.kind)
		sl.pc, sl.kind = rDelete, 0
		m.add(opPostRow, r+1, s)
	case rDelete:
		w.row, w.lease, w.cont = rowGone, 0, none
		m.told(sl)
		m.add(opDeleteRow, r+1, s)
	}
}

// notifier is notify.Service.deadline: the wait's timer has come.
func (m *machine) notifier(s State) {
	w := &s.wait
	r := m.sc.Wait - 1
	switch w.npc {
	case nIdle:
		if w.timer == 0 || w.row == rowTaken && w.lease != 0 && !m.weak(RowNotTaken) {
			return // held: the timer is armed again
		}
		if w.row == rowNone && w.pc < waOver {
			return // its row comes in time, the timer looks once more
		}
		w.ncont = expired
		if out := m.outcomeOf(&s, r); out != none {
			w.ncont = out
		}
		if w.npc = nTake; w.row == rowNone || w.row == rowGone {
			w.timer, w.npc, w.ncont = 0, nIdle, none
		}
		m.add(opDeadline, r+1, s)
	case nTake:
		if m.take(&s, &w.ncont) {
			w.npc = nPost
		} else {
			w.npc, w.ncont = nIdle, none
		}
		m.add(opNotifierTakes, r+1, s)
	case nPost:
		m.answers(&s, w.ncont)
		w.npc, w.ncont = nDelete, none
		m.add(opNotifierPosts, r+1, s)
	case nDelete:
		w.row, w.lease, w.cont, w.timer, w.npc = rowGone, 0, none, 0, nIdle
		m.add(opNotifierDeletes, r+1, s)
	}
}
