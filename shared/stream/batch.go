package stream

import (
	"encoding/json"
	"time"

	"laneway/shared/clock"
	"laneway/shared/table"
)

// Batch is must-deliver events between their numbering and the commit that makes
// them true. Exactly one of Publish and Drop follows; a stream that is closed
// before drops it.
type Batch struct {
	s           *Stream
	first, next int64
	op          table.Op
	entries     []*entry
	published   bool
	settled     bool
	// textFrom and textTo: the end of a message took this much unsent text with it.
	textFrom, textTo int
}

// Prepare numbers events that must be delivered, in this order. Text that has
// gathered goes before them, or, where the message ends among them, with its end.
// Everything that is numbered later waits for Publish or Drop.
func (s *Stream) Prepare(events ...Event) *Batch {
	objects := make([]json.RawMessage, len(events))
	for i, ev := range events {
		if ev.end {
			continue
		}
		var err error
		if objects[i], err = encode(ev.Data); err != nil {
			s.c.Logger.Error("event without a JSON form", "stream", ev.Stream, "run", s.info.Ref.Run)
			objects[i] = json.RawMessage("{}")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Batch{s: s}
	said := !s.text.empty()
	ends := false
	for _, ev := range events {
		ends = ends || ev.end && said
	}
	s.flushNow(!ends)
	b.first = s.seq
	ts := clock.Millis(s.c.Clock.Now())
	for i, ev := range events {
		if ev.end && !said {
			continue
		}
		e := &entry{kind: event, batch: b, stream: ev.Stream, data: objects[i], seq: s.seq, ts: ts}
		if ev.end {
			s.endMessage(b, e)
		}
		s.seq++
		b.entries = append(b.entries, e)
	}
	b.next = s.seq
	if len(b.entries) > 0 {
		b.op = table.Op{Kind: table.Put, Key: s.info.Ref.EventKey(b.first), Item: s.row(b.entries, b.next-1)}
	}
	for _, e := range b.entries {
		if !s.closing {
			s.enqueue(e)
		}
	}
	return b
}

// endMessage makes e the end of the current message.
func (s *Stream) endMessage(b *Batch, e *entry) {
	seq, ts := e.seq, e.ts
	*e = *s.covering(endText, s.text)
	e.batch, e.seq, e.ts = b, seq, ts
	e.data = s.wholeText()
	b.textFrom, b.textTo = s.text.numbered, e.to
	s.text.numbered, s.text.replaced = e.to, false
}

// wholeText is the data of an assistant event that says the message as a whole: for
// the log, and as it follows chat deltas. A text over the limit of a frame
// is there up to it, with "truncated":true; the transcript has it all.
func (s *Stream) wholeText() []byte {
	p := piece{whole: s.text.buf[s.text.from:], withWhole: true, replace: true}
	cut := safeCut(p.whole, s.frames.room-len(`,"truncated":true`))
	long := cut < len(p.whole)
	p.whole = p.whole[:cut]
	data := textData(nil, s.text.id, p)
	if long {
		data = append(data[:len(data)-1], `,"truncated":true}`...)
	}
	return data
}

// Empty says that there is nothing to commit or to push.
func (b *Batch) Empty() bool { return len(b.entries) == 0 }

// First is the number of the first event.
func (b *Batch) First() int64 { return b.first }

// Next is the number after the last event: what the commit writes as the run's
// next event.
func (b *Batch) Next() int64 { return b.next }

// Op is the put of the log's row. It has no condition: the commit's own keep a
// superseded writer out. Not for an empty batch.
func (b *Batch) Op() table.Op { return b.op }

// Expire lets the row be cleaned up at that time: for the batch of a terminal.
func (b *Batch) Expire(at time.Time) {
	if !b.Empty() {
		b.op.Item[table.TTLAttr] = at.Unix()
	}
}

// Publish pushes the events: their commit succeeded.
func (b *Batch) Publish() {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.settled {
		return
	}
	b.settled, b.published = true, true
	s.reserved = max(s.reserved, b.next+Block)
	for _, r := range s.recipients {
		r.signal()
	}
}

// Drop forgets the events: their commit failed. Their numbers stay unused, and
// text that was to go with them goes with what comes next.
func (b *Batch) Drop() {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(b)
	s.flush()
	s.tellIdle()
}

func (s *Stream) drop(b *Batch) {
	if b.settled {
		return
	}
	b.settled = true
	s.backlog = without(s.backlog, b)
	for _, r := range s.recipients {
		r.queue = without(r.queue, b)
		r.signal()
	}
	if b.textTo > 0 && s.text.numbered == b.textTo {
		s.text.numbered = max(b.textFrom, s.text.base)
	}
}

// without is the queue without the entries of b. None of them is being posted.
func without(queue []*entry, b *Batch) []*entry {
	kept := queue[:0:0]
	for _, e := range queue {
		if e.batch != b {
			kept = append(kept, e)
		}
	}
	return kept
}

func (s *Stream) row(entries []*entry, last int64) table.Attrs {
	a, err := encodeRow(entries, last)
	if err != nil {
		s.c.Logger.Error("events without a row", "error", err, "run", s.info.Ref.Run)
	}
	return a
}
