package stream

import (
	"time"
)

// flush numbers what has gathered, if a connection is free to take it and the pace
// allows. Otherwise it goes when a post ends, or by a timer.
func (s *Stream) flush() {
	thinking := s.think.pending() && s.wanted(s.covering(thinkDelta, s.think))
	if s.closing || !s.text.pending() && !thinking || !s.free(thinking) {
		return
	}
	now := s.c.Clock.Now()
	wait := s.c.Pacing
	if s.text.pending() {
		wait = min(wait, s.lastText.Add(s.c.Pacing).Sub(now))
	}
	if thinking {
		wait = min(wait, s.lastThink.Add(s.c.Pacing).Sub(now))
	}
	if wait > 0 {
		s.later(wait)
		return
	}
	s.flushNow(true)
}

// flushNow numbers what has gathered; the text only if asked.
func (s *Stream) flushNow(withText bool) {
	if s.closing {
		return
	}
	if s.thinkFirst {
		s.take(thinkDelta, s.think, &s.lastThink)
	}
	if withText {
		s.take(textDelta, s.text, &s.lastText)
	}
	s.take(thinkDelta, s.think, &s.lastThink)
	s.thinkFirst = false
}

// take makes entries of what has gathered of one text: several, if it is more than
// a frame holds, so that each frame has a number of its own.
func (s *Stream) take(k kind, t *text, last *time.Time) {
	if !t.pending() {
		return
	}
	e := s.covering(k, t)
	if !s.wanted(e) {
		return
	}
	*last = s.c.Clock.Now()
	for s.seq < s.reserved {
		part := *e
		part.to = s.cut(e, t.numbered, s.frames.room)
		t.numbered, t.replaced = part.to, false
		s.number(&part)
		if t.numbered == len(t.buf) {
			return
		}
	}
}

// covering is an entry over the whole text of a message.
func (s *Stream) covering(k kind, t *text) *entry {
	e := &entry{kind: k, of: t, gen: t.gen, from: t.from, to: len(t.buf)}
	if k != thinkDelta {
		e.stream, e.itemID = assistantStream, t.id
	}
	return e
}

// free says whether a connection waits for more of what has gathered. Before the
// connections are known, one entry of it waits for them and the rest gathers.
func (s *Stream) free(thinking bool) bool {
	if !s.resolved {
		for _, e := range s.backlog {
			if e.lossy() {
				return false
			}
		}
		return true
	}
	for _, r := range s.recipients {
		if r.gone || r.busy || len(r.queue) > 0 {
			continue
		}
		if s.text.pending() && r.form != formNone || thinking && r.form == formAgent {
			return true
		}
	}
	return false
}

// later flushes when the pace allows.
func (s *Stream) later(wait time.Duration) {
	if s.pacing {
		return
	}
	s.pacing = true
	after := s.c.Clock.After(wait)
	s.workers.Go(func() {
		select {
		case <-after:
		case <-s.done:
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pacing = false
		s.flush()
	})
}
