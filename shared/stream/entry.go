package stream

import (
	"laneway/shared/run"
)

// kind is what an entry of a queue is.
type kind int

const (
	textDelta  kind = iota // text up to a position; a later one covers it
	thinkDelta             // thinking likewise
	endText                // the end of a message: must arrive
	event                  // anything else that must arrive
	info                   // may be dropped when too many wait
	reply                  // a res frame of one connection
	notice                 // an event that is no event of the run: not numbered, not logged
)

// entry is a numbered event on its way. It is shared by the queues of all
// connections; what a connection has got is counted there. Fields but held and
// cache do not change once it is in a queue.
type entry struct {
	kind    kind
	seq, ts int64
	batch   *Batch // whose commit it waits for; nil: none
	stream  string

	// Of text and thinking: the positions that it covers the text of.
	of       *text
	gen      int
	from, to int
	itemID   string

	data  []byte // event, info: data or members. endText: its form in the log
	frame []byte // the encoded frame, once made; reply: as it came

	only   string // reply: its connection
	not    string // notice: a connection that gets it otherwise
	waiter *run.Waiter

	// Frames of the two forms as last encoded: connections that are equally far get
	// the same bytes.
	cache [2]cachedFrame
}

type cachedFrame struct {
	from, to      int
	full, replace bool
	frame         []byte
}

// lossy says whether a later entry makes this one needless.
func (e *entry) lossy() bool { return e.kind == textDelta || e.kind == thinkDelta }

// held says whether the entry waits for its commit.
func (e *entry) held() bool { return e.batch != nil && !e.batch.published }

// tools says whether it is for connections with CapTools only.
func (e *entry) tools() bool { return toolStreams[e.stream] }

// covers says whether e tells everything that old would, so that old need not go.
func (e *entry) covers(old *entry) bool {
	return e.lossy() && old.kind == e.kind && old.of == e.of && old.gen == e.gen && old.from == e.from
}

// fixed is the frame of an entry that is the same for everybody.
func (e *entry) fixed(f *frames) []byte {
	if e.frame == nil {
		if e.stream == ChatStream {
			e.frame = f.chatEvent(e.data, e.seq)
		} else {
			e.frame = f.event(e.stream, e.data, e.seq, e.ts)
		}
	}
	return e.frame
}
