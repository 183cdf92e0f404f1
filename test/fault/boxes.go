package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"laneway/shared/lane"
	"laneway/shared/queue"
)

// message is a wake-up in a lane, or a timer.
type message struct {
	id       int
	lane     queue.Lane // of a wake-up
	group    string
	body     []byte
	reason   string
	receives int
	held     bool          // in a receiver's hands, or hidden after it failed
	visible  time.Duration // when it comes again; of a timer, when it is due
	forever  bool          // it never comes again: its receiver is dead, and nobody knows
	gone     bool
}

// boxes are the queues: FIFO lanes by group, and timers. Nothing in them moves but what
// the scheduler moves.
type boxes struct {
	s      *Sim
	wakes  []*message
	timers []*message
	dead   []*message
	old    []*message // sent once, for those that come again
	n      int
	minute time.Duration
	sent   int // in this minute
	dedup  map[string]time.Duration
}

func newBoxes(s *Sim) *boxes { return &boxes{s: s, dedup: make(map[string]time.Duration)} }

// storm is how many wake-ups of a minute are too many, for the few runs that there are.
const storm = 150

// send is called by the one goroutine that was let go on.
func (b *boxes) send(l queue.Lane, group, dedup string, body []byte, reason string) {
	now := b.s.now()
	key := string(l) + " " + group + " " + dedup
	if at, known := b.dedup[key]; known && now-at < queue.DedupWindow {
		b.s.notef("queue", "swallows a %s wake-up: its deduplication id is known", reason)
		return
	}
	b.dedup[key] = now
	b.n++
	b.sent++
	if b.minute != now/time.Minute {
		b.minute, b.sent = now/time.Minute, 0
	}
	if b.sent > storm {
		b.s.violatef("storm", "%d wake-ups in a minute, the last one %s", b.sent, reason)
	}
	m := &message{id: b.n, lane: l, group: group, body: slices.Clone(body), reason: reason}
	b.wakes, b.old = append(b.wakes, m), append(b.old, m)
}

func (b *boxes) after(d time.Duration, body []byte) {
	b.n++
	var t struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(body, &t); err != nil {
		b.s.violatef("kit", "a timer that is no JSON: %v", err)
	}
	// A second's grain, as on AWS.
	at := b.s.now() + d
	if rest := at % time.Second; rest != 0 {
		at += time.Second - rest
	}
	b.timers = append(b.timers, &message{id: b.n, body: slices.Clone(body), reason: t.Kind, visible: at})
}

// due lists the wake-ups of a lane that may be received: the head of each group that
// nobody holds.
func (b *boxes) due(l string) []*message {
	var out []*message
	now := b.s.now()
	blocked := make(map[string]bool)
	for _, m := range b.wakes {
		if string(m.lane) != l || blocked[m.group] {
			continue
		}
		blocked[m.group] = true
		if !m.held || !m.forever && m.visible > 0 && m.visible <= now {
			out = append(out, m)
		}
	}
	return out
}

// behind says whether a wake-up waits behind one that never comes again.
func (b *boxes) behind(m *message) bool {
	for _, x := range b.wakes {
		if x == m {
			return false
		}
		if x.lane == m.lane && x.group == m.group && x.forever {
			return true
		}
	}
	return false
}

// ring lists the timers that are due.
func (b *boxes) ring() []*message {
	var out []*message
	now := b.s.now()
	for _, m := range b.timers {
		if m.visible <= now && (!m.held || !m.forever) {
			out = append(out, m)
		}
	}
	return out
}

// abandoned is what becomes of a message whose receiver died: it comes again when its
// time is over, or never.
func (b *boxes) abandoned(m *message) {
	if m.gone {
		return
	}
	d := pick(b.s, b.s.p.Visibility)
	m.forever, m.visible = d < 0, b.s.now()+max(d, 0)
	if m.lane == "" {
		m.forever = false // a standard queue gives it again
	}
}

// drop takes a message off for ever.
func (b *boxes) drop(m *message) {
	m.gone = true
	same := func(x *message) bool { return x == m }
	b.wakes, b.timers = slices.DeleteFunc(b.wakes, same), slices.DeleteFunc(b.timers, same)
}

// again makes a message that was sent once come once more, in a group of its own.
func (b *boxes) again(m *message) {
	b.n++
	c := *m
	c.id, c.group, c.held, c.receives, c.gone, c.forever = b.n, fmt.Sprintf("again-%d", b.n), false, 0, false, false
	if m.lane == "" {
		b.timers = append(b.timers, &c)
		return
	}
	b.wakes = append(b.wakes, &c)
}

// receive gives a wake-up to a runner, or a timer to the notifier.
func (s *Sim) receive(p *proc, m *message) {
	m.held, m.visible, m.forever = true, 0, false
	m.receives++
	if m.lane == "" {
		// A timer is hidden while it is worked on, for as long as the function may take.
		m.visible, m.forever = s.now()+time.Hour, true
	}
	s.notef(p.name, "receives %s %d (%s), receive %d", map[bool]string{true: "timer", false: "wake-up"}[m.lane == ""], m.id, m.reason, m.receives)
	var deadline time.Time
	if d := s.p.Invocation; d > 0 && p.slot.role == runner {
		deadline = time.Now().Add(p.skew).Add(d)
		p.overdue = s.now() + d + time.Second
	}
	p.begin(m, func(ctx context.Context) {
		h := func(ctx context.Context, q queue.Message) error { return p.core.Notify.HandleTimer(ctx, q.Body) }
		if p.slot.role == runner {
			h = p.wake(deadline)
		}
		err := queue.Call(ctx, h, queue.Message{ID: strconv.Itoa(m.id), Lane: m.lane, Group: m.group, Body: m.body, Receives: m.receives})
		what := "acknowledges"
		if err != nil {
			what = fmt.Sprintf("fails: %v", err)
		}
		if p.park(context.Background(), call{what: what, point: beforeAck}) == killed {
			return
		}
		s.settleMessage(p, m, err)
		p.done()
	})
}

// wake is the runner's handler of wake-ups, as a function with a deadline has it.
func (p *proc) wake(deadline time.Time) queue.Handler {
	h := func(ctx context.Context, m queue.Message) error {
		w, err := lane.ParseWakeup(m.Body)
		if err != nil {
			return err
		}
		if !deadline.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline)
			defer cancel()
		}
		return p.runner.Handle(ctx, w, deadline)
	}
	if m := p.s.cfg.Mutation; m != nil && m.Wake != nil {
		return m.Wake(p, h)
	}
	return h
}

// settleMessage acknowledges a message, or lets it come again.
func (s *Sim) settleMessage(p *proc, m *message, err error) {
	s.ghost.panicked(p, err)
	b := s.boxes
	switch {
	case m.gone:
	case err == nil:
		b.drop(m)
	case m.receives >= cmp.Or(s.p.Receives, 5) && m.lane != "":
		b.drop(m)
		b.dead = append(b.dead, m)
		s.notef("queue", "wake-up %d is a dead letter", m.id)
	default:
		d := pick(s, s.p.Visibility)
		m.forever, m.visible = d < 0 && m.lane != "", s.now()+max(d, time.Second)
	}
}
