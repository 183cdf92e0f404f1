package lineartest

import (
	"context"
	"errors"
	"sync"

	"laneway/shared/table"
)

// wrongStores break the promises of the port, each another one.
func wrongStores() map[string]func(table.Store) table.Store {
	return map[string]func(table.Store) table.Store{
		"reads what was there before":        func(s table.Store) table.Store { return &stale{Store: s, old: map[table.Key]table.Item{}} },
		"writes without asking":              func(s table.Store) table.Store { return blind{s} },
		"a transaction one by one":           func(s table.Store) table.Store { return torn{s} },
		"says done, and forgets":             func(s table.Store) table.Store { return &forgetful{Store: s} },
		"does again what it has no word of":  func(s table.Store) table.Store { return twice{s} },
		"calls a write failed that was done": func(s table.Store) table.Store { return &liar{Store: s} },
	}
}

// stale reads what the read before it read.
type stale struct {
	table.Store
	mu  sync.Mutex
	old map[table.Key]table.Item
}

func (s *stale) Get(ctx context.Context, k table.Key) (table.Item, error) {
	it, err := s.Store.Get(ctx, k)
	if err != nil {
		return it, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.old[k]
	s.old[k] = it
	if ok {
		return old, nil
	}
	return it, nil
}

// blind strips conditions.
type blind struct{ table.Store }

func (s blind) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	for i := range ops {
		ops[i].If = nil
	}
	return s.Store.Write(ctx, ops...)
}

// torn makes a transaction's writes on their own.
type torn struct{ table.Store }

func (s torn) Write(ctx context.Context, ops ...table.Op) (r table.Result, err error) {
	for i, op := range ops {
		r, err = s.Store.Write(ctx, op)
		if c, ok := table.Failed(err); ok {
			return r, &table.ConditionError{Op: i, Found: c.Found}
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// forgetful forgets each fifth write.
type forgetful struct {
	table.Store
	mu sync.Mutex
	n  int
}

func (s *forgetful) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	s.mu.Lock()
	s.n++
	forget := s.n%5 == 0 && !ops[0].ReturnNew
	s.mu.Unlock()
	if forget {
		return table.Result{}, nil
	}
	return s.Store.Write(ctx, ops...)
}

// twice makes a sum again, as if its answer had been lost.
type twice struct{ table.Store }

func (s twice) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	r, err := s.Store.Write(ctx, ops...)
	if len(ops) == 1 && ops[0].ReturnNew && err == nil {
		if _, err := s.Store.Write(ctx, ops...); err != nil && !errors.Is(err, table.ErrConflict) {
			return r, err
		}
	}
	return r, err
}

// liar says of each fourth write that was done that its condition failed.
type liar struct {
	table.Store
	mu sync.Mutex
	n  int
}

func (s *liar) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	r, err := s.Store.Write(ctx, ops...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || ops[0].ReturnNew {
		return r, err
	}
	if s.n++; s.n%4 == 0 {
		it, err := s.Get(ctx, ops[0].Key)
		if err != nil {
			return r, err
		}
		return r, &table.ConditionError{Found: &it}
	}
	return r, nil
}
