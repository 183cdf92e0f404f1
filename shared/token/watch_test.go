package token_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/table"
	"laneway/shared/token"
)

// counted counts the looks.
type counted struct {
	table.Store
	looks int
}

func (c *counted) Query(ctx context.Context, q table.Query) (table.Page, error) {
	c.looks++
	return c.Store.Query(ctx, q)
}

// TestRuntime55_AuthRevoked_AWatch: an answer is as old as its caller allows, but an
// expiry counts at once, and what is gone stays gone.
func TestRuntime55_AuthRevoked_AWatch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *token.Store, c *clocktest.Manual) {
		id := func(g token.Grant) string {
			g, err := s.Check(t.Context(), add(t, s, g))
			if err != nil {
				t.Fatal(err)
			}
			return g.ID
		}
		removed, expires := id(token.Grant{}), id(token.Grant{Expires: c.Now().Add(30 * time.Second)})
		store := &counted{Store: s.Table}
		w := &token.Watch{Table: store, Clock: c}
		is := func(what, id string, age time.Duration, want error, looks int) {
			t.Helper()
			before := store.looks
			err := w.Live(t.Context(), id, age)
			if !errors.Is(err, want) || store.looks-before != looks || w.Gone(id) != (want != nil) {
				t.Errorf("%s: %v after %d looks, gone %v; want %v after %d", what, err, store.looks-before, w.Gone(id), want, looks)
			}
		}
		is("none", "", 0, nil, 0)
		is("unread", removed, time.Minute, nil, 1)
		is("unread, another", expires, time.Minute, nil, 1)
		if err := s.Remove(t.Context(), removed); err != nil {
			t.Fatal(err)
		}
		c.Advance(10 * time.Second)
		is("young enough", removed, time.Minute, nil, 0)
		is("too old for this caller", removed, 10*time.Second, token.ErrUnknown, 1)
		is("gone for good", removed, 0, token.ErrUnknown, 0)
		c.Advance(20 * time.Second)
		is("expired", expires, time.Minute, token.ErrUnknown, 0)
		is("never there", "0123456789ab", time.Minute, token.ErrUnknown, 1)
	})
}
