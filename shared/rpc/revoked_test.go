package rpc_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/token"
	"laneway/shared/wiring"
	"laneway/test/backends"
)

// ahead is the machine's clock, put forward.
type ahead struct {
	clock.System
	by atomic.Int64
}

func (a *ahead) Now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

// ends says with which codes a connection was closed.
func (c *client) ends() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.closed)
}

// TestRuntime55_AuthRevoked_AnOpenConnection: within a minute it is refused as a wrong
// token is, and ends.
func TestRuntime55_AuthRevoked_AnOpenConnection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		expires time.Duration
	}{{"removed", 0}, {"expired", 30 * time.Second}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			backends.Each(t, func(t *testing.T, store table.Store) {
				c := &ahead{}
				w := setup(t, over(store), settings(func(s *wiring.Settings) { s.Clock = c }))
				g := token.Grant{}
				if row.expires > 0 {
					g.Expires = c.Now().Add(row.expires)
				}
				secret, err := w.tokens.Add(context.Background(), g)
				must(t, err)
				g, err = w.tokens.Check(context.Background(), secret)
				must(t, err)
				of, other := w.login(secret, nil), w.user()
				for _, c := range []*client{of, other} {
					c.ok("sessions.messages.subscribe", obj{"key": "s"}, nil)
				}
				of.says("s", "r1", "hi")
				if st, err := run.Load(context.Background(), store, run.RefOf("default", "r1")); err != nil || st.Token != g.ID {
					t.Errorf("the run names the token %q, %v", st.Token, err)
				}
				if row.expires == 0 {
					must(t, w.tokens.Remove(context.Background(), g.ID))
				}
				c.by.Store(int64(connection.CacheFor))
				for range 2 {
					e := of.fails("health", obj{}, protocol.CodeInvalidRequest, "token mismatch")
					if e.Details["code"] != protocol.DetailTokenMismatch {
						t.Errorf("details %v", e.Details)
					}
				}
				if got := of.ends(); len(got) == 0 || got[0] != protocol.CloseAuthChanged {
					t.Errorf("closed with %v", got)
				}
				before := len(of.dump())
				other.says("s", "r2", "and now?")
				w.idle("agent:main:s")
				if text := of.dump(); len(text) != before {
					t.Errorf("it was told: %s", text[before:])
				}
				other.ok("health", obj{}, nil)
				if got := other.ends(); len(got) != 0 {
					t.Errorf("the other one was closed with %v", got)
				}
			})
		})
	}
}

// A gateway's own token is not stored: neither connections nor runs depend on it.
func TestRuntime55_AuthRevoked_TheGatewaysOwnToken(t *testing.T) {
	t.Parallel()
	c := &ahead{}
	w := setup(t, settings(func(s *wiring.Settings) { s.Clock = c }))
	w.tokens.Fixed = []string{"open sesame"}
	own := w.login("open sesame", nil)
	own.says("s", "r1", "hi")
	c.by.Store(int64(2 * connection.CacheFor))
	own.ok("health", obj{}, nil)
	own.says("s", "r2", "hi again")
	for _, id := range []string{"r1", "r2"} {
		if st, err := run.Load(context.Background(), w.store, run.RefOf("default", id)); err != nil || st.Token != "" || st.Outcome.Kind != run.OK {
			t.Errorf("%s: token %q, %+v, %v", id, st.Token, st.Outcome, err)
		}
	}
}
