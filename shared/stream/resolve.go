package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/run"
)

// maxLookups is how often the recipients are asked for before the run goes on for
// its origin alone; the next Refresh asks again.
const maxLookups = 5

// resolve finds the recipients and hands them what was said so far.
func (s *Stream) resolve() {
	defer close(s.ready)
	subscribers, origin, err := s.lookup()
	if err != nil {
		s.c.Logger.Warn("subscribers unknown", "error", err, "run", s.info.Ref.Run)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.resolved = true
	if origin != nil {
		s.add(origin.ID, origin.Target(), func(r *recipient) {
			r.form, r.toolEvents = formAgent, origin.Has(CapTools)
			if s.info.OriginUsesChat {
				r.form = formChat
			}
		})
	}
	s.subscribe(subscribers, false)
	for _, e := range s.backlog {
		if e.waiter != nil {
			s.addressee(e.waiter)
		}
		for _, r := range s.recipients {
			r.push(e, s.frames.room)
		}
	}
	s.backlog = nil
	s.flush()
	s.tellIdle()
}

// lookup asks for subscribers and origin at once, because a function waits for
// each answer some milliseconds.
func (s *Stream) lookup() (subscribers []connection.Subscriber, origin *connection.Subscriber, err error) {
	found := make(chan *connection.Subscriber, 1)
	s.workers.Go(func() { found <- s.origin() })
	for try := 1; ; try++ {
		subscribers, err = s.c.Connections.Subscribers(s.ctx, s.info.Ref.Tenant, s.info.SessionKey)
		if err == nil || try == maxLookups {
			return subscribers, <-found, err
		}
		if serr := sleep(s.ctx, s.c.Clock, try); serr != nil {
			return nil, <-found, err
		}
	}
}

// origin is the connection that started the run; nil: none, or it is gone.
func (s *Stream) origin() *connection.Subscriber {
	o := s.info.Origin
	if o == nil {
		return nil
	}
	for try := 1; ; try++ {
		row, err := s.c.Connections.Load(s.ctx, o.ConnectionID)
		switch {
		case err == nil && row.Tenant == s.info.Ref.Tenant:
			return &connection.Subscriber{ID: row.ID, Callback: row.Callback, Caps: row.Caps}
		case err == nil, errors.Is(err, connection.ErrGone):
			return nil
		}
		if try == maxLookups || sleep(s.ctx, s.c.Clock, try) != nil {
			// It gets what needs no capability.
			return &connection.Subscriber{ID: o.ConnectionID, Callback: o.Callback}
		}
	}
}

// sleep waits before another try.
func sleep(ctx context.Context, c clock.Clock, try int) error {
	return clock.Sleep(ctx, c, backoff(try))
}

// backoff is how long to wait after so many failures in a row: doubled each time,
// the later half of it by chance.
func backoff(fails int) time.Duration {
	d := min(backoffBase<<min(fails-1, 10), backoffMost)
	return d/2 + rand.N(d/2) //nolint:gosec // jitter is no secret
}

// add makes a recipient, unless there is one of that id, and starts its worker.
func (s *Stream) add(id string, target push.Target, set func(*recipient)) *recipient {
	for _, r := range s.recipients {
		if r.id == id { // also one that is gone: ids are not used again
			return r
		}
	}
	r := &recipient{
		id: id, target: target, wake: make(chan struct{}, 1), form: formNone,
		text: lane{of: s.text}, think: lane{of: s.think}, credit: creditStart,
	}
	if s.info.Again || s.info.Messages > 0 || s.info.Text != "" {
		// An attempt before this one may have said more than was kept.
		r.text.replace = true
	}
	set(r)
	s.recipients = append(s.recipients, r)
	s.workers.Go(func() { s.serve(r) })
	return r
}

// subscribe makes recipients of subscribers. One that comes late gets the whole
// text with the next delta.
func (s *Stream) subscribe(list []connection.Subscriber, late bool) {
	for _, sub := range list {
		r := s.add(sub.ID, sub.Target(), func(r *recipient) { r.form = formNone })
		r.subscribed = true
		if r.form == formNone { // new, or known by a reply only
			r.form, r.toolEvents = formChat, sub.Has(CapTools)
			r.text.replace = r.text.replace || late
		}
	}
}

// addressee makes sure that there is a recipient for a reply.
func (s *Stream) addressee(to *run.Waiter) {
	s.add(to.ConnectionID, push.Target{ConnectionID: to.ConnectionID, Callback: to.Callback}, func(*recipient) {})
}

// Refresh reads the subscribers again. One that is new gets the whole text with
// the next delta, one that left gets nothing more.
func (s *Stream) Refresh(ctx context.Context) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	list, err := s.c.Connections.Subscribers(ctx, s.info.Ref.Tenant, s.info.SessionKey)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || !s.resolved {
		return nil
	}
	listens := make(map[string]bool, len(list))
	for _, sub := range list {
		listens[sub.ID] = true
	}
	for _, r := range s.recipients {
		if r.subscribed && !listens[r.id] {
			r.subscribed = false
			if s.info.Origin == nil || s.info.Origin.ConnectionID != r.id {
				r.giveUp()
			}
		}
	}
	s.subscribe(list, true)
	s.flush()
	return nil
}
