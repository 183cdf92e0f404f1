package connection

import (
	"context"
	"sync"
	"time"
)

// CacheFor is how long a row is trusted from memory (K2): so long a revoked token
// may still be used by a connection that is open.
const CacheFor = 60 * time.Second

// maxCached bounds the memory of a process that serves for long.
const maxCached = 10_000

// Cache reads ready connections, each at most once in CacheFor. A row from memory
// may miss the latest subscriptions; principal and capabilities never change. It
// may be used by many goroutines. The zero value needs its Service.
type Cache struct {
	Service *Service

	mu   sync.Mutex
	rows map[string]cached
}

type cached struct {
	row   Row
	until time.Time // trusted before this
	read  time.Time
}

// Get is Load for a connection that must be ready: ErrState where it is not yet,
// ErrRevoked where the token that let it in is gone.
func (c *Cache) Get(ctx context.Context, connectionID string) (Row, error) {
	now := c.Service.Clock.Now()
	if row, ok := c.lookup(connectionID, now); ok {
		return row, nil
	}
	row, err := c.Service.Load(ctx, connectionID)
	if err != nil {
		c.Drop(connectionID)
		return Row{}, err
	}
	if row.State != Ready {
		return Row{}, ErrState
	}
	until := now.Add(CacheFor)
	// One that has just come showed its token since it was made.
	if proved := row.CreatedAt.Add(CacheFor); row.Token != "" && now.Before(proved) {
		until = proved
	} else if err := c.Service.granted(ctx, row.Token); err != nil {
		c.Drop(connectionID)
		return Row{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil {
		c.rows = make(map[string]cached)
	}
	if len(c.rows) >= maxCached {
		c.makeRoom(now)
	}
	// The age counts from before the read: the row may have changed since.
	c.rows[connectionID] = cached{row, until, now}
	return row, nil
}

// Drop forgets a connection, as a disconnect does.
func (c *Cache) Drop(connectionID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rows, connectionID)
}

func (c *Cache) lookup(connectionID string, now time.Time) (Row, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.rows[connectionID]
	if !ok {
		return Row{}, false
	}
	if now.Before(e.read) || !now.Before(e.until) || !e.row.ExpiresAt.After(now) {
		delete(c.rows, connectionID)
		return Row{}, false
	}
	return e.row, true
}

// makeRoom drops what is too old, and if that is nothing, everything: a cache this
// full is better filled anew than searched.
func (c *Cache) makeRoom(now time.Time) {
	for id, e := range c.rows {
		if !now.Before(e.until) {
			delete(c.rows, id)
		}
	}
	if len(c.rows) >= maxCached {
		clear(c.rows)
	}
}
