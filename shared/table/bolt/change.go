package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"laneway/shared/table"
)

// change is an item before and after; nil is absent, and before == after is no change.
type change struct {
	key           table.Key
	before, after *table.Item
}

func load(tx *bbolt.Tx, k table.Key) (*table.Item, error) {
	b := tx.Bucket(itemBucket(k.Table)).Get(itemKey(k))
	if b == nil {
		return nil, nil
	}
	attrs, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%w (table %s)", err, k.Table)
	}
	return &table.Item{Key: k, Attrs: attrs}, nil
}

// put writes the item, its index entries and its expiry.
func put(tx *bbolt.Tx, c change) error {
	items := tx.Bucket(itemBucket(c.key.Table))
	key := itemKey(c.key)
	if c.after == nil {
		if err := items.Delete(key); err != nil {
			return err
		}
	} else if err := items.Put(key, encode(c.after.Attrs)); err != nil {
		return err
	}
	for _, x := range indexes[c.key.Table] {
		if err := putEntry(tx, x, c); err != nil {
			return err
		}
	}
	return putExpiry(tx, c)
}

// indexes is the definitions by table; it is never changed.
var indexes = func() map[string][]table.IndexDef {
	m := make(map[string][]table.IndexDef)
	for _, d := range table.Definitions() {
		m[d.Name] = d.Indexes
	}
	return m
}()

func putEntry(tx *bbolt.Tx, x table.IndexDef, c change) error {
	oldPK, oldSK, had := x.Entry(c.before)
	newPK, newSK, has := x.Entry(c.after)
	if had == has && oldPK == newPK && oldSK == newSK {
		return nil
	}
	b := tx.Bucket(indexBucket(c.key.Table, x.Name))
	if had {
		if err := b.Delete(indexKey(oldPK, oldSK, c.key)); err != nil {
			return err
		}
	}
	if has {
		return b.Put(indexKey(newPK, newSK, c.key), nil)
	}
	return nil
}

func putExpiry(tx *bbolt.Tx, c change) error {
	had, has := expiry(c.before), expiry(c.after)
	if had == has {
		return nil
	}
	b := tx.Bucket(expiryBucket)
	if had > 0 {
		if err := b.Delete(expiryKey(had, c.key)); err != nil {
			return err
		}
	}
	if has > 0 {
		return b.Put(expiryKey(has, c.key), nil)
	}
	return nil
}

// expiry is 0 for an item that does not expire.
func expiry(it *table.Item) int64 {
	if it == nil {
		return 0
	}
	return max(0, it.Attrs.Int(table.TTLAttr))
}

// sweep removes up to sweepBatch items that expired at to or before.
func sweep(tx *bbolt.Tx, to int64) outcome {
	var due []change
	c := tx.Bucket(expiryBucket).Cursor()
	for k, _ := c.First(); k != nil && len(due) < sweepBatch; k, _ = c.Next() {
		at, key, ok := splitExpiryKey(k)
		if !ok {
			return outcome{err: errCorrupt}
		}
		if at > to {
			break
		}
		it, err := load(tx, key)
		if err != nil {
			return outcome{err: err}
		}
		due = append(due, change{key: key, before: it})
	}
	for _, d := range due {
		if err := put(tx, d); err != nil {
			return spoilt(err)
		}
	}
	return outcome{swept: len(due), wrote: len(due) > 0}
}
