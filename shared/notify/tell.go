package notify

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/connection"
	"laneway/shared/push"
)

// tellers is to how many connections at once a frame is sent.
const tellers = 8

// Tell sends frames to a tenant's connections of sessions.subscribe, through the
// timers: whoever has something to say needs no right to post. It is a hint: a
// connection that does not take it in time misses it.
func (s *Service) Tell(ctx context.Context, tenant string, frames [][]byte) error {
	for len(frames) > 0 {
		n, size := 0, 0
		for n < len(frames) && (n == 0 || size+len(frames[n]) <= maxLate) {
			size += len(frames[n])
			n++
		}
		if size <= maxLate {
			if err := s.after(ctx, 0, timer{Kind: timerTell, Tenant: tenant, Frames: frames[:n]}); err != nil {
				return err
			}
		}
		frames = frames[n:]
	}
	return nil
}

// tellWithin bounds the posts of one Tell: a timer's handler has other work.
const tellWithin = 10 * time.Second

func (s *Service) tell(ctx context.Context, t timer) error {
	list, err := s.Connections.Subscribers(ctx, t.Tenant, connection.AllSessions)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(tellers)
	for i := range list {
		g.Go(func() error {
			for _, f := range t.Frames {
				err := s.Poster.Post(ctx, list[i].Target(), f)
				if errors.Is(err, push.ErrGone) {
					return s.Connections.Close(ctx, list[i].ID)
				}
				if err != nil {
					s.Log.Debug("operator not told", "connection", list[i].ID, "err", err)
					return nil
				}
			}
			return nil
		})
	}
	return g.Wait()
}
