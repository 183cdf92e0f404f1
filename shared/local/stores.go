package local

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"laneway/shared/blob"
	"laneway/shared/blob/dir"
	"laneway/shared/queue"
	queuebolt "laneway/shared/queue/bolt"
	"laneway/shared/table"
	tablebolt "laneway/shared/table/bolt"
)

// Stores are what a server works over: its tables, wake-ups and large values. Fields
// without a note are required.
type Stores struct {
	Table  table.Store
	Queue  queue.Sender
	Timers queue.Timers
	Blobs  blob.Store
	Dead   queue.DeadLetterStore // nil: dead letters are not reached from here
	// Receive hands wake-ups and timers to their handlers until ctx ends and every
	// handler has returned.
	Receive func(ctx context.Context, wake, timer queue.Handler) error
	// Clean removes what has expired; nil: the stores do that by themselves.
	Clean func(ctx context.Context) error
	// Close gives them free, after Receive has returned; nil: there is nothing to do.
	Close func() error
	// Shared says that other processes work over them at the same time. Then the
	// claims of others are left alone at the start, processes take turns in looking
	// for work that nobody does, and posts to a connection of another process go
	// there (Config.Advertise).
	Shared bool
}

func (s *Stores) check() error {
	if s.Table == nil || s.Queue == nil || s.Timers == nil || s.Blobs == nil || s.Receive == nil {
		return errors.New("local: stores without tables, queue, timers, blobs or Receive")
	}
	return nil
}

// files are the stores of one machine: a directory that one process at a time has.
func files(c Config) (_ *Stores, err error) {
	var closers []func() error
	closeAll := func() error {
		var err error
		for _, c := range slices.Backward(closers) {
			err = errors.Join(err, c())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	tables, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(c.Data, "tables.db"), NoSync: c.NoSync})
	if err != nil {
		return nil, err
	}
	closers = append(closers, tables.Close)
	blobs, err := dir.Open(dir.Config{Path: filepath.Join(c.Data, "blobs")})
	if err != nil {
		return nil, err
	}
	closers = append(closers, blobs.Close)
	lanes, err := queuebolt.Open(queuebolt.Config{Path: filepath.Join(c.Data, "queue.db"), Clock: c.Clock, Log: c.Log, Lanes: c.Lanes})
	if err != nil {
		return nil, err
	}
	closers = append(closers, lanes.Close)
	return &Stores{
		Table: tables, Queue: lanes, Timers: lanes, Blobs: blobs, Dead: lanes, Receive: lanes.Run,
		Clean: func(ctx context.Context) error {
			_, err := tables.Sweep(ctx, c.Clock.Now())
			return err
		},
		Close: closeAll,
	}, nil
}
