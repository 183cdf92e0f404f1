package fault

import (
	"context"
	"fmt"
	"time"

	"laneway/shared/lane"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/session"
	"laneway/shared/table"
)

type storePort = table.Store

// port is a process's way to the tables.
type port struct{ p *proc }

func (t *port) fault(v verdict, write bool) error {
	switch v {
	case conflict:
		return fmt.Errorf("%w: injected", table.ErrConflict)
	case throttle:
		return fmt.Errorf("%w: injected", table.ErrThrottled)
	case lostBefore, lostAfter:
		return fmt.Errorf("%w: injected", table.ErrUnknown)
	case killed:
		return fmt.Errorf("%w: %w", table.ErrClosed, errKilled)
	case cancelled:
		if write {
			return fmt.Errorf("%w: %w", table.ErrUnknown, context.Canceled)
		}
		return context.Canceled
	case proceed, gone410, slow:
	}
	return nil
}

func (t *port) read(ctx context.Context, what string) error {
	return t.fault(t.p.park(ctx, call{what: what, read: true}), false)
}

// Get implements table.Store.
func (t *port) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if err := t.read(ctx, "get "+shortKey(k)); err != nil {
		return table.Item{}, err
	}
	return t.p.s.store.tables.Get(ctx, k)
}

// Query implements table.Store.
func (t *port) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if err := t.read(ctx, "query "+shortKey(table.Key{PK: q.PK, SK: q.From})); err != nil {
		return table.Page{}, err
	}
	return t.p.s.store.tables.Query(ctx, q)
}

// Index implements table.Store. The watchdog asks it for sixteen shards at a time: that
// is one step.
func (t *port) Index(ctx context.Context, q table.IndexQuery) (table.KeyPage, error) {
	if t.p.isDead() {
		return table.KeyPage{}, t.fault(killed, false)
	}
	return t.p.s.store.tables.Index(ctx, q)
}

// Write implements table.Store.
func (t *port) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	k := kindOf(ops)
	c := call{what: describe(k, ops), point: around[k].before, ops: ops, kind: k}
	if meta := find(ops, isMeta); meta != nil {
		ref, _ := session.RefOfPK(meta.Key.PK)
		c.key = ref.Key
	}
	v := t.p.park(ctx, c)
	if v != proceed && v != lostAfter {
		return table.Result{}, t.fault(v, true)
	}
	res, err := t.p.s.store.write(t.p, k, ops)
	if v == lostAfter {
		return table.Result{}, t.fault(v, true)
	}
	return res, err
}

// mail is a process's way to the queues.
type mail struct{ p *proc }

// mailPort is what the product sends wake-ups and timers with.
type mailPort interface {
	queue.Sender
	queue.Timers
}

func (s *Sim) mutedQueue(p *proc) mailPort {
	var q mailPort = mail{p}
	if m := s.cfg.Mutation; m != nil && m.Queue != nil {
		q = m.Queue(p, q)
	}
	return q
}

func mailFault(v verdict) error {
	switch v {
	case killed:
		return fmt.Errorf("%w: %w", queue.ErrClosed, errKilled)
	case cancelled:
		return context.Canceled
	case proceed, lostAfter:
		return nil
	case conflict, throttle, lostBefore, gone410, slow:
	}
	return fmt.Errorf("%w: injected", queue.ErrThrottled)
}

// Send implements queue.Sender.
func (m mail) Send(ctx context.Context, l queue.Lane, group, dedup string, body []byte) error {
	if err := queue.Check(group, dedup, body); err != nil {
		return err
	}
	w, err := lane.ParseWakeup(body)
	if err != nil {
		return err
	}
	at := point("")
	if w.Reason == "sweep" {
		at = beforeSweep
		m.p.s.ghost.rescued(w.Key)
	}
	if err := mailFault(m.p.park(ctx, call{what: fmt.Sprintf("send %s wake-up %s to %s", w.Reason, w.Key, l), point: at})); err != nil {
		return err
	}
	m.p.s.boxes.send(l, group, dedup, body, w.Reason)
	return nil
}

// After implements queue.Timers.
func (m mail) After(ctx context.Context, d time.Duration, body []byte) error {
	if err := queue.CheckDelay(d); err != nil {
		return err
	}
	if err := mailFault(m.p.park(ctx, call{what: fmt.Sprintf("timer in %s", d.Truncate(time.Millisecond))})); err != nil {
		return err
	}
	m.p.s.boxes.after(d, body)
	return nil
}

// poster is a process's way to connections.
type poster struct{ p *proc }

// Post implements push.Poster.
func (o poster) Post(ctx context.Context, to push.Target, frame []byte) error {
	c := o.p.s.conns[to.ConnectionID]
	switch v := o.p.park(ctx, call{what: "post to " + to.ConnectionID + " " + brief(frame), post: true}); v {
	case killed:
		return errKilled
	case cancelled:
		return fmt.Errorf("%w: %w", push.ErrFailed, context.Canceled)
	case gone410:
		return push.ErrGone
	case throttle, conflict:
		return push.ErrThrottled
	case lostBefore:
		return push.ErrFailed
	case lostAfter, slow:
		c.take(o.p, frame)
		return push.ErrFailed
	case proceed:
	}
	if c == nil || c.gone {
		return push.ErrGone
	}
	c.take(o.p, frame)
	return nil
}

// Close implements push.Poster.
func (o poster) Close(context.Context, push.Target) error { return nil }
