package notify

import (
	"context"
	"errors"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/push"
)

// greetEvery is the pause between two tries to greet a connection that is not
// reachable yet.
const greetEvery = 80 * time.Millisecond

// Greet arms the challenge of a new connection. It is never posted from inside
// $connect: until that returns there is nobody to post to.
func (s *Service) Greet(ctx context.Context, to push.Target, nonce string) error {
	return s.after(ctx, 0, timer{Kind: timerChallenge, Conn: to.ConnectionID, Callback: to.Callback, Nonce: nonce})
}

// challenge posts connect.challenge, again while the connection may not be reachable
// yet. Where it is reachable from the start "gone" means gone, and is not waited for:
// the timers of a predecessor's connections must not keep those of living ones back.
func (s *Service) challenge(ctx context.Context, t timer) error {
	frame, err := protocol.AppendEvent(nil, protocol.EventChallenge, protocol.Challenge{Nonce: t.Nonce, TS: s.Clock.Now().UnixMilli()})
	if err != nil {
		return err
	}
	for left := s.Unreachable; ; left -= greetEvery {
		err = s.Poster.Post(ctx, push.Target{ConnectionID: t.Conn, Callback: t.Callback}, frame)
		if !errors.Is(err, push.ErrGone) && !errors.Is(err, push.ErrThrottled) {
			return err
		}
		if left <= 0 {
			return nil // it went before it was greeted
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.Clock.After(greetEvery):
		}
	}
}
