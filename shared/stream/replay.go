package stream

import (
	"context"
	"fmt"

	"laneway/shared/connection"
)

// PushLogged pushes the events of a run from a number on once more, from the log,
// to everybody who listens: what a settler does for a terminal whose holder died.
// It returns when they are out or Config.TailWindow is over, in the latter case
// with an *UnsentError.
func (s *Service) PushLogged(ctx context.Context, info Info, from int64) error {
	list, err := Log(ctx, s.c.Store, info.Ref, from-1)
	if err != nil || len(list) == 0 {
		return err
	}
	st, err := s.Open(ctx, info, list[len(list)-1].Seq+1)
	if err != nil {
		return err
	}
	st.mu.Lock()
	for i := range list {
		st.enqueue(list[i].entry())
	}
	st.mu.Unlock()
	if left := st.Close(ctx); len(left) > 0 {
		return &UnsentError{left}
	}
	return nil
}

// Replay pushes the logged events of a run with numbers above after to one
// connection, and returns the number of the last: what a new subscriber of an
// active run, or one that comes back, gets first. ErrUnsent: it did not take them
// in time; connection.ErrGone: it is gone, and was removed.
func (s *Service) Replay(ctx context.Context, info Info, to connection.Subscriber, after int64) (last int64, err error) {
	list, err := Log(ctx, s.c.Store, info.Ref, after)
	if err != nil {
		return after, err
	}
	f := newFrames(&info, s.c.MaxFrame)
	last = after
	for i := range list {
		e := list[i].entry()
		if !e.tools() || to.Has(CapTools) {
			if err := s.post(ctx, to, e.fixed(f)); err != nil {
				return last, err
			}
		}
		last = e.seq
	}
	return last, nil
}

// entry is a logged event on its way once more.
func (l *Logged) entry() *entry {
	return &entry{kind: event, stream: l.Stream, seq: l.Seq, ts: l.TS, data: l.Data}
}

// post posts a frame with a few tries.
func (s *Service) post(ctx context.Context, to connection.Subscriber, frame []byte) error {
	for try := 1; ; try++ {
		pctx, cancel := context.WithTimeout(ctx, s.c.PostTimeout)
		err := s.c.Poster.Post(pctx, to.Target(), frame)
		cancel()
		switch classify(err) {
		case posted:
			return nil
		case toGone:
			if cerr := s.c.Connections.Close(ctx, to.ID); cerr != nil {
				return fmt.Errorf("remove connection that is gone: %w", cerr)
			}
			return connection.ErrGone
		case refused:
			return fmt.Errorf("%w: %w", ErrUnsent, err)
		case again:
		}
		if try == maxLookups || sleep(ctx, s.c.Clock, try) != nil {
			return fmt.Errorf("%w: %w", ErrUnsent, err)
		}
	}
}
