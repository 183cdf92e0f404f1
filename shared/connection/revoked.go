package connection

import (
	"context"
	"errors"
	"time"

	"laneway/shared/token"
)

// Tokens says of a token that was granted whether it still is: token.ErrUnknown where it
// is not. age is how old the answer may be.
type Tokens interface {
	Live(ctx context.Context, id string, age time.Duration) error
}

// granted is ErrRevoked where a token is gone, else nil, or what the store said.
func (s *Service) granted(ctx context.Context, id string) error {
	if s.Tokens == nil || id == "" {
		return nil
	}
	err := s.Tokens.Live(ctx, id, CacheFor)
	if errors.Is(err, token.ErrUnknown) {
		return ErrRevoked
	}
	return err
}

// endRevoked ends the connection of a subscriber whose token is gone, and says whether it
// is. Where that cannot be known just now, the next reader asks again.
func (s *Service) endRevoked(ctx context.Context, sub *Subscriber) bool {
	if !errors.Is(s.granted(ctx, sub.token), ErrRevoked) {
		return false
	}
	if s.Poster != nil {
		_ = s.Poster.Close(ctx, sub.Target()) // it gets nothing more, open or not
	}
	return true
}
