package fault

import (
	"time"
)

// timer is a wait of a process. It is told when the scheduler chooses to, at its time
// or later; an abandoned one is told too, and nobody hears it.
type timer struct {
	p   *proc
	at  time.Duration
	n   int
	out chan time.Time
}

// clockOf is the clock of a process: the simulation's time, a little wrong. Nothing
// passes on it while the process is frozen, but it shows the true time when it thaws.
type clockOf struct{ p *proc }

// grain makes of the random pauses between two tries of a write one and the same.
const grain = 100 * time.Millisecond

func (c clockOf) Now() time.Time { return time.Now().Add(c.p.skew) }

func (c clockOf) After(d time.Duration) <-chan time.Time {
	s, out := c.p.s, make(chan time.Time, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if d <= 0 || c.p.dead {
		out <- time.Now().Add(c.p.skew)
		return out
	}
	if d < 3*grain {
		d = grain
	}
	s.seq++
	s.timers = append(s.timers, &timer{p: c.p, at: time.Since(s.start) + d, n: s.seq, out: out})
	return out
}

// fire tells a timer.
func (s *Sim) fire(t *timer) {
	s.mu.Lock()
	for i, x := range s.timers {
		if x == t {
			s.timers = append(s.timers[:i], s.timers[i+1:]...)
			break
		}
	}
	s.mu.Unlock()
	t.out <- time.Now().Add(t.p.skew)
}

// passTo lets time pass to a moment.
func (s *Sim) passTo(at time.Duration) {
	if d := at - s.now(); d > 0 {
		time.Sleep(d) //nolint:forbidigo // the bubble's time: this is how it passes
	}
}
