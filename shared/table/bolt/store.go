// Package bolt keeps tables in one file on one machine, with go.etcd.io/bbolt.
//
// It promises what package table promises, and:
//
//   - A Write that returned without error survives kill -9 and loss of power (not
//     with Config.NoSync), and every later Get, Query and Index sees it. Readers see
//     committed writes only, never wait for a writer, and never make one wait.
//   - Writes at the same time are committed as a group, with one sync of the file. A
//     member of a group sees the members before it; all its conditions are evaluated
//     before its own first change; one that fails does not touch the others. A lone
//     Write waits for nobody.
//   - A context that ends before a Write's turn came leaves nothing written. After
//     that its end is ignored: the answer is always a certain one. ErrUnknown comes
//     only when the file itself could not be written, ErrConflict and ErrThrottled
//     never.
//   - Exactly one process has the file open (ErrLocked).
//   - Index is never stale and a page's Next is empty exactly when nothing is left;
//     callers that also run on DynamoDB must not count on either.
//
// Items past their expiry go when Sweep is called, not by themselves.
package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"laneway/shared/table"
)

// ErrLocked means that another process (or another Store of this one) has the file.
var ErrLocked = errors.New("bolt: the data file is in use by another process")

// Config says which file and how. Only Path is needed.
type Config struct {
	// Path of the file; it and its directory are made where they are absent.
	Path string
	// LockTimeout is how long Open waits for another process to let the file go;
	// 0: 1 s.
	LockTimeout time.Duration
	// NoSync leaves out the sync of every commit: faster, and only for tests, because
	// a loss of power may then destroy the file.
	NoSync bool
}

// Store is a table.Store over one file.
type Store struct {
	db      *bbolt.DB
	in      chan *request // unbuffered: what was not received was not taken on
	closing chan struct{}
	closed  chan struct{} // the committer has ended
	close   func() error
}

// File layout: a bucket of items for each table, one for each index, one for expiry
// times, and one that says which layout this is.
const layoutVersion = "1"

var (
	layoutBucket = []byte("layout")
	expiryBucket = []byte("expiry")
)

// itemBuckets are the names of the buckets by table; it is never changed.
var itemBuckets = func() map[string][]byte {
	m := make(map[string][]byte)
	for _, d := range table.Definitions() {
		m[d.Name] = []byte("items/" + d.Name)
	}
	return m
}()

func itemBucket(table string) []byte         { return itemBuckets[table] }
func indexBucket(table, index string) []byte { return []byte("index/" + table + "/" + index) }

// Open opens or makes the file, takes its lock and starts the committer. Close ends
// both.
func Open(c Config) (*Store, error) {
	if c.Path == "" {
		return nil, errors.New("bolt: Config.Path is empty")
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return nil, fmt.Errorf("bolt: directory of the data file: %w", err)
	}
	db, err := bbolt.Open(c.Path, 0o600, &bbolt.Options{
		Timeout:      cmp.Or(c.LockTimeout, time.Second),
		FreelistType: bbolt.FreelistMapType,
		NoSync:       c.NoSync,
		NoStatistics: true,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: %s", ErrLocked, c.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", c.Path, err)
	}
	if err := prepare(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Store{
		db:      db,
		in:      make(chan *request),
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
	}
	s.close = sync.OnceValue(func() error {
		close(s.closing)
		<-s.closed
		return s.db.Close()
	})
	go s.commitLoop()
	return s, nil
}

// prepare makes the buckets that are missing; on a file that has them it writes
// nothing, so that opening costs no sync.
func prepare(db *bbolt.DB) error {
	want := [][]byte{layoutBucket, expiryBucket}
	for _, d := range table.Definitions() {
		want = append(want, itemBucket(d.Name))
		for _, x := range d.Indexes {
			want = append(want, indexBucket(d.Name, x.Name))
		}
	}
	missing, layout := false, ""
	err := db.View(func(tx *bbolt.Tx) error {
		for _, name := range want {
			missing = missing || tx.Bucket(name) == nil
		}
		if b := tx.Bucket(layoutBucket); b != nil {
			layout = string(b.Get(layoutBucket))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if layout != "" && layout != layoutVersion {
		return fmt.Errorf("bolt: the data file has layout %q, this program reads %q", layout, layoutVersion)
	}
	if !missing {
		return nil
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range want {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return tx.Bucket(layoutBucket).Put(layoutBucket, []byte(layoutVersion))
	})
}

// Close answers what was taken on, ends the committer and lets the file go. Calls
// that come later get ErrClosed. Closing twice is allowed.
func (s *Store) Close() error { return s.close() }

// Write implements table.Store.
func (s *Store) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	if err := table.Validate(ops); err != nil {
		return table.Result{}, err
	}
	out, err := s.submit(ctx, &request{ended: ctx.Err, ops: ops})
	if err != nil {
		return table.Result{}, err
	}
	countWrite(ctx, out.units)
	return table.Result{New: out.new}, out.err
}

// Sweep removes the items whose table.TTLAttr is at or before now, in small batches
// that other writes go between, and says how many it removed. An expiry of zero or
// less is none. It returns when nothing is left, or with ctx's error.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	total := 0
	for {
		out, err := s.submit(ctx, &request{ended: ctx.Err, sweepTo: now.Unix()})
		if err := cmp.Or(err, out.err); err != nil {
			return total, err
		}
		total += out.swept
		if out.swept < sweepBatch {
			return total, nil
		}
	}
}

// submit hands a request over and waits for its answer.
func (s *Store) submit(ctx context.Context, r *request) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	r.done = make(chan outcome, 1)
	select {
	case s.in <- r:
		return <-r.done, nil
	case <-ctx.Done():
		return outcome{}, ctx.Err()
	case <-s.closing:
		return outcome{}, table.ErrClosed
	}
}
