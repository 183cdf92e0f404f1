package stream

// progress is what a frame tells its connection, to be noted once it was taken.
type progress struct {
	entry *entry
	lane  bool // it moves the lane of the entry's kind
	to    int  // to here
	last  bool // it is the last frame of its entry
}

// next takes the next frame for a connection; nil: there is nothing to post now,
// and the worker is idle.
func (s *Stream) next(r *recipient) ([]byte, progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for flushed := false; ; flushed = true {
		for len(r.queue) > 0 && !s.ended && !r.queue[0].held() {
			r.supersede()
			if frame, p := s.frame(r, r.queue[0]); frame != nil {
				r.busy = true
				return frame, p
			}
			r.pop()
		}
		r.busy = false
		if flushed || len(r.queue) > 0 {
			break
		}
		s.flush() // what gathered meanwhile goes now
	}
	s.tellIdle()
	return nil, progress{}
}

// frame is the next frame of an entry for a connection, nil if it has nothing
// (more) to tell it.
func (s *Stream) frame(r *recipient, e *entry) ([]byte, progress) {
	switch e.kind {
	case textDelta, thinkDelta:
		if e.gen != e.of.gen { // taken back; a newer entry follows
			return nil, progress{}
		}
		frame, to := s.delta(r, e)
		if frame == nil {
			return nil, progress{}
		}
		return frame, progress{entry: e, lane: true, to: to, last: to == e.to}
	case endText:
		return s.endFrame(r, e)
	case event, info:
		return e.fixed(s.frames), progress{entry: e, last: true}
	case reply, notice:
		return e.frame, progress{entry: e, last: true}
	}
	return nil, progress{}
}

// endFrame is the next frame of the end of a message. An assistant form has it in
// its last delta; a chat form gets what is missing as chat deltas, then the
// assistant event.
func (s *Stream) endFrame(r *recipient, e *entry) ([]byte, progress) {
	valid := e.gen == e.of.gen
	if r.form == formChat {
		if valid {
			if frame, to := s.delta(r, e); frame != nil {
				return frame, progress{entry: e, lane: true, to: to}
			}
		}
		return e.fixed(s.frames), progress{entry: e, last: true}
	}
	if !valid {
		return e.fixed(s.frames), progress{entry: e, last: true}
	}
	frame, to := s.delta(r, e)
	if frame == nil { // nothing is missing: the end itself is told
		frame, to = s.encode(r, e, max(r.text.off, e.from), e.to, r.text.replace)
	}
	return frame, progress{entry: e, lane: true, to: to, last: to == e.to}
}

// delta is the frame of what a connection lacks of a text, and how far it brings
// it; nil: it lacks nothing.
func (s *Stream) delta(r *recipient, e *entry) ([]byte, int) {
	l := r.lane(e.kind)
	begin := e.from
	if r.form == formChat {
		begin = 0
	}
	if l.of != e.of {
		*l = lane{of: e.of}
	}
	off := max(l.off, begin)
	if off >= e.to && !l.replace {
		return nil, e.to
	}
	if !l.replace {
		return s.encode(r, e, off, s.cut(e, off, s.frames.room), false)
	}
	return s.encode(r, e, off, e.to, true)
}

// cut is how far one frame can go from a position.
func (s *Stream) cut(e *entry, from, room int) int {
	if e.to-from <= room {
		return e.to
	}
	return safeCut(e.of.buf[:e.to], from+room)
}

// encode makes the frame that says [off, to) of a text. With replace it says the
// text from its beginning; if that is too much for a frame, as much as fits, and
// the rest follows as deltas.
func (s *Stream) encode(r *recipient, e *entry, off, to int, replace bool) ([]byte, int) {
	buf, room := e.of.buf, s.frames.room
	begin := e.from
	if r.form == formChat {
		begin = 0
	}
	var p piece
	p.replace = replace
	switch whole := to - begin; {
	case !replace:
		p.delta = buf[off:to]
		p.withWhole = whole+len(p.delta) <= room && r.afford(e, whole)
	case r.form == formChat: // here deltaText is what replaces
		if whole > room {
			to = s.cut(e, 0, room)
		}
		p.delta = buf[:to]
		p.withWhole = 2*to <= room && r.afford(e, to)
	default:
		if whole > room {
			to = s.cut(e, begin, room/2)
		}
		p.withWhole = true
		if off = min(off, to); to-begin+to-off <= room {
			p.delta = buf[off:to]
		}
	}
	if p.withWhole {
		p.whole = buf[begin:to]
	}
	c := &e.cache[r.form]
	if c.frame == nil || c.from != off || c.to != to || c.full != p.withWhole || c.replace != replace {
		*c = cachedFrame{from: off, to: to, full: p.withWhole, replace: replace}
		switch {
		case r.form == formChat:
			c.frame = s.frames.chatDelta(p, e.seq, e.ts)
		case e.kind == thinkDelta:
			c.frame = s.frames.textEvent(thinkingStream, "", p, e.seq, e.ts)
		default:
			c.frame = s.frames.textEvent(assistantStream, e.itemID, p, e.seq, e.ts)
		}
	}
	return c.frame, to
}

// afford takes n bytes from the connection's credit, if it has them.
func (r *recipient) afford(e *entry, n int) bool {
	if e.kind != thinkDelta {
		r.credit += max(e.to-r.counted, 0)
		r.counted = e.to
	}
	if r.at != 0 && e.ts > r.at {
		r.credit += int(min(e.ts-r.at, 60_000)) * creditRate / 1000
	}
	r.at = e.ts
	r.credit = min(r.credit, 2*creditStart)
	if n > r.credit {
		return false
	}
	r.credit -= n
	return true
}
