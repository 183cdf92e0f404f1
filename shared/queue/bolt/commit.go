package bolt

import (
	"context"
	"sync"

	"go.etcd.io/bbolt"
)

// committer puts writes that come together into one bbolt transaction: a commit
// costs one fsync, whoever comes during it shares the next. It has no goroutine:
// the first of a batch commits it.
type committer struct {
	db   *bbolt.DB
	turn chan struct{} // holds one value while a batch is being committed

	mu   sync.Mutex
	open *batch // those that wait for their turn
}

type batch struct {
	writes []func(*bbolt.Tx) error
	done   chan struct{}
	err    error // of the whole transaction; read after done
}

func newCommitter(db *bbolt.DB) *committer {
	return &committer{db: db, turn: make(chan struct{}, 1)}
}

// do returns when write is on disk. If ctx ends first it may get there anyhow. An
// error of one write is that of its whole batch, so only bbolt's own are returned.
func (c *committer) do(ctx context.Context, write func(*bbolt.Tx) error) error {
	c.mu.Lock()
	first := c.open == nil
	if first {
		c.open = &batch{done: make(chan struct{})}
	}
	b := c.open
	b.writes = append(b.writes, write)
	c.mu.Unlock()

	if first {
		// Others count on this one: it goes through with the batch whatever
		// becomes of its own ctx. It waits for one commit, no more.
		c.turn <- struct{}{}
		c.mu.Lock()
		c.open = nil
		c.mu.Unlock()
		b.err = c.db.Update(b.apply)
		<-c.turn
		close(b.done)
		return b.err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *batch) apply(tx *bbolt.Tx) error {
	for _, write := range b.writes {
		if err := write(tx); err != nil {
			return err
		}
	}
	return nil
}
