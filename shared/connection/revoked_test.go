package connection_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/table"
	"laneway/shared/token"
	"laneway/test/backends"
)

// ended keeps what connections were closed.
type ended struct{ ids []string }

func (*ended) Post(context.Context, push.Target, []byte) error { return nil }

func (e *ended) Close(_ context.Context, to push.Target) error {
	e.ids = append(e.ids, to.ConnectionID)
	return nil
}

// TestRuntime55_AuthRevoked_AConnection: acceptance never extends revoked rights, of a
// connection by more than the minute that its row is trusted for.
func TestRuntime55_AuthRevoked_AConnection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		life time.Duration // of the token; 0: until it is removed
	}{{"removed", 0}, {"expired", 90 * time.Second}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			backends.Each(t, func(t *testing.T, tables table.Store) {
				c := clocktest.New()
				counted, closed := &store{Store: tables}, &ended{}
				s := &connection.Service{Store: tables, Clock: c, Poster: closed, Tokens: &token.Watch{Table: tables, Clock: c}}
				b := &bundle{t: t, store: counted}
				book := &token.Store{Table: tables, Clock: c}
				g := token.Grant{Tenant: "acme"}
				if row.life > 0 {
					g.Expires = c.Now().Add(row.life)
				}
				secret, err := book.Add(t.Context(), g)
				b.no(err)
				g, err = book.Check(t.Context(), secret)
				b.no(err)
				of := alice
				of.Token = g.ID
				b.ready(s, "c1", of)
				b.ready(s, "c2", alice) // depends on none
				for _, id := range []string{"c1", "c2"} {
					b.no(s.Subscribe(t.Context(), id, "k"))
				}
				cache := &connection.Cache{Service: s}
				row1, err := cache.Get(t.Context(), "c1")
				b.no(err)
				if row1.Token != g.ID {
					t.Errorf("its row names the token %q", row1.Token)
				}
				c.Advance(connection.CacheFor)
				_, err = cache.Get(t.Context(), "c1") // it is there
				b.no(err)
				b.subscribers(s, "acme", "k", "c1", "c2")
				if row.life == 0 {
					b.no(book.Remove(t.Context(), g.ID))
				}
				c.Advance(connection.CacheFor - time.Millisecond)
				if _, err = cache.Get(t.Context(), "c1"); err != nil {
					t.Errorf("before the minute is over: %v", err)
				}
				c.Advance(time.Millisecond)
				_, err = cache.Get(t.Context(), "c1")
				b.is(err, connection.ErrRevoked)
				b.subscribers(s, "acme", "k", "c2")
				if !slices.Equal(closed.ids, []string{"c1"}) {
					t.Errorf("closed %v", closed.ids)
				}
				_, err = cache.Get(t.Context(), "c2")
				b.no(err)
			})
		})
	}
}

// A connection that has just come showed its token: nothing more is read for it.
func TestRuntime55_AuthRevoked_HowOftenAConnectionIsLookedAt(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	looks := &tokens{}
	s.Tokens = looks
	of := alice
	of.Token = "tok"
	b.ready(s, "c1", of)
	for minute, want := range []int{0, 1, 2, 3} {
		cache := &connection.Cache{Service: s}
		for range 3 {
			_, err := cache.Get(t.Context(), "c1")
			b.no(err)
		}
		if looks.n != want {
			t.Errorf("minute %d: %d looks in all, want %d", minute, looks.n, want)
		}
		b.clock.pass(connection.CacheFor)
	}
}

// tokens grants everything and counts.
type tokens struct{ n int }

func (k *tokens) Live(context.Context, string, time.Duration) error { k.n++; return nil }
