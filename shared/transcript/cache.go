package transcript

import (
	"container/list"
	"sync"
)

// Cache keeps the rows of recently used transcripts. Rows never change, so nothing
// in it can be stale; it only saves a warm process from reading a whole past again
// with each turn. Memory is bounded by an estimate of the rows' sizes. The zero
// value caches nothing; a nil Cache is valid.
type Cache struct {
	Max int // bytes, estimated

	mu    sync.Mutex
	size  int
	byPK  map[string]*list.Element
	order list.List // most recent first, of *cached
}

type cached struct {
	pk    string
	first int64
	rows  []Entry // contiguous from first
	size  int
}

// spare is room behind the rows for those of the turn that reads them: without it the
// first one that is added copies the whole past again.
const spare = 8

// get returns the contiguous rows from..to that are there, beginning at from. The
// slice is the caller's; what the rows point to is shared and read-only.
func (c *Cache) get(pk string, from, to int64) []Entry {
	if c == nil || c.Max == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byPK[pk]
	if el == nil {
		return nil
	}
	c.order.MoveToFront(el)
	k := of(el)
	i := from - k.first
	if i < 0 || i >= int64(len(k.rows)) {
		return nil
	}
	end := min(to-k.first+1, int64(len(k.rows)))
	return append(make([]Entry, 0, to-from+1+spare), k.rows[i:end]...)
}

// put keeps rows that were read or written; they must be contiguous.
func (c *Cache) put(pk string, rows []Entry) {
	if c == nil || c.Max == 0 || len(rows) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byPK == nil {
		c.byPK = make(map[string]*list.Element)
	}
	k := &cached{pk: pk, first: rows[0].Seq}
	if el := c.byPK[pk]; el != nil {
		old := of(el)
		next := old.first + int64(len(old.rows))
		switch last := rows[len(rows)-1].Seq; {
		case rows[0].Seq >= old.first && last < next:
			return // nothing new
		case rows[0].Seq >= old.first && rows[0].Seq <= next:
			k = old
			rows = rows[next-rows[0].Seq:]
		}
		c.drop(el)
	}
	for i := range rows {
		k.size += rowSize(&rows[i])
	}
	k.rows = append(k.rows, rows...)
	if k.size > c.Max {
		return
	}
	c.byPK[pk] = c.order.PushFront(k)
	c.size += k.size
	for c.size > c.Max {
		c.drop(c.order.Back())
	}
}

// of is what an element of the order holds.
func of(el *list.Element) *cached {
	k, _ := el.Value.(*cached) // nothing else is ever put in
	return k
}

func (c *Cache) drop(el *list.Element) {
	k := of(el)
	c.order.Remove(el)
	delete(c.byPK, k.pk)
	c.size -= k.size
}

// forget drops a transcript that was removed.
func (c *Cache) forget(pk string) {
	if c == nil || c.Max == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byPK[pk]; el != nil {
		c.drop(el)
	}
}

// Keep puts rows that a commit has just written into the cache.
func (l *Log) Keep(pk string, rows []Entry) { l.Cache.put(pk, rows) }

func rowSize(e *Entry) int {
	n := 400 + len(e.Summary) + len(e.Error)
	for i := range e.Content {
		b := &e.Content[i]
		n += 150 + len(b.Text) + len(b.Thinking) + len(b.Arguments) + len(b.Data) + len(b.Signature)
	}
	return n
}
