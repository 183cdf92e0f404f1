// Package token keeps gateway tokens: who may connect, as whom, with which scopes.
//
// Guarantees: only a digest of a token is stored, so a token is shown once, when it
// is made; an expired or removed token is refused, whatever the store has cleaned
// up; comparing takes the same time whichever byte is wrong.
package token

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"laneway/shared/clock"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Errors that callers branch on.
var (
	ErrUnknown = errors.New("token: unknown or expired")
	ErrInvalid = errors.New("token: invalid")
)

// Grant is what a token allows.
type Grant struct {
	Tenant  string
	Name    string   // for people
	Scopes  []string // empty: all
	Expires time.Time
	Created time.Time
	ID      string // start of the digest: names the token in lists
	Fixed   bool   // the gateway's own, not a stored one: it lasts as long as the process
}

// Store finds tokens. Fixed tokens come from a file or the environment and are of
// the default tenant with all scopes.
type Store struct {
	Table table.Store
	Clock clock.Clock // nil: the machine's
	Fixed []string
}

func (s *Store) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock.Now()
}

func digest(secret string) string {
	sum := sha256.Sum256([]byte("laneway-token\x00" + secret))
	return hex.EncodeToString(sum[:])
}

func key(d string) table.Key { return table.Key{Table: table.Config, PK: "TOKEN#" + d, SK: "META"} }

// The list of tokens is an item a token under one key of its own, so that it can be
// read without a scan.
func listKey(d string) table.Key { return table.Key{Table: table.Config, PK: listPK, SK: d} }

const listPK = "TOKENS"

// Check finds what a secret grants; ErrUnknown where it grants nothing.
func (s *Store) Check(ctx context.Context, secret string) (Grant, error) {
	if secret == "" {
		return Grant{}, ErrUnknown
	}
	d := digest(secret)
	for _, f := range s.Fixed {
		if f != "" && subtle.ConstantTimeCompare([]byte(digest(f)), []byte(d)) == 1 {
			return Grant{Tenant: session.DefaultTenant, Name: "gateway", ID: d[:12], Fixed: true}, nil
		}
	}
	if s.Table == nil {
		return Grant{}, ErrUnknown
	}
	it, err := s.Table.Get(ctx, key(d))
	if errors.Is(err, table.ErrNotFound) {
		return Grant{}, ErrUnknown
	}
	if err != nil {
		return Grant{}, fmt.Errorf("read token: %w", err)
	}
	g := decode(d, it.Attrs)
	if !g.Expires.IsZero() && !s.now().Before(g.Expires) {
		return Grant{}, ErrUnknown
	}
	return g, nil
}

func decode(d string, a table.Attrs) Grant {
	return Grant{
		Tenant: a.Str("tenant"), Name: a.Str("name"), Scopes: a.StrSet("scopes"), ID: d[:12],
		Expires: clock.FromMillis(a.Int("expires")), Created: clock.FromMillis(a.Int("created")),
	}
}

// Add makes a token and gives it: it is not to be had again.
func (s *Store) Add(ctx context.Context, g Grant) (string, error) {
	if g.Tenant == "" {
		g.Tenant = session.DefaultTenant
	}
	if !session.ValidTenant(g.Tenant) {
		return "", fmt.Errorf("%w: tenant must match [a-z0-9-]{1,63}", ErrInvalid)
	}
	if len(g.Name) > 128 {
		return "", fmt.Errorf("%w: name is longer than 128 bytes", ErrInvalid)
	}
	secret := New()
	d := digest(secret)
	a := table.Attrs{"tenant": g.Tenant, "name": g.Name, "created": s.now().UnixMilli()}
	if len(g.Scopes) > 0 {
		scopes := slices.Clone(g.Scopes)
		slices.Sort(scopes)
		a["scopes"] = table.Set(slices.Compact(scopes))
	}
	if !g.Expires.IsZero() {
		a["expires"] = g.Expires.UnixMilli()
		a[table.TTLAttr] = g.Expires.Unix()
	}
	_, err := s.Table.Write(ctx,
		table.Op{Kind: table.Put, Key: key(d), Item: a, If: table.NotExists()},
		table.Op{Kind: table.Put, Key: listKey(d), Item: a})
	if err != nil {
		return "", fmt.Errorf("store token: %w", err)
	}
	return secret, nil
}

// New is a fresh secret of 256 random bits.
func New() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// List gives the stored tokens that have not expired, newest first.
func (s *Store) List(ctx context.Context) ([]Grant, error) {
	var out []Grant
	q := table.Query{Table: table.Config, PK: listPK}
	for {
		page, err := s.Table.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("list tokens: %w", err)
		}
		for _, it := range page.Items {
			if g := decode(it.Key.SK, it.Attrs); g.Expires.IsZero() || s.now().Before(g.Expires) {
				out = append(out, g)
			}
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Created.After(out[j].Created) })
	return out, nil
}

// byID is the query for the tokens whose digests begin with an id, at most so many.
func byID(id string, most int) table.Query {
	return table.Query{Table: table.Config, PK: listPK, From: id, To: id + "g", Limit: most}
}

// Remove takes a token away by the id that List shows, or a longer start of its
// digest. ErrUnknown where there is none.
func (s *Store) Remove(ctx context.Context, id string) error {
	if len(id) < 12 {
		return fmt.Errorf("%w: an id has at least 12 characters", ErrInvalid)
	}
	page, err := s.Table.Query(ctx, byID(id, 2))
	if err != nil {
		return fmt.Errorf("remove token: %w", err)
	}
	if len(page.Items) != 1 {
		return ErrUnknown
	}
	d := page.Items[0].Key.SK
	_, err = s.Table.Write(ctx,
		table.Op{Kind: table.Delete, Key: key(d)},
		table.Op{Kind: table.Delete, Key: listKey(d)})
	if err != nil {
		return fmt.Errorf("remove token: %w", err)
	}
	return nil
}
