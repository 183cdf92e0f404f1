package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"laneway/shared/clock"
	"laneway/shared/run"
)

// Stream is the event side of one attempt of a run. Its methods are called by the
// attempt's goroutines and may overlap; none but Refresh, Drain, Close and Stop
// waits for anything. After Close or Stop they do nothing.
type Stream struct {
	c      *Config
	info   Info
	frames *frames
	idBase string

	ctx     context.Context //nolint:containedctx // of posts: the stream is what they belong to
	cancel  context.CancelFunc
	done    chan struct{} // closed when the workers must end
	workers sync.WaitGroup
	ready   chan struct{} // closed when the recipients are known

	mu         sync.Mutex // protects all below; nothing is called under it that waits
	recipients []*recipient
	resolved   bool
	backlog    []*entry // what was said before the recipients were known

	seq      int64 // next number
	reserved int64 // numbers of what is not logged stay below
	text     *text
	think    *text
	begun    bool
	// thinkFirst: of the texts that gather, thinking began first.
	thinkFirst     bool
	lastText       time.Time // when a delta was last numbered
	lastThink      time.Time
	pacing         bool // a timer for the next delta runs
	closing, ended bool
	idleWaiters    []chan struct{}
}

// Open begins the events of an attempt; first is the next free number. Who listens
// is found out beside the attempt, which does not wait for it: what is said
// meanwhile is kept for them. Whatever ends ctx does not end the stream; its
// values (a meter) count for the posts.
func (s *Service) Open(ctx context.Context, info Info, first int64) (*Stream, error) {
	if info.Ref.Tenant == "" || info.Ref.Run == "" || info.RunID == "" || info.SessionKey == "" || first < 1 {
		return nil, errors.New("stream: Open needs a run, its session and a number from 1")
	}
	st := s.open(ctx, info, first)
	st.workers.Go(st.resolve)
	return st, nil
}

func (s *Service) open(ctx context.Context, info Info, first int64) *Stream {
	st := &Stream{
		c: &s.c, info: info,
		frames: newFrames(&info, s.c.MaxFrame),
		idBase: info.Ref.Run + ":",
		done:   make(chan struct{}), ready: make(chan struct{}),
		seq: first, reserved: first + Block,
		text: &text{item: info.Messages}, think: &text{},
	}
	st.text.buf = appendEscaped(nil, info.Text)
	st.text.begin(st.idBase)
	st.ctx, st.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return st
}

// BeginMessage begins a new assistant message: its text starts over, under a new
// item id. The first message needs no call.
func (s *Stream) BeginMessage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun && s.text.empty() && s.think.empty() {
		s.begun = true
		return
	}
	s.flushNow(true)
	s.begun = true
	s.lastText, s.lastThink = time.Time{}, time.Time{}
	s.think = &text{}
	if len(s.text.buf) > maxRunText && s.caughtUp() {
		s.text.reset()
		for _, r := range s.recipients {
			r.text = lane{of: s.text, replace: true}
		}
	}
	s.text.begin(s.idBase)
}

// caughtUp says whether no queue refers to the text any more.
func (s *Stream) caughtUp() bool {
	if !s.resolved {
		return false
	}
	for _, r := range s.recipients {
		if !r.idle() {
			return false
		}
	}
	return true
}

// Text adds to the message. Empty text is nothing.
func (s *Stream) Text(delta string) {
	if delta == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.begun = true
	s.text.append(delta)
	s.flush()
}

// Replace says that the message's text is this, not what was sent. An empty one
// takes the whole message back, what was thought in it included.
func (s *Stream) Replace(whole string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.begun = true
	base := s.text.base
	s.text.replace(whole)
	if whole == "" {
		s.think = &text{}
	}
	for _, r := range s.recipients {
		if r.text.off > base || r.busy || r.text.replace {
			r.text.off, r.text.replace = min(r.text.off, base), true
		}
	}
	s.lastText = time.Time{} // what is wrong on a screen is put right at once
	s.flush()
}

// Thinking adds to what the model thinks in this message.
func (s *Stream) Thinking(delta string) {
	if delta == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.begun = true
	if !s.think.pending() {
		s.thinkFirst = !s.text.pending()
	}
	s.think.append(delta)
	s.flush()
}

// Emit sends an informational event (the model of a lifecycle, usage, run_status,
// output of a tool that runs): numbered at once, pushed in order, not logged, and
// dropped where hundreds of them wait for a connection. data is as in Event.
func (s *Stream) Emit(stream string, data any) {
	object, err := encode(data)
	if err != nil {
		s.c.Logger.Error("event without a JSON form", "stream", stream, "run", s.info.Ref.Run)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	if !quietStreams[stream] {
		s.flushNow(true)
	}
	e := &entry{kind: info, stream: stream, data: object}
	if s.wanted(e) {
		s.number(e)
	}
}

// Reply sends a res frame to a connection, behind the events that it has to get
// before. Close tells whether it was taken.
func (s *Stream) Reply(to run.Waiter, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	e := &entry{kind: reply, frame: frame, only: to.ConnectionID, waiter: &to}
	if s.resolved {
		s.addressee(&to)
	}
	s.enqueue(e)
}

// Tell sends a frame that is no event of the run to everybody who gets the run's
// events, and to the connection of to, if that is given, whether it does or not.
func (s *Stream) Tell(to *run.Waiter, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	e := &entry{kind: notice, frame: frame}
	if to != nil {
		e.not = to.ConnectionID
		if s.resolved {
			s.addressee(to)
		}
		s.enqueue(&entry{kind: reply, frame: frame, only: to.ConnectionID, waiter: to})
	}
	s.enqueue(e)
}

// NextSeq is the next free number.
func (s *Stream) NextSeq() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// number gives an entry its number and puts it into the queues. What is not logged
// takes no number beyond those reserved.
func (s *Stream) number(e *entry) {
	if s.seq >= s.reserved {
		return
	}
	e.seq, e.ts = s.seq, clock.Millis(s.c.Clock.Now())
	s.seq++
	s.enqueue(e)
}

// wanted says whether anybody would get the entry, as far as is known.
func (s *Stream) wanted(e *entry) bool {
	if !s.resolved {
		return true
	}
	for _, r := range s.recipients {
		if r.wants(e) {
			return true
		}
	}
	return false
}

func (s *Stream) enqueue(e *entry) {
	if !s.resolved {
		if e.kind != info || len(s.backlog) < maxInfo {
			s.backlog = append(s.backlog, e)
		}
		return
	}
	for _, r := range s.recipients {
		r.push(e, s.frames.room)
	}
}
