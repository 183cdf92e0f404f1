package faulty

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"laneway/shared/table"
)

// lag keeps the indexes depth writes behind. It remembers how the items of the last
// writes were before them, and takes those writes back out of what an index says.
type lag struct {
	depth int

	mu     sync.Mutex // held during a Write and an Index, so that both see one order
	recent []before   // oldest first
}

// before is a Write's items as they were; a nil item was absent.
type before map[table.Key]*table.Item

// CatchUp brings the indexes up to what is written now.
func (s *Store) CatchUp() {
	s.lag.mu.Lock()
	defer s.lag.mu.Unlock()
	s.lag.recent = nil
}

func (l *lag) write(ctx context.Context, inner table.Store, ops []table.Op) (table.Result, error) {
	if l.depth <= 0 {
		return inner.Write(ctx, ops...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := before{}
	for _, op := range ops {
		it, err := inner.Get(ctx, op.Key)
		switch {
		case err == nil:
			b[op.Key] = &it
		case errors.Is(err, table.ErrNotFound):
			b[op.Key] = nil
		case errors.Is(err, table.ErrInvalid): // Write will say so
		default:
			return table.Result{}, err
		}
	}
	r, err := inner.Write(ctx, ops...)
	if err == nil {
		l.recent = append(l.recent, b)
		l.recent = l.recent[max(0, len(l.recent)-l.depth):]
	}
	return r, err
}

func (l *lag) index(ctx context.Context, inner table.Store, q table.IndexQuery) (table.KeyPage, error) {
	if l.depth <= 0 {
		return inner.Index(ctx, q)
	}
	def, after, err := table.ValidateIndexQuery(q)
	if err != nil {
		return table.KeyPage{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, err := all(ctx, inner, q)
	if err != nil {
		return table.KeyPage{}, err
	}
	old := before{}
	for _, b := range slices.Backward(l.recent) {
		maps.Copy(old, b)
	}
	entries = slices.DeleteFunc(entries, func(e table.IndexKey) bool { _, changed := old[e.Key]; return changed })
	for k, it := range old {
		if pk, sk, in := def.Entry(it); in && k.Table == q.Table && pk == q.PK && sk >= q.From && (q.To == "" || sk < q.To) {
			entries = append(entries, table.IndexKey{Key: k, SK: sk})
		}
	}
	order := func(a, b table.IndexKey) int {
		c := cmp.Or(strings.Compare(a.SK, b.SK), strings.Compare(a.Key.PK, b.Key.PK), strings.Compare(a.Key.SK, b.Key.SK))
		if q.Desc {
			return -c
		}
		return c
	}
	slices.SortFunc(entries, order)
	if q.After != "" {
		entries = slices.DeleteFunc(entries, func(e table.IndexKey) bool { return order(e, after) <= 0 })
	}
	p := table.KeyPage{Keys: entries}
	if q.Limit > 0 && len(entries) > q.Limit {
		p = table.KeyPage{Keys: entries[:q.Limit], Next: table.IndexCursorAt(entries[q.Limit-1])}
	}
	return p, nil
}

// all follows the cursors of a query without its limit and start.
func all(ctx context.Context, inner table.Store, q table.IndexQuery) ([]table.IndexKey, error) {
	q.Limit, q.After = 0, ""
	var entries []table.IndexKey
	for {
		p, err := inner.Index(ctx, q)
		if err != nil {
			return nil, err
		}
		entries = append(entries, p.Keys...)
		if q.After = p.Next; p.Next == "" {
			return entries, nil
		}
	}
}
