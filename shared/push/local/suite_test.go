package local

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/push"
	"laneway/shared/push/pushtest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	pushtest.Run(t, func(_ *testing.T, timeout time.Duration) pushtest.Fixture {
		r := New(Config{Limit: push.MaxFrame, Timeout: timeout})
		return pushtest.Fixture{
			Poster: r,
			Connect: func(id string) (push.Target, pushtest.Client) {
				c := &socket{changed: make(chan struct{})}
				c.leave = r.Register(id, c)
				return to(id), c
			},
			Absent: to("absent="),
		}
	})
}

// socket is a sink with a client at its other end.
type socket struct {
	leave func()

	mu       sync.Mutex
	received []string
	hung     bool
	changed  chan struct{} // closed and made anew when hung changes
}

func (s *socket) Write(ctx context.Context, b []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		if !s.hung {
			s.received = append(s.received, string(b))
			s.mu.Unlock()
			return nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (s *socket) Close(int, string) error { return nil }

func (s *socket) Received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

func (s *socket) Hang(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung = on
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *socket) Leave() { s.leave() }
