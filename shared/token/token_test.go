package token_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/token"
	"laneway/test/backends"
)

func each(t *testing.T, f func(t *testing.T, s *token.Store, c *clocktest.Manual)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, store table.Store) {
		c := clocktest.New()
		f(t, &token.Store{Table: store, Clock: c}, c)
	})
}

func add(t *testing.T, s *token.Store, g token.Grant) string {
	t.Helper()
	secret, err := s.Add(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestAToken_GrantsWhatItWasMadeFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *token.Store, c *clocktest.Manual) {
		want := token.Grant{Tenant: "acme", Name: "phone", Scopes: []string{"operator.write", "operator.read", "operator.read"}, Expires: c.Now().Add(time.Hour)}
		secret := add(t, s, want)
		got, err := s.Check(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		if got.Tenant != "acme" || got.Name != "phone" || !slices.Equal(got.Scopes, []string{"operator.read", "operator.write"}) ||
			!got.Expires.Equal(want.Expires) || !got.Created.Equal(c.Now()) {
			t.Errorf("granted %+v", got)
		}
		all := add(t, s, token.Grant{})
		if got, err = s.Check(t.Context(), all); err != nil || got.Tenant != session.DefaultTenant || len(got.Scopes) != 0 || !got.Expires.IsZero() {
			t.Errorf("granted %+v, %v", got, err)
		}
	})
}

func TestASecretThatIsNone_GrantsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *token.Store, _ *clocktest.Manual) {
		secret := add(t, s, token.Grant{})
		for _, other := range []string{"", "x", secret[1:], secret + "x", strings.ToUpper(secret), token.New()} {
			if got, err := s.Check(t.Context(), other); !errors.Is(err, token.ErrUnknown) || got.Tenant != "" {
				t.Errorf("%q: %+v, %v", other, got, err)
			}
		}
	})
}

// The table cleans up late, or never: an expiry is compared.
func TestAnExpiredToken_IsRefusedThoughItIsThere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *token.Store, c *clocktest.Manual) {
		secret := add(t, s, token.Grant{Expires: c.Now().Add(time.Hour)})
		c.Advance(time.Hour - time.Millisecond)
		if _, err := s.Check(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Millisecond)
		if _, err := s.Check(t.Context(), secret); !errors.Is(err, token.ErrUnknown) {
			t.Errorf("got %v, want ErrUnknown", err)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("listed %+v, %v", list, err)
		}
	})
}

func TestTokens_AreListedNewestFirstAndRemovedByID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *token.Store, c *clocktest.Manual) {
		secrets := make(map[string]string)
		for _, name := range []string{"a", "b", "c"} {
			secrets[name] = add(t, s, token.Grant{Name: name})
			c.Advance(time.Second)
		}
		list, err := s.List(t.Context())
		if err != nil || len(list) != 3 || list[0].Name != "c" || list[2].Name != "a" {
			t.Fatalf("listed %+v, %v", list, err)
		}
		if g, err := s.Check(t.Context(), secrets["b"]); err != nil || g.ID != list[1].ID {
			t.Fatalf("checked %+v, listed %+v, %v", g, list[1], err)
		}
		if err := s.Remove(t.Context(), list[1].ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Check(t.Context(), secrets["b"]); !errors.Is(err, token.ErrUnknown) {
			t.Errorf("a removed token: %v", err)
		}
		if err := s.Remove(t.Context(), list[1].ID); !errors.Is(err, token.ErrUnknown) {
			t.Errorf("removed twice: %v", err)
		}
		for _, name := range []string{"a", "c"} {
			if _, err := s.Check(t.Context(), secrets[name]); err != nil {
				t.Errorf("%s went with it: %v", name, err)
			}
		}
		if list, err = s.List(t.Context()); err != nil || len(list) != 2 {
			t.Errorf("listed %+v, %v", list, err)
		}
		for _, id := range []string{"", "a", "abc"} { // would meet tokens by chance
			if err := s.Remove(t.Context(), id); !errors.Is(err, token.ErrInvalid) {
				t.Errorf("Remove(%q): %v", id, err)
			}
		}
	})
}

func TestFixedTokens(t *testing.T) {
	t.Parallel()
	s := &token.Store{Fixed: []string{"", "open sesame"}}
	g, err := s.Check(t.Context(), "open sesame")
	if err != nil || g.Tenant != session.DefaultTenant || len(g.Scopes) != 0 || g.ID == "" {
		t.Fatalf("granted %+v, %v", g, err)
	}
	for _, other := range []string{"", "open sesam", "open sesame "} {
		if _, err := s.Check(t.Context(), other); !errors.Is(err, token.ErrUnknown) {
			t.Errorf("%q: %v", other, err)
		}
	}
}

func TestAGrantThatCannotBe_IsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *token.Store, _ *clocktest.Manual) {
		for name, g := range map[string]token.Grant{
			"tenant with a separator": {Tenant: "a#b"}, "tenant with capitals": {Tenant: "A"}, "long name": {Name: strings.Repeat("x", 129)},
		} {
			if secret, err := s.Add(t.Context(), g); !errors.Is(err, token.ErrInvalid) || secret != "" {
				t.Errorf("%s: %q, %v", name, secret, err)
			}
		}
	})
}

// What is stored does not contain the secret, in no form that one could use.
func TestSecrets_AreNotStored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *token.Store, _ *clocktest.Manual) {
		secret := add(t, s, token.Grant{Name: "n"})
		list, err := s.Table.Query(t.Context(), table.Query{Table: table.Config, PK: "TOKENS"})
		if err != nil || len(list.Items) != 1 {
			t.Fatal(list, err)
		}
		it, err := s.Table.Get(t.Context(), table.Key{Table: table.Config, PK: "TOKEN#" + list.Items[0].Key.SK, SK: "META"})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range []table.Item{it, list.Items[0]} {
			b, err := json.Marshal(item)
			if err != nil || bytes.Contains(b, []byte(secret)) {
				t.Errorf("stored %s, %v", b, err)
			}
		}
		if len(secret) < 43 || secret == token.New() {
			t.Errorf("a secret of %d characters", len(secret))
		}
	})
}
