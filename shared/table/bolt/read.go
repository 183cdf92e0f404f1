package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"laneway/shared/meter"
	"laneway/shared/table"
)

// Get implements table.Store.
func (s *Store) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if err := table.ValidateKey(k); err != nil {
		return table.Item{}, err
	}
	var it *table.Item
	err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
		it, err = load(tx, k)
		return err
	})
	if err != nil {
		return table.Item{}, err
	}
	countRead(ctx, table.ReadUnits(it.Size()))
	if it == nil {
		return table.Item{}, fmt.Errorf("%w in %s", table.ErrNotFound, k.Table)
	}
	return *it, nil
}

// Query implements table.Store.
func (s *Store) Query(ctx context.Context, q table.Query) (table.Page, error) {
	after, err := table.ValidateQuery(q)
	if err != nil {
		return table.Page{}, err
	}
	p := prefix(q.PK)
	r := bounds(p, append(bytes.Clone(p), q.From...), append(bytes.Clone(p), q.To...), q.To != "", q.Desc)
	if after != "" {
		r.startAfter(append(bytes.Clone(p), after...))
	}
	var page table.Page
	size := 0
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		return r.scan(tx.Bucket(itemBucket(q.Table)).Cursor(), func(k, v []byte) (bool, error) {
			if q.Limit > 0 && len(page.Items) == q.Limit {
				page.Next = table.CursorAt(page.Items[q.Limit-1].Key.SK)
				return false, nil
			}
			attrs, err := decode(v)
			if err != nil {
				return false, fmt.Errorf("%w (table %s)", err, q.Table)
			}
			it := table.Item{Key: table.Key{Table: q.Table, PK: q.PK, SK: string(k[len(p):])}, Attrs: attrs}
			n := it.Size()
			if size+n > table.MaxPage && len(page.Items) > 0 {
				page.Next = table.CursorAt(page.Items[len(page.Items)-1].Key.SK)
				return false, nil
			}
			size += n
			page.Items = append(page.Items, it)
			return true, nil
		})
	})
	if err != nil {
		return table.Page{}, err
	}
	countRead(ctx, table.ReadUnits(size))
	return page, nil
}

// Index implements table.Store.
func (s *Store) Index(ctx context.Context, q table.IndexQuery) (table.KeyPage, error) {
	def, after, err := table.ValidateIndexQuery(q)
	if err != nil {
		return table.KeyPage{}, err
	}
	p := prefix(q.PK)
	r := bounds(p, appendEscaped(bytes.Clone(p), q.From), appendEscaped(bytes.Clone(p), q.To), q.To != "", q.Desc)
	if q.After != "" {
		r.startAfter(indexKey(q.PK, after.SK, after.Key))
	}
	var page table.KeyPage
	size := 0
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		return r.scan(tx.Bucket(indexBucket(q.Table, def.Name)).Cursor(), func(k, _ []byte) (bool, error) {
			if q.Limit > 0 && len(page.Keys) == q.Limit || size+len(k) > table.MaxPage {
				page.Next = table.IndexCursorAt(page.Keys[len(page.Keys)-1])
				return false, nil
			}
			isk, pk, sk, ok := splitIndexEntry(k[len(p):])
			if !ok {
				return false, errCorrupt
			}
			size += len(k)
			page.Keys = append(page.Keys, table.IndexKey{SK: isk, Key: table.Key{Table: q.Table, PK: pk, SK: sk}})
			return true, nil
		})
	})
	if err != nil {
		return table.KeyPage{}, err
	}
	countRead(ctx, table.ReadUnits(size)/2)
	return page, nil
}

// view runs fn on a snapshot of what is committed.
func (s *Store) view(ctx context.Context, fn func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.db.View(fn)
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return table.ErrClosed
	}
	return err
}

// span is the keys from lo (inclusive) to hi (exclusive; nil: to the end).
type span struct {
	lo, hi []byte
	desc   bool
}

func bounds(p, lo, hi []byte, bounded, desc bool) span {
	if !bounded {
		hi = after(p)
	}
	return span{lo: lo, hi: hi, desc: desc}
}

// startAfter leaves out key and what comes before it in the span's direction.
func (r *span) startAfter(key []byte) {
	if r.desc {
		r.hi = key
		return
	}
	r.lo = slices.Concat(key, []byte{0}) // nothing sorts between a key and this
}

// scan calls fn for each key of the span until it returns false or an error.
func (r *span) scan(c *bbolt.Cursor, fn func(k, v []byte) (bool, error)) error {
	k, v := r.first(c)
	for k != nil && bytes.Compare(k, r.lo) >= 0 && (r.hi == nil || bytes.Compare(k, r.hi) < 0) {
		more, err := fn(k, v)
		if err != nil || !more {
			return err
		}
		if r.desc {
			k, v = c.Prev()
		} else {
			k, v = c.Next()
		}
	}
	return nil
}

func (r *span) first(c *bbolt.Cursor) (k, v []byte) {
	if !r.desc {
		return c.Seek(r.lo)
	}
	if r.hi == nil {
		return c.Last()
	}
	if k, _ = c.Seek(r.hi); k == nil {
		return c.Last()
	}
	return c.Prev()
}

func countRead(ctx context.Context, units float64) {
	m := meter.From(ctx)
	m.Add(meter.TableCalls, 1)
	m.Add(meter.TableReadUnits, units)
}

func countWrite(ctx context.Context, units float64) {
	m := meter.From(ctx)
	m.Add(meter.TableCalls, 1)
	m.Add(meter.TableWriteUnits, units)
}
