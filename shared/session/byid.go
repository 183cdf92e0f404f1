package session

import (
	"context"
	"errors"
	"fmt"

	"laneway/shared/table"
)

// A session id is found by an item of its own, written with the session's first
// row: looking up never makes a session.
func idKey(tenant, sessionID string) table.Key {
	return table.Key{Table: table.Sessions, PK: tenant + "#I#" + sessionID, SK: skMeta}
}

// PutID is the op that makes a session's id known.
func PutID(ref Ref, sessionID string) table.Op {
	return table.Op{Kind: table.Put, Key: idKey(ref.Tenant, sessionID), Item: table.Attrs{"key": ref.Key}}
}

// DropID is the op that makes a session's id unknown again.
func DropID(ref Ref, sessionID string) table.Op {
	return table.Op{Kind: table.Delete, Key: idKey(ref.Tenant, sessionID)}
}

// KeyOfID is the key of the session that has an id, empty where there is none.
func KeyOfID(ctx context.Context, t table.Store, tenant, sessionID string) (string, error) {
	it, err := t.Get(ctx, idKey(tenant, sessionID))
	if errors.Is(err, table.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find session by id: %w", err)
	}
	return it.Attrs.Str("key"), nil
}
