package notify

import (
	"context"
	"errors"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/push"
)

// challengeTries bounds how long a connection is greeted that is not reachable yet:
// API Gateway answers "gone" until the function behind $connect has returned.
const challengeTries = 100

// Greet arms the challenge of a new connection. It is never posted from inside
// $connect: until that returns there is nobody to post to.
func (s *Service) Greet(ctx context.Context, to push.Target, nonce string) error {
	return s.after(ctx, 0, timer{Kind: timerChallenge, Conn: to.ConnectionID, Callback: to.Callback, Nonce: nonce})
}

// challenge posts connect.challenge, again while the connection is not reachable.
func (s *Service) challenge(ctx context.Context, t timer) error {
	frame, err := protocol.AppendEvent(nil, protocol.EventChallenge, protocol.Challenge{Nonce: t.Nonce, TS: s.Clock.Now().UnixMilli()})
	if err != nil {
		return err
	}
	for range challengeTries {
		err = s.Poster.Post(ctx, push.Target{ConnectionID: t.Conn, Callback: t.Callback}, frame)
		if !errors.Is(err, push.ErrGone) && !errors.Is(err, push.ErrThrottled) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.Clock.After(80 * time.Millisecond):
		}
	}
	return nil // it went before it was greeted
}
