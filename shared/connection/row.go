// Package connection is the record of a client's connection: who is behind it,
// what it can take, and whose events it gets.
//
// Guarantees:
//
//   - A connection becomes ready once, in one conditional step on a row that is
//     there; a disconnect that came first wins, and then the connection stays gone
//     (K1).
//   - A subscription is put in a transaction that checks that the row is ready. So
//     no subscription outlives its connection, whatever overlaps, but for a crash
//     of the very call that removes it, which the next removal completes.
//   - A subscriber carries all that is needed to post to it: its reader needs no
//     second read.
//   - What a caller names is looked up under the tenant of the caller; a principal
//     is trusted from memory for at most CacheFor (K2).
//   - A connection whose token is gone is refused, and gets no events, at the latest
//     CacheFor after it went.
//   - An expired row is treated as absent, whether the store has cleaned it up or
//     not.
package connection

import (
	"errors"
	"slices"
	"time"

	"laneway/shared/clock"
	"laneway/shared/push"
	"laneway/shared/table"
)

// Life is how long a connection can last: API Gateway cuts it then.
const Life = 2 * time.Hour

// MaxSubscriptions bounds the subscriptions of one connection.
const MaxSubscriptions = 100

// AllSessions is the session key of a subscription to all sessions of a tenant.
const AllSessions = "*"

// Errors that callers branch on.
var (
	// ErrGone: there is no such connection, or not under this tenant.
	ErrGone = errors.New("connection: gone")
	// ErrState: the connection is not in the state that the step needs: it did not
	// connect yet, or did already.
	ErrState = errors.New("connection: wrong state")
	// ErrRevoked: the token that let the connection in was removed or has expired.
	ErrRevoked = errors.New("connection: its token is revoked")
	// ErrTooMany: the connection has MaxSubscriptions subscriptions.
	ErrTooMany = errors.New("connection: too many subscriptions")
)

// State is where a connection is.
type State string

// The states of a row; a connection that ended has none.
const (
	Pending State = "pending" // open, connect was not accepted yet
	Ready   State = "ready"
)

// Principal is who speaks on a connection, as authentication found.
type Principal struct {
	Tenant   string
	Role     string
	Scopes   []string
	DeviceID string // empty: the client proved no device
	Name     string // of the token
	Token    string // id of the stored token; empty: it depends on none
}

// Client is what a client said of itself in connect.
type Client struct {
	ID, Mode string
	Caps     []string
	Protocol int64
}

// Row is a connection.
type Row struct {
	Principal // set when ready
	Client    // set when ready
	ID        string
	Callback  string // management endpoint; empty on one machine
	State     State
	// Subscriptions are session keys, AllSessions among them.
	Subscriptions []string
	Nonce         string // of the connect challenge
	CreatedAt     time.Time
	ExpiresAt     time.Time

	rev     int64  // grows with every write
	writeID string // of the step to ready
}

// Target is where the connection's frames go.
func (r *Row) Target() push.Target { return push.Target{ConnectionID: r.ID, Callback: r.Callback} }

// Has says whether the client announced a capability.
func (c *Client) Has(capability string) bool { return slices.Contains(c.Caps, capability) }

// Attributes of META.
const (
	attrState    = "st"
	attrTenant   = "ten"
	attrRole     = "role"
	attrScopes   = "scopes"
	attrDevice   = "dev"
	attrName     = "name"
	attrToken    = "tok"
	attrClient   = "cid"
	attrMode     = "mode"
	attrCaps     = "caps"
	attrProtocol = "proto"
	attrSubs     = "subs"
	attrCallback = "cb"
	attrNonce    = "nonce"
	attrCreated  = "crt"
	attrExpires  = "exp" // ms; what counts, beside the store's own TTL in seconds
	attrRev      = "rev"
	attrWrite    = "wid"
)

func rowKey(id string) table.Key {
	return table.Key{Table: table.Connections, PK: id, SK: "META"}
}

func subscriptionPK(tenant, sessionKey string) string { return tenant + "#SUB#" + sessionKey }

func subscriptionKey(tenant, sessionKey, id string) table.Key {
	return table.Key{Table: table.Connections, PK: subscriptionPK(tenant, sessionKey), SK: id}
}

func decode(it *table.Item) Row {
	a := it.Attrs
	list := func(n string) []string { v, _ := a[n].([]string); return v }
	return Row{
		ID: it.Key.PK, Callback: a.Str(attrCallback), State: State(a.Str(attrState)),
		Principal: Principal{
			Tenant: a.Str(attrTenant), Role: a.Str(attrRole), Scopes: list(attrScopes),
			DeviceID: a.Str(attrDevice), Name: a.Str(attrName), Token: a.Str(attrToken),
		},
		Client:        Client{ID: a.Str(attrClient), Mode: a.Str(attrMode), Caps: list(attrCaps), Protocol: a.Int(attrProtocol)},
		Subscriptions: a.StrSet(attrSubs),
		Nonce:         a.Str(attrNonce),
		CreatedAt:     clock.FromMillis(a.Int(attrCreated)),
		ExpiresAt:     clock.FromMillis(a.Int(attrExpires)),
		rev:           a.Int(attrRev),
		writeID:       a.Str(attrWrite),
	}
}
