package tabletest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"laneway/shared/table"
)

// Model is the reference: a map, table.Eval and table.Apply. It is a table.Store and
// may be used by many goroutines.
type Model struct {
	mu    sync.Mutex
	items map[table.Key]*table.Item
}

// NewModel is an empty Model.
func NewModel() *Model { return &Model{items: make(map[table.Key]*table.Item)} }

// Get implements table.Store.
func (m *Model) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if err := ctx.Err(); err != nil {
		return table.Item{}, err
	}
	if err := table.ValidateKey(k); err != nil {
		return table.Item{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	it := m.items[k]
	if it == nil {
		return table.Item{}, table.ErrNotFound
	}
	return *copyItem(it), nil
}

// Query implements table.Store.
func (m *Model) Query(_ context.Context, q table.Query) (table.Page, error) {
	after, err := table.ValidateQuery(q)
	if err != nil {
		return table.Page{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []table.Item
	for k, it := range m.items {
		if k.Table == q.Table && k.PK == q.PK && within(k.SK, q.From, q.To) && beyond(k.SK, after, q.Desc) {
			found = append(found, *copyItem(it))
		}
	}
	slices.SortFunc(found, func(a, b table.Item) int { return direction(q.Desc) * strings.Compare(a.Key.SK, b.Key.SK) })
	page, size := table.Page{}, 0
	for i := range found {
		size += found[i].Size()
		if i > 0 && (size > table.MaxPage || i == q.Limit) {
			page.Next = table.CursorAt(found[i-1].Key.SK)
			break
		}
		page.Items = append(page.Items, found[i])
	}
	return page, nil
}

// Index implements table.Store.
func (m *Model) Index(_ context.Context, q table.IndexQuery) (table.KeyPage, error) {
	def, after, err := table.ValidateIndexQuery(q)
	if err != nil {
		return table.KeyPage{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []table.IndexKey
	for k, it := range m.items {
		pk, sk, ok := def.Entry(it)
		if ok && k.Table == q.Table && pk == q.PK && within(sk, q.From, q.To) {
			found = append(found, table.IndexKey{Key: k, SK: sk})
		}
	}
	slices.SortFunc(found, func(a, b table.IndexKey) int { return direction(q.Desc) * compareEntries(a, b) })
	page := table.KeyPage{}
	for _, k := range found {
		if q.After != "" && direction(q.Desc)*compareEntries(k, after) <= 0 {
			continue
		}
		if q.Limit > 0 && len(page.Keys) == q.Limit {
			page.Next = table.IndexCursorAt(page.Keys[q.Limit-1])
			break
		}
		page.Keys = append(page.Keys, k)
	}
	return page, nil
}

// Write implements table.Store.
func (m *Model) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	if err := ctx.Err(); err != nil {
		return table.Result{}, err
	}
	if err := table.Validate(ops); err != nil {
		return table.Result{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, op := range ops {
		if it := m.items[op.Key]; !table.Eval(op.If, it) {
			return table.Result{}, &table.ConditionError{Op: i, Found: copyItem(it)}
		}
	}
	after := make([]*table.Item, len(ops))
	for i := range ops {
		var err error
		if after[i], err = table.Apply(&ops[i], m.items[ops[i].Key]); err != nil {
			return table.Result{}, err
		}
	}
	for i, op := range ops {
		if after[i] == nil {
			delete(m.items, op.Key)
		} else {
			m.items[op.Key] = after[i]
		}
	}
	if ops[0].ReturnNew {
		return table.Result{New: copyItem(after[0])}, nil
	}
	return table.Result{}, nil
}

func copyItem(it *table.Item) *table.Item {
	if it == nil {
		return nil
	}
	c := &table.Item{Key: it.Key, Attrs: make(table.Attrs, len(it.Attrs))}
	for n, v := range it.Attrs {
		c.Attrs[n] = table.Clone(v)
	}
	return c
}

func within(sk, from, to string) bool { return sk >= from && (to == "" || sk < to) }

func beyond(sk, after string, desc bool) bool {
	return after == "" || direction(desc)*strings.Compare(sk, after) > 0
}

func direction(desc bool) int {
	if desc {
		return -1
	}
	return 1
}

func compareEntries(a, b table.IndexKey) int {
	return cmp.Or(strings.Compare(a.SK, b.SK), strings.Compare(a.Key.PK, b.Key.PK), strings.Compare(a.Key.SK, b.Key.SK))
}
