package fault

import (
	"slices"
	"time"
)

// letOrFail lets a call go on, or makes something go wrong with it or at it.
func (s *Sim) letOrFail(c *call) {
	b := &s.budget
	if at := s.cfg.script; at != nil && at.at != nil && at.at(s, c) {
		return
	}
	if c.point != "" && s.chance(s.rarity(c.point)) {
		switch {
		case b.kills > 0 && s.chance(2):
			b.kills--
			s.mu.Lock()
			s.points[string(c.point)]++
			s.mu.Unlock()
			s.kill(c.p, string(c.point)+": "+c.what)
			return
		case b.freezes > 0 && c.p.slot.role != watchdog:
			b.freezes--
			s.freeze(c.p, s.frost(), string(c.point)+": "+c.what)
			return
		}
	}
	switch {
	case c.post && b.posts > 0 && s.chance(6):
		b.posts--
		s.hurt(c.p, "post")
		for _, k := range s.conns {
			k.hurt = true
		}
		s.let(c, pick(s, []verdict{throttle, lostBefore, lostAfter, slow}))
	case c.ops != nil && b.stores > 0 && s.chance(8):
		b.stores--
		s.hurt(c.p, "store")
		s.let(c, pick(s, []verdict{conflict, throttle, lostBefore, lostAfter, lostAfter}))
	case c.read && b.stores > 0 && s.chance(60):
		b.stores--
		s.hurt(c.p, "store")
		s.let(c, throttle)
	case c.point != "" && len(c.ops) > 0 && around[kindOf(c.ops)].after != "" && b.kills > 0 && s.chance(s.rarity(around[kindOf(c.ops)].after)):
		// It is done, and whoever did it is dead before the answer comes.
		s.letAndKill(c)
	case c.ops != nil && c.point == "" && around[kindOf(c.ops)].after != "" && b.kills > 0 && s.chance(s.rarity(around[kindOf(c.ops)].after)):
		s.letAndKill(c)
	default:
		s.let(c, proceed)
	}
}

func (s *Sim) letAndKill(c *call) {
	s.budget.kills--
	after := around[kindOf(c.ops)].after
	s.mu.Lock()
	s.points[string(after)]++
	s.mu.Unlock()
	s.hurt(c.p, "answer")
	s.let(c, lostAfter)
	c.p.doomed = true
}

// rarity is one in how many times a point is chosen: those that come seldom more often.
func (s *Sim) rarity(p point) int {
	switch p {
	case midStream:
		return 24
	case beforeCommit, afterCommit, inRenewal: // most commits are a step of tools, or the end
		return 3
	case beforeAccept, afterAccept, afterSend, afterClaim, beforeLedger, afterLedger, afterToolEffect, beforeAck:
		return 10
	default:
		return 7
	}
}

// frost is how long something is frozen: shorter than a lease, longer than one, and
// longer than everything else.
func (s *Sim) frost() time.Duration {
	return pick(s, []time.Duration{5 * time.Second, 22 * time.Second, 50 * time.Second, 100 * time.Second, 4 * time.Minute})
}

// hurt notes that something went wrong with a process.
func (s *Sim) hurt(p *proc, kind string) {
	s.wrong(kind)
	p.hurt = s.steps
}

func (s *Sim) doom(p *proc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.doomed = true
}

// mishaps are what can go wrong anywhere: a process dies or freezes wherever it is, a
// message comes again or never, what was frozen thaws.
func (s *Sim) mishaps(now time.Duration, soonest func(time.Duration)) []choice {
	var can []choice
	var busy []*proc
	for _, sl := range s.slots {
		p := sl.cur
		switch {
		case p.frozen && s.robbed(p):
			can = append(can, choice{24, p, func() { s.melt(p) }})
		case p.frozen && p.thaw <= now:
			can = append(can, choice{8, p, func() { s.melt(p) }})
		case p.frozen:
			soonest(p.thaw)
		case p.msg != nil:
			busy = append(busy, p)
		}
	}
	if s.calm {
		return can
	}
	if len(busy) > 0 && s.budget.kills > 0 && s.chance(150) {
		can = append(can, choice{6, nil, func() {
			s.budget.kills--
			s.kill(pick(s, busy), "somewhere")
		}})
	}
	if len(busy) > 0 && s.budget.freezes > 0 && s.chance(150) {
		can = append(can, choice{6, nil, func() {
			s.budget.freezes--
			s.freeze(pick(s, busy), s.frost(), "somewhere")
		}})
	}
	if s.budget.queues > 0 && s.chance(40) {
		can = append(can, s.queueMishap())
	}
	return can
}

// robbed says whether somebody is about to take the claim of a frozen process: the
// worst moment to thaw.
func (s *Sim) robbed(p *proc) bool {
	for key, sg := range s.ghost.sessions {
		if sg.holder.p == p && s.about(kClaim, key) {
			return true
		}
	}
	return false
}

func (s *Sim) queueMishap() choice {
	b := s.boxes
	waiting := slices.DeleteFunc(slices.Clone(b.wakes), func(m *message) bool { return m.held })
	if len(waiting) > 0 && s.chance(3) {
		m := pick(s, waiting)
		return choice{12, nil, func() {
			s.budget.queues--
			s.wrong("lost wake-up")
			s.notef("queue", "loses wake-up %d (%s)", m.id, m.reason)
			b.drop(m)
		}}
	}
	old := append(slices.Clone(b.old), b.timers...)
	if len(old) == 0 {
		return choice{1, nil, func() {}}
	}
	m := pick(s, old)
	return choice{12, nil, func() {
		s.budget.queues--
		s.mu.Lock()
		s.faults["duplicate"]++
		if m.reason == "post" {
			s.lastFault = s.steps // its frames come twice
		}
		s.mu.Unlock()
		s.notef("queue", "delivers %s %d once more", m.reason, m.id)
		b.again(m)
	}}
}
