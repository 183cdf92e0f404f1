package stream

import (
	"context"
	"time"

	"laneway/shared/push"
)

// drainFor is how long a checkpoint waits for posts (R1).
const drainFor = 2 * time.Second

// Drain waits until everything is out, at most 2 s, and then drops deltas: what a
// checkpoint does before its commit. What must arrive stays.
func (s *Stream) Drain(ctx context.Context) {
	s.mu.Lock()
	s.flushNow(true)
	s.mu.Unlock()
	s.awaitIdle(ctx, drainFor)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recipients {
		r.dropLossy()
	}
	s.text.numbered, s.text.replaced = len(s.text.buf), false
	s.think.numbered = len(s.think.buf)
}

// dropLossy drops the deltas that the worker has not begun.
func (r *recipient) dropLossy() {
	first := min(r.unstarted(), len(r.queue))
	kept := append([]*entry(nil), r.queue[:first]...)
	for _, e := range r.queue[first:] {
		if !e.lossy() {
			kept = append(kept, e)
		}
	}
	r.queue = kept
}

// Close ends the stream after the terminal. It waits until everything is out, at
// most Config.TailWindow or until ctx ends, and returns what is not: for whoever
// sends it later. When it returns, nothing of the stream runs any more.
func (s *Stream) Close(ctx context.Context) []Unsent {
	s.mu.Lock()
	s.flushNow(true)
	s.closing = true
	if !s.ended {
		s.dropHeld()
	}
	s.mu.Unlock()
	s.awaitIdle(ctx, s.c.TailWindow)
	s.stop()
	return s.unsent()
}

// Stop ends the stream of an attempt that lost its claim: nothing more is pushed.
// When it returns, nothing of the stream runs any more.
func (s *Stream) Stop() {
	s.mu.Lock()
	s.closing = true
	s.backlog = nil
	for _, r := range s.recipients {
		r.queue = nil
	}
	s.mu.Unlock()
	s.stop()
}

// dropHeld drops what waits for a commit that nobody will report any more.
func (s *Stream) dropHeld() {
	held := map[*Batch]bool{}
	collect := func(queue []*entry) {
		for _, e := range queue {
			if e.held() {
				held[e.batch] = true
			}
		}
	}
	collect(s.backlog)
	for _, r := range s.recipients {
		collect(r.queue)
	}
	for b := range held {
		s.drop(b)
	}
}

func (s *Stream) stop() {
	s.mu.Lock()
	first := !s.ended
	s.closing, s.ended = true, true
	s.mu.Unlock()
	if first {
		s.cancel()
		close(s.done)
	}
	s.workers.Wait()
}

// unsent is what must arrive and did not. All workers have ended.
func (s *Stream) unsent() []Unsent {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Unsent
	for _, r := range s.recipients {
		for _, e := range r.queue {
			if e.kind == event || e.kind == endText || e.kind == reply {
				out = append(out, Unsent{To: r.target, Frame: e.unsentFrame(s.frames), Seq: e.seq, Waiter: e.waiter})
			}
		}
		r.queue = nil
	}
	// Nobody is known to listen but the origin, which is told what needs no
	// capability, and those who wait for a reply.
	for _, e := range s.backlog {
		switch {
		case e.waiter != nil:
			to := push.Target{ConnectionID: e.waiter.ConnectionID, Callback: e.waiter.Callback}
			out = append(out, Unsent{To: to, Frame: e.frame, Waiter: e.waiter})
		case s.info.Origin != nil && !e.tools() && (e.kind == event || e.kind == endText):
			to := push.Target{ConnectionID: s.info.Origin.ConnectionID, Callback: s.info.Origin.Callback}
			out = append(out, Unsent{To: to, Frame: e.unsentFrame(s.frames), Seq: e.seq})
		}
	}
	s.backlog = nil
	return out
}

func (e *entry) unsentFrame(f *frames) []byte {
	if e.kind == reply {
		return e.frame
	}
	return e.fixed(f)
}

// awaitIdle waits until no queue has anything to do, for at most d or until ctx
// ends.
func (s *Stream) awaitIdle(ctx context.Context, d time.Duration) {
	idle := make(chan struct{})
	s.mu.Lock()
	s.idleWaiters = append(s.idleWaiters, idle)
	s.tellIdle()
	s.mu.Unlock()
	select {
	case <-idle:
		return // without a timer where there is nothing to wait for
	default:
	}
	select {
	case <-idle:
	case <-s.c.Clock.After(d):
	case <-ctx.Done():
	case <-s.done:
	}
}

// tellIdle tells who waits for it that no queue has anything to do.
func (s *Stream) tellIdle() {
	if len(s.idleWaiters) == 0 || !s.ended && !s.caughtUp() {
		return
	}
	for _, w := range s.idleWaiters {
		close(w)
	}
	s.idleWaiters = nil
}
