package bolt

import (
	"context"
	"errors"
	"sync"
	"time"

	"laneway/shared/queue"
)

// message is a queue.Message that waits; key is its place on disk, for a timer.
type message struct {
	queue.Message
	key []byte
}

// group is the messages of one group in the order they were sent. It is in one
// of three places: waiting in its line's ready list, in a handler's hands, or
// held until a failed head comes again. An empty group is forgotten.
type group struct {
	name     string
	messages []message
}

// line is a lane at work, or the timers, where every message is a group alone.
type line struct {
	q   *Queue
	def queue.Def

	// mu protects all below. The disk is never touched under it, and alarms.mu
	// may be taken under it but not the other way round.
	mu     sync.Mutex
	groups map[string]*group
	seen   dedup
	aging  bool // an alarm to prune seen is set
	ready  fifo[*group]
	busy   int
	begin  func(*group) // starts a handler for the group; nil while nothing runs
	ending func() bool  // Run's context is over
}

func newLine(q *Queue, def queue.Def) *line {
	l := &line{q: q, def: def, groups: make(map[string]*group)}
	l.seen.init()
	return l
}

func (l *line) send(name, dedupID string, body []byte) {
	m := message{Message: queue.Message{
		ID: l.q.cfg.IDs(), Lane: l.def.Lane, Group: name, Body: append([]byte(nil), body...),
	}}
	now := l.q.cfg.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen.add(name, dedupID, now) {
		return
	}
	if !l.aging {
		l.aging = true
		l.pruneLater(now)
	}
	l.push(m)
	l.dispatch()
}

// push appends to the message's group, which gets ready if it was not there.
func (l *line) push(m message) {
	if g := l.groups[m.Group]; g != nil {
		g.messages = append(g.messages, m)
		return
	}
	g := &group{name: m.Group, messages: []message{m}}
	l.groups[m.Group] = g
	l.ready.push(g)
}

// pruneLater keeps the memory of deduplication ids bounded where nobody sends.
func (l *line) pruneLater(now time.Time) {
	l.q.alarms.at(now.Add(queue.DedupWindow), func(now time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		oldest, left := l.seen.prune(now)
		if l.aging = left; left {
			l.pruneLater(oldest)
		}
	})
}

// due makes a message that is a group of its own ready: a timer that has fired,
// or a held one that comes again.
func (l *line) due(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready.push(g)
	l.dispatch()
}

func (l *line) start(ctx context.Context, h queue.Handler, wg *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin = func(g *group) { wg.Go(func() { l.work(ctx, h, g) }) }
	l.ending = func() bool { return ctx.Err() != nil }
	l.dispatch()
}

func (l *line) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin = nil
}

// dispatch begins handlers while there is work and a free one. Called under mu.
func (l *line) dispatch() {
	for l.busy < l.def.Concurrency {
		g, ok := l.take()
		if !ok {
			return
		}
		l.busy++
		l.begin(g)
	}
}

// take gives the next ready group, unless Run is ending. Called under mu.
func (l *line) take() (*group, bool) {
	if l.begin == nil || l.ending() {
		return nil, false
	}
	return l.ready.pop()
}

// work handles the head of g, then of whichever group is next, until none is.
func (l *line) work(ctx context.Context, h queue.Handler, g *group) {
	for ok := true; ok; {
		l.mu.Lock()
		g.messages[0].Receives++
		m := g.messages[0]
		l.mu.Unlock()
		err := queue.Call(ctx, h, m.Message)
		g, ok = l.settle(ctx, g, m, err)
	}
}

// settle decides what becomes of a handled head, and takes the next group.
func (l *line) settle(ctx context.Context, g *group, m message, err error) (*group, bool) {
	stopped := err != nil && ctx.Err() != nil
	gone := err == nil
	if err != nil && !stopped {
		gone = l.fail(m, err)
	}
	if gone && m.key != nil {
		l.q.spent.add(m.key)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if gone {
		g.messages[0] = message{}
		g.messages = g.messages[1:]
	}
	switch {
	case len(g.messages) == 0:
		if m.key == nil {
			delete(l.groups, g.name)
		}
	case stopped:
		// The end of the process is not the message's fault.
		g.messages[0].Receives--
		l.ready.push(g)
	case gone:
		l.ready.push(g)
	default:
		l.q.alarms.at(l.q.cfg.Clock.Now().Add(l.q.cfg.Visibility), func(time.Time) { l.due(g) })
	}
	next, ok := l.take()
	if !ok {
		l.busy--
	}
	return next, ok
}

// fail reports whether a failed message was given up and is a dead letter now.
// It touches the disk, so the group stays in its handler's hands meanwhile.
func (l *line) fail(m message, err error) bool {
	log := l.q.cfg.Log.With("lane", string(l.def.Lane), "message", m.ID, "receives", m.Receives)
	if p, ok := errors.AsType[*queue.PanicError](err); ok {
		log = log.With("stack", string(p.Stack))
	}
	if m.Receives < l.def.MaxReceives {
		log.Warn("queue message failed", "error", err)
		return false
	}
	if derr := l.q.bury(m); derr != nil {
		log.Error("queue message could not be made a dead letter", "error", derr)
		return false // better again than nowhere
	}
	log.Error("queue message became a dead letter", "error", err)
	return true
}

// fifo is a queue of values that lets go of what was popped.
type fifo[T any] struct {
	values []T
	head   int
}

func (f *fifo[T]) push(v T) { f.values = append(f.values, v) }

func (f *fifo[T]) pop() (T, bool) {
	var zero T
	if f.head == len(f.values) {
		return zero, false
	}
	v := f.values[f.head]
	f.values[f.head] = zero
	f.head++
	if f.head >= 64 && f.head*2 >= len(f.values) {
		n := copy(f.values, f.values[f.head:])
		clear(f.values[n:])
		f.values, f.head = f.values[:n], 0
	}
	return v, true
}

func (f *fifo[T]) peek() (T, bool) {
	if f.head == len(f.values) {
		var zero T
		return zero, false
	}
	return f.values[f.head], true
}
