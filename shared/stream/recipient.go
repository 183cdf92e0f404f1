package stream

import (
	"context"
	"errors"
	"time"

	"laneway/shared/clock"
	"laneway/shared/push"
)

// form is which deltas a connection gets.
type form int

const (
	formAgent form = iota // assistant and thinking deltas
	formChat              // chat deltas
	formNone              // replies only
)

const (
	// creditStart and creditRate (a second) are the credit of the whole text, see the
	// package comment. A reply of a few kilobytes carries it always; 100 KB of text at
	// once cost less than 0.5 MB with it.
	creditStart = 64 << 10
	creditRate  = 24 << 10

	// behind is how many deltas wait before they are made one.
	behind = 2

	// Bounds of a queue. Over maxInfo the oldest informational event goes; a
	// connection over maxWaiting gets nothing more of this run but its replies.
	maxInfo    = 256
	maxWaiting = 2048

	backoffBase = 50 * time.Millisecond
	backoffMost = 3 * time.Second

	// pollEvery is how often a claim that is not trusted is asked again.
	pollEvery = 250 * time.Millisecond
)

// lane is how far a connection is in a text.
type lane struct {
	of  *text
	off int
	// replace: what the connection has of the text is not known, or was taken back,
	// so the next frame begins it anew.
	replace bool
}

// recipient is the ordered queue of one connection in one run. Its worker is the
// only one that posts to it. All fields but id, target and wake are under the
// stream's lock.
type recipient struct {
	id     string
	target push.Target
	wake   chan struct{} // holds one value

	form       form
	toolEvents bool
	subscribed bool // listens because of a subscription

	queue   []*entry
	infos   int  // informational entries in queue
	busy    bool // its worker is posting, waiting to try again, or cleaning up
	fails   int  // failed posts in a row
	gone    bool
	text    lane
	think   lane
	credit  int
	counted int   // of text, for the credit
	at      int64 // ms, for the credit
}

func (r *recipient) idle() bool { return !r.busy && len(r.queue) == 0 }

// wants says whether the entry is for this connection.
func (r *recipient) wants(e *entry) bool {
	switch {
	case r.gone:
		return false
	case e.only != "":
		return e.only == r.id
	case r.form == formNone, e.not != "" && e.not == r.id, e.tools() && !r.toolEvents:
		return false
	}
	return e.kind != thinkDelta || r.form == formAgent
}

// push puts an entry at the end of the queue. room is what a frame holds of text.
func (r *recipient) push(e *entry, room int) {
	if !r.wants(e) {
		return
	}
	r.merge(e, room)
	r.queue = append(r.queue, e)
	switch {
	case e.kind == info:
		if r.infos++; r.infos > maxInfo {
			r.dropInfo()
		}
	case len(r.queue) > maxWaiting:
		r.giveUp()
	}
	r.signal()
}

// merge makes one of the deltas of a connection that fell behind: those that e
// covers go, if several wait, back to the last thing that must arrive. What a tool
// did must not be told before the text that led to it.
func (r *recipient) merge(e *entry, room int) {
	if !e.lossy() {
		return
	}
	first, covered := len(r.queue), 0
	for i := len(r.queue) - 1; i >= r.unstarted(); i-- {
		old := r.queue[i]
		if !old.lossy() && old.kind != info {
			break
		}
		if e.covers(old) {
			first = i
			covered++
		}
	}
	l := r.lane(e.kind)
	if covered < behind || !l.replace && e.to-max(l.off, e.from) > room {
		return
	}
	kept := r.queue[:first]
	for _, old := range r.queue[first:] {
		if !e.covers(old) {
			kept = append(kept, old)
		}
	}
	r.queue = kept
}

// unstarted is the first place of the queue that the worker has not begun.
func (r *recipient) unstarted() int {
	if r.busy {
		return 1
	}
	return 0
}

func (r *recipient) dropInfo() {
	for i := r.unstarted(); i < len(r.queue); i++ {
		if r.queue[i].kind == info {
			r.queue = append(r.queue[:i], r.queue[i+1:]...)
			r.infos--
			return
		}
	}
}

// giveUp keeps only replies. The first entry stays while it is being posted.
func (r *recipient) giveUp() {
	first := r.unstarted()
	kept := r.queue[:min(first, len(r.queue))]
	for _, e := range r.queue[len(kept):] {
		if e.kind == reply {
			kept = append(kept, e)
		}
	}
	clear(r.queue[len(kept):])
	r.queue, r.infos, r.form = kept, 0, formNone
}

func (r *recipient) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recipient) pop() {
	if r.queue[0].kind == info {
		r.infos = max(r.infos-1, 0)
	}
	r.queue[0] = nil
	r.queue = r.queue[1:]
}

func (r *recipient) lane(k kind) *lane {
	if k == thinkDelta {
		return &r.think
	}
	return &r.text
}

// outcome of a post.
type outcome int

const (
	posted outcome = iota
	again          // throttled, failed, or no answer in time
	toGone
	refused // it would never be taken
)

func classify(err error) outcome {
	switch {
	case err == nil:
		return posted
	case errors.Is(err, push.ErrGone):
		return toGone
	case errors.Is(err, push.ErrTooLarge):
		return refused
	}
	return again
}

// serve is the worker of a recipient. It ends when the stream does or the
// connection is gone.
func (s *Stream) serve(r *recipient) {
	for {
		frame, done := s.next(r)
		if frame == nil {
			select {
			case <-r.wake:
				continue
			case <-s.done:
				return
			}
		}
		if !s.info.mayPost() {
			if clock.Sleep(s.ctx, s.c.Clock, pollEvery) != nil {
				return
			}
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, s.c.PostTimeout)
		o := classify(s.c.Poster.Post(ctx, r.target, frame))
		cancel()
		wait := s.settle(r, o, done)
		switch o {
		case posted:
		case toGone:
			s.forget(r)
			return
		case refused:
			s.c.Logger.Warn("frame refused", "connection", r.id, "run", s.info.Ref.Run, "bytes", len(frame))
		case again:
			if clock.Sleep(s.ctx, s.c.Clock, wait) != nil {
				return
			}
		}
	}
}

// settle notes what became of a post; done says what it told the connection.
func (s *Stream) settle(r *recipient, o outcome, done progress) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o {
	case posted:
		r.fails = 0
		s.advance(r, done)
	case refused:
		if len(r.queue) > 0 && r.queue[0] == done.entry {
			r.pop()
		}
	case toGone:
		r.gone, r.queue = true, nil
	case again:
		r.fails++
		s.retreat(r, done)
		wait = backoff(r.fails)
	}
	return wait
}

// advance moves the connection past what it got.
func (s *Stream) advance(r *recipient, p progress) {
	if p.lane {
		// A text that was taken back meanwhile had its lane set anew: then the frame
		// told of nothing that still counts.
		if l := r.lane(p.entry.kind); l.of == p.entry.of && p.entry.of.gen == p.entry.gen {
			l.off, l.replace = p.to, false
		}
	}
	if p.last && len(r.queue) > 0 && r.queue[0] == p.entry {
		r.pop()
	}
}

// retreat readies the queue for another try. Whether a delta arrived is not
// known: the next one replaces.
func (s *Stream) retreat(r *recipient, p progress) {
	if p.lane {
		r.lane(p.entry.kind).replace = true
	}
}

// supersede drops the first entry if it is to replace and a later one can do so
// in its place.
func (r *recipient) supersede() {
	first := r.queue[0]
	if !first.lossy() || !r.lane(first.kind).replace {
		return
	}
	for _, e := range r.queue[1:] {
		if e.covers(first) {
			r.pop()
			return
		}
		if !e.lossy() && e.kind != info {
			return
		}
	}
}

// forget removes a connection that is gone. It waits for it at most as long as for
// a post; the run does not notice.
func (s *Stream) forget(r *recipient) {
	ctx, cancel := context.WithTimeout(s.ctx, s.c.PostTimeout)
	defer cancel()
	if err := s.c.Connections.Close(ctx, r.id); err != nil {
		s.c.Logger.Warn("connection that is gone was not removed", "error", err, "connection", r.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.busy = false
	s.flush()
	s.tellIdle()
}
