package fault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"laneway/shared/loop"
	"laneway/shared/model/retry"
	"laneway/shared/queueing"
	"laneway/shared/rpc"
	"laneway/shared/wiring"
)

// errKilled is what a dead process hears of every port.
var errKilled = errors.New("fault: the process is dead")

// role is what a process is for.
type role string

const (
	gateway  role = "gateway"
	runner   role = "runner"
	watchdog role = "watchdog"
	notifier role = "notifier"
)

// slot is a place for a process: a dead one is replaced.
type slot struct {
	name string
	role role
	lane string // of a runner
	gen  int
	cur  *proc
}

// proc is one process of the product: its services, which know nothing of the others
// but by the ports.
type proc struct {
	s    *Sim
	slot *slot
	name string
	n    int // in order of birth
	skew time.Duration

	core   *wiring.Core
	runner *loop.Runner
	gate   *rpc.Gateway
	ids    int // under s.mu

	ctx    context.Context // of all that the process does
	cancel context.CancelFunc

	// Under s.mu.
	dead    bool
	gone    chan struct{} // closed when it dies
	frozen  bool
	thaw    time.Duration
	inv     int      // invocations begun; a gateway has none
	msg     *message // that it works on
	hurt    int      // step of the last thing that went wrong with this process
	overdue time.Duration
	doomed  bool // it is to die as soon as nothing moves

	later func() // of the mutation timer-after-the-row
}

// actor is one invocation of a process: what a claim belongs to.
type actor struct {
	p   *proc
	inv int
}

func (a actor) String() string {
	if a.p == nil {
		return "nobody"
	}
	return fmt.Sprintf("%s/%d", a.p.name, a.inv)
}

func (p *proc) actor() actor { return actor{p, p.inv} }

// spawn puts a new process into a slot.
func (s *Sim) spawn(sl *slot) *proc {
	sl.gen++
	p := &proc{s: s, slot: sl, name: fmt.Sprintf("%s.%d", sl.name, sl.gen), n: len(s.procs), gone: make(chan struct{})}
	if s.p.Skew > 0 {
		p.skew = time.Duration(s.rng.Int64N(int64(2*s.p.Skew))) - s.p.Skew
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	m := s.cfg.Mutation
	times := s.times()
	if m != nil && m.Times != nil && sl.role == runner {
		m.Times(&times)
	}
	var store storePort = &port{p}
	if m != nil && m.Store != nil {
		store = m.Store(p, store)
	}
	q := s.mutedQueue(p)
	core, err := wiring.Build(wiring.Ports{Store: store, Queue: q, Timers: q, Poster: poster{p}}, wiring.Settings{
		Times: times, Clock: clockOf{p}, NewID: p.newID, Log: slog.New(slog.DiscardHandler), Pacing: -1, BusyWait: 10 * time.Second,
		Inbound: queueing.Inbound{Base: s.p.Inbound},
	})
	if err == nil && sl.role == runner {
		b := &brain{p}
		p.runner, err = core.Runner(wiring.RunnerConfig{
			Models: b, Agents: b, Retry: retry.Config{Rand: func() float64 { return 0.5 }}, StepNeed: s.p.stepNeed(), Reserve: 3 * time.Second,
		})
		if err == nil && m != nil && m.Ends != nil {
			p.runner.Ends = m.Ends(p.runner.Ends)
		}
	}
	if err == nil && sl.role == gateway {
		p.gate, err = core.Gateway(nobody{}, directory{})
	}
	if err != nil {
		s.violatef("kit", "process not built: %v", err)
	}
	p.core = core
	s.procs, sl.cur = append(s.procs, p), p
	return p
}

func (p *proc) newID() string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.ids++
	return fmt.Sprintf("%s-%d", p.name, p.ids)
}

// begin makes the process do something. A runner, watchdog and notifier does one thing
// at a time.
func (p *proc) begin(m *message, f func(context.Context)) {
	p.s.mu.Lock()
	p.inv++
	p.msg = m
	p.s.mu.Unlock()
	go f(p.ctx)
}

// done says that the process is free again.
func (p *proc) done() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.msg, p.overdue = nil, 0
}

// idle says whether a process can be given something to do.
func (p *proc) idle() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return !p.dead && !p.frozen && p.msg == nil
}

// kill ends a process in the middle of whatever it does, as a machine that loses its
// power does; its slot gets a new one. Its message stays with it until it is visible
// again.
func (s *Sim) kill(p *proc, why string) {
	if p.dead {
		return
	}
	s.wrong("kill")
	s.notef(p.name, "KILLED %s", why)
	if p.msg != nil {
		s.boxes.abandoned(p.msg)
	}
	s.end(p)
	s.spawn(p.slot)
}

// end makes every port of a process fail from now on, and everything in it unwind.
func (s *Sim) end(p *proc) {
	s.mu.Lock()
	if p.dead {
		s.mu.Unlock()
		return
	}
	p.dead, p.frozen, p.hurt = true, false, s.steps
	s.ghost.died(p)
	close(p.gone)
	s.parked = slices.DeleteFunc(s.parked, func(c *call) bool { return c.p == p })
	var ring []*timer
	s.timers = slices.DeleteFunc(s.timers, func(t *timer) bool {
		if t.p == p {
			ring = append(ring, t)
		}
		return t.p == p
	})
	s.mu.Unlock()
	p.cancel()
	for _, t := range ring {
		t.out <- time.Now()
	}
}

// freeze stops a process for a while: nothing of it goes on, and nobody else can tell it
// from a slow one.
func (s *Sim) freeze(p *proc, d time.Duration, why string) {
	s.wrong("freeze")
	s.notef(p.name, "FROZEN for %s %s", d, why)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.frozen, p.thaw, p.hurt = true, time.Since(s.start)+d, s.steps
}

func (s *Sim) melt(p *proc) {
	s.wrong("thaw")
	s.notef(p.name, "thaws")
	s.mu.Lock()
	defer s.mu.Unlock()
	p.frozen, p.hurt = false, s.steps
}
