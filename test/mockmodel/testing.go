package mockmodel

import "testing"

// New starts a server that ends with the test.
func New(t *testing.T) *Server {
	t.Helper()
	s, err := Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("mock model: %v", err)
		}
	})
	return s
}

// AwaitRequests waits until at least n requests have come, and returns them.
func (s *Server) AwaitRequests(t *testing.T, n int) []Request {
	t.Helper()
	for {
		changes := s.Changes()
		if all := s.Requests(); len(all) >= n {
			return all
		}
		select {
		case <-changes:
		case <-t.Context().Done():
			t.Fatalf("%d requests came, not %d", len(s.Requests()), n)
		}
	}
}

// AwaitWaiting waits until a reply waits at a gate.
func (s *Server) AwaitWaiting(t *testing.T, gate string) {
	t.Helper()
	for {
		changes := s.Changes()
		if s.Waiting(gate) > 0 {
			return
		}
		select {
		case <-changes:
		case <-t.Context().Done():
			t.Fatalf("nobody came to the gate %q", gate)
		}
	}
}
