package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/model"
	"laneway/shared/table"
)

// Book is the usage of all credentials of a tenant: rows of the config table.
type Book struct {
	Store table.Store
	Clock clock.Clock // nil: the machine's
}

const (
	prefix   = "COOL#"
	attrBody = "body"
	attrRev  = "rev"
	attrAt   = "at"
	// writeTries bounds how often a change is made again that met another one.
	writeTries = 16
)

// What probing a provider is bound by (spec: runtime 7.4).
const (
	probeGap    = 30 * time.Second // between two probes of one provider, by whomever
	ProbeBefore = 2 * time.Minute  // a window's end: from here on it may be probed
)

func (b *Book) now() time.Time {
	if b.Clock == nil {
		return time.Now()
	}
	return b.Clock.Now()
}

func key(tenant, name string) table.Key {
	return table.Key{Table: table.Config, PK: tenant + "#CONFIG", SK: name}
}

// Load reads what is known of a tenant's credentials, by their ids.
func (b *Book) Load(ctx context.Context, tenant string) (map[string]Usage, error) {
	out := map[string]Usage{}
	q := table.Query{Table: table.Config, PK: tenant + "#CONFIG", From: prefix, To: prefix + "\U0010FFFF"}
	for {
		page, err := b.Store.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read cooldowns: %w", err)
		}
		for _, it := range page.Items {
			u, err := decode(&it)
			if err != nil {
				return nil, err
			}
			out[strings.TrimPrefix(it.Key.SK, prefix)] = u
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}

func decode(it *table.Item) (Usage, error) {
	var u Usage
	if it == nil {
		return u, nil
	}
	if err := json.Unmarshal(it.Attrs.Bytes(attrBody), &u); err != nil {
		return u, fmt.Errorf("cooldown: %w", err)
	}
	return u, nil
}

// Failed remembers a failure of a credential, and gives what is known of it now.
func (b *Book) Failed(ctx context.Context, tenant, profile string, e *model.Error, modelID string) (Usage, error) {
	return b.change(ctx, tenant, profile, func(u *Usage, now time.Time) Usage { return u.Failed(e, modelID, now) })
}

// Succeeded forgets a credential's failures, and remembers when it was used.
func (b *Book) Succeeded(ctx context.Context, tenant, profile string) (Usage, error) {
	return b.change(ctx, tenant, profile, func(u *Usage, now time.Time) Usage { return u.Succeeded(now) })
}

// change writes what f makes of a usage; what others wrote meanwhile is not lost: f is
// called again on it.
func (b *Book) change(ctx context.Context, tenant, profile string, f func(*Usage, time.Time) Usage) (Usage, error) {
	k := key(tenant, prefix+profile)
	it, err := b.Store.Get(ctx, k)
	found := &it
	if errors.Is(err, table.ErrNotFound) {
		found = nil
	} else if err != nil {
		return Usage{}, fmt.Errorf("read cooldown: %w", err)
	}
	for range writeTries {
		u, err := decode(found)
		if err != nil {
			return u, err
		}
		u = f(&u, b.now())
		body, err := json.Marshal(u)
		if err != nil {
			return u, fmt.Errorf("cooldown: %w", err)
		}
		op := table.Op{Kind: table.Put, Key: k, Item: table.Attrs{attrBody: body, attrRev: id.UUID()}, If: table.NotExists()}
		if found != nil {
			op.If = table.Equal(table.P(attrRev), found.Attrs.Str(attrRev))
		}
		_, err = b.Store.Write(ctx, op)
		ce, failed := table.Failed(err)
		if !failed {
			if err != nil {
				err = fmt.Errorf("write cooldown: %w", err)
			}
			return u, err
		}
		found = ce.Found
	}
	return Usage{}, fmt.Errorf("write cooldown: %w", table.ErrConflict)
}

// Probe says whether the caller may ask a provider that is left alone whether it works
// again: one caller every 30 seconds.
func (b *Book) Probe(ctx context.Context, tenant, provider string) (bool, error) {
	now := b.now()
	_, err := b.Store.Write(ctx, table.Op{
		Kind: table.Put, Key: key(tenant, "PROBE#"+provider), Item: table.Attrs{attrAt: now.UnixMilli()},
		If: table.Any(table.NotExists(), table.Less(table.P(attrAt), now.Add(-probeGap).UnixMilli()+1)),
	})
	if _, failed := table.Failed(err); failed {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("probe: %w", err)
	}
	return true, nil
}

// Probes says whether a window may be probed: shortly before its end where the reason
// passes by itself, at any time where a bill was to be paid and the model is the one
// that is wanted, never where the credential was refused.
func Probes(w Window, primary bool, now time.Time) bool {
	switch w.Reason { //nolint:exhaustive // others never open a window
	case model.Billing:
		return primary
	case model.Auth, model.AuthPermanent:
		return false
	}
	return w.Until.Sub(now) <= ProbeBefore
}
