package fault

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// choice is a thing that can happen next.
type choice struct {
	weight int
	p      *proc // whose it is, if it is somebody's
	do     func()
}

// choose picks what happens next. Whatever can happen is put into an order that does
// not depend on Go's scheduler, so the seed alone decides.
func (s *Sim) choose() func() {
	if do := s.mustHappen(); do != nil {
		return do
	}
	now := s.now()
	var can, overtaken []choice
	s.mu.Lock()
	calls := slices.Clone(s.parked)
	slices.SortFunc(calls, func(a, b *call) int {
		return cmp.Or(a.p.n-b.p.n, cmp.Compare(a.what, b.what), a.n-b.n)
	})
	for _, c := range calls {
		if !c.p.frozen {
			next := choice{12, c.p, func() { s.letOrFail(c) }}
			if c.kind != "" && c.kind == s.late {
				overtaken = append(overtaken, next)
			} else {
				can = append(can, next)
			}
		}
	}
	later := time.Duration(-1)
	soonest := func(at time.Duration) {
		if later < 0 || at < later {
			later = at
		}
	}
	timers := slices.Clone(s.timers)
	slices.SortFunc(timers, func(a, b *timer) int { return cmp.Or(cmp.Compare(a.at, b.at), a.p.n-b.p.n, a.n-b.n) })
	for _, t := range timers {
		switch {
		case t.p.frozen:
		case t.at <= now:
			can = append(can, choice{12, t.p, func() { s.fire(t) }})
		default:
			soonest(t.at)
		}
	}
	s.mu.Unlock()
	can = append(can, s.deliveries(now, soonest)...)
	can = append(can, s.requests(now, soonest)...)
	if len(can) == 0 || len(overtaken) > 0 && s.chance(100) {
		can = append(can, overtaken...)
	}
	quiet := len(can) == 0
	can = append(can, s.mishaps(now, soonest)...)
	if later >= 0 && (quiet || !s.p.Eager && !s.calm && s.chance(60)) {
		if quiet || later-now < 5*time.Second {
			can = append(can, choice{4, nil, func() { s.passTo(later) }})
		}
	}
	return s.pickOne(can)
}

// pickOne chooses by weight, but likes to go on with the process that moved last: so
// some schedules change between processes often and others seldom.
func (s *Sim) pickOne(can []choice) func() {
	if len(can) == 0 {
		return nil
	}
	if s.sticky != nil && s.rng.IntN(100) < int(s.cfg.Seed%5)*20 {
		var mine []choice
		for _, c := range can {
			if c.p == s.sticky {
				mine = append(mine, c)
			}
		}
		if len(mine) > 0 {
			can = mine
		}
	}
	sum := 0
	for _, c := range can {
		sum += c.weight
	}
	x := s.rng.IntN(sum)
	for _, c := range can {
		if x < c.weight {
			s.sticky = c.p
			return c.do
		}
		x -= c.weight
	}
	return nil
}

// mustHappen is what cannot wait: a process that is to die, a function over its time.
func (s *Sim) mustHappen() func() {
	for _, sl := range s.slots {
		p := sl.cur
		switch {
		case p.doomed:
			return func() { s.kill(p, "by what it works on") }
		case p.overdue > 0 && p.overdue <= s.now():
			return func() { s.kill(p, "at the end of its invocation") }
		}
	}
	return nil
}

// deliveries are messages that a process is free for, and the watchdog's minute.
func (s *Sim) deliveries(now time.Duration, soonest func(time.Duration)) []choice {
	var can []choice
	for _, l := range []string{"main", "cron"} {
		due := s.boxes.due(l)
		if len(due) == 0 {
			continue
		}
		for _, sl := range s.slots {
			if sl.role == runner && sl.lane == l && sl.cur.idle() {
				for _, m := range due[:min(len(due), 4)] {
					can = append(can, choice{6, nil, func() { s.receive(sl.cur, m) }})
				}
				break // runners that are free are all the same
			}
		}
	}
	for _, m := range s.boxes.wakes {
		if m.held && !m.forever && m.visible > now {
			soonest(m.visible)
		}
	}
	if ring := s.boxes.ring(); len(ring) > 0 {
		for _, sl := range s.slots {
			if sl.role == notifier && sl.cur.idle() {
				for _, m := range ring {
					can = append(can, choice{6, nil, func() { s.receive(sl.cur, m) }})
				}
				break
			}
		}
	}
	for _, m := range s.boxes.timers {
		if m.visible > now {
			soonest(m.visible)
		}
	}
	return append(can, s.sweeps(now, soonest)...)
}

func (s *Sim) sweeps(now time.Duration, soonest func(time.Duration)) []choice {
	if m := s.cfg.Mutation; m != nil && m.NoWatchdog {
		return nil
	}
	if s.sweepAt > now {
		soonest(s.sweepAt)
		return nil
	}
	for _, sl := range s.slots {
		if p := sl.cur; sl.role == watchdog && p.idle() {
			return []choice{{6, nil, func() {
				s.sweepAt = s.now() + s.sweepEvery()
				p.begin(&message{reason: "sweep"}, func(ctx context.Context) {
					sum, err := p.core.Lanes.Sweep(ctx)
					if err != nil || sum.Orphaned > 0 {
						s.notef(p.name, "sweeps: %+v %v", sum, err)
					}
					if !p.isDead() {
						p.done()
					}
				})
			}}}
		}
	}
	return nil
}

// patience is how long a request waits for its moment.
const patience = 20 * time.Second

// requests are those of clients that are due.
func (s *Sim) requests(now time.Duration, soonest func(time.Duration)) []choice {
	var can []choice
	for _, o := range s.ops {
		switch {
		case o.begun:
		case o.at > now:
			soonest(o.at)
		case o.when != "" && now < o.at+patience && !s.about(o.when, o.key):
			soonest(o.at + patience)
		default:
			can = append(can, choice{6, nil, func() { s.ask(o) }})
			if len(can) == 6 {
				return can
			}
		}
	}
	return can
}

// about says whether somebody is about to make a write of a kind in a session.
func (s *Sim) about(k kind, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.parked, func(c *call) bool { return c.kind == k && c.key == key })
}

// played says whether everything was asked for that is to be, and everything that may
// go wrong did, or has had its time.
func (s *Sim) played() bool {
	for _, o := range s.ops {
		if !o.begun {
			return false
		}
	}
	end := s.ops[len(s.ops)-1].at + 3*time.Minute
	return s.budget.spent() || s.now() > end || s.atRest()
}

// settleDown ends all mishaps: what is frozen thaws, and time does the rest.
func (s *Sim) settleDown() {
	s.notef("kit", "nothing goes wrong any more")
	s.calm, s.budget = true, budget{}
	for _, sl := range s.slots {
		if sl.cur.frozen && !s.chance(2) {
			s.melt(sl.cur)
		}
	}
}

// atRest says whether nothing is left to do: no session busy, no message waiting, no
// request served, no process at work.
func (s *Sim) atRest() bool {
	for _, o := range s.ops {
		if !o.begun || !o.over && !o.lost {
			return false
		}
	}
	for _, sl := range s.slots {
		if p := sl.cur; p.msg != nil || p.frozen {
			return false
		}
	}
	for _, m := range s.boxes.wakes {
		if !m.forever && (!m.held || m.visible > 0) && !s.boxes.behind(m) {
			return false
		}
	}
	for _, m := range s.boxes.timers {
		if !m.forever {
			return false
		}
	}
	return !s.ghost.busy()
}
