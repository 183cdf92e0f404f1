// Package faulty wraps a table.Store and makes happen what DynamoDB does to its callers
// and a file does not: conflicts, throttles, lost requests and answers, repetitions, a
// stale index, short pages, and the death of the process.
//
// Whether call n meets a fault depends on the seed and n alone, so that a run of one
// goroutine can be repeated exactly, and a fault can be put on one call by Config.At.
// A fault never breaks a promise of package table: a Write is still all or nothing, and
// after ErrConflict and ErrThrottled nothing is written.
package faulty

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	"laneway/shared/table"
)

// Fault is what happens to a call.
type Fault int

// The faults. Reads know None, Throttle, both lost ones (which are the same for them)
// and both deaths.
const (
	// None: the call goes through.
	None Fault = iota
	// Conflict: nothing is written, ErrConflict.
	Conflict
	// Throttle: nothing is done, ErrThrottled.
	Throttle
	// LostRequest: nothing is written, ErrUnknown.
	LostRequest
	// LostAnswer: the Write is done, or fails; either way ErrUnknown.
	LostAnswer
	// Repeated: the answer was lost and the adapter has sent the Write again. A single
	// op without Add is done twice, and a failed condition is Ambiguous; any other Write
	// goes through as it would with its client token.
	Repeated
	// DieBefore: the process is gone before the call: this and every later call of this
	// Store is ErrClosed. A new one over the same tables is the restarted process.
	DieBefore
	// DieAfter: likewise, but this call was done before.
	DieAfter
)

// Call is a call of the Store, as Config.At sees it.
type Call struct {
	N   int        // counts all calls from 0
	Ops []table.Op // of a Write; nil for a read
}

// Config says what goes wrong and how often. The zero value lets everything through.
type Config struct {
	// Seed decides together with a call's number.
	Seed uint64
	// Chances from 0 to 1 that a Write meets a fault; together at most 1.
	Conflict, Throttle, LostRequest, LostAnswer, Repeated float64
	// ReadThrottle is the chance that a read is ErrThrottled.
	ReadThrottle float64
	// At may place a fault on a call; None leaves it to chance. It is called before the
	// call, from the caller's goroutine, and may block: the caller is frozen meanwhile.
	At func(Call) Fault
	// IndexLag makes Index answer as it was so many writes of this Store ago; Writes then
	// go one after another. CatchUp ends the lag of what is written.
	IndexLag int
	// PageBytes and PageItems end pages of Query and Index early (Index: PageItems only);
	// 0: not. A page always has an item if there is one.
	PageBytes, PageItems int
}

// ErrInjected is in the chain of every error that this package makes.
var ErrInjected = errors.New("faulty: injected")

// Store is the wrapper. It implements table.Store.
type Store struct {
	inner table.Store
	c     Config

	mu       sync.Mutex // guards what follows; not held during calls
	calls    int
	injected map[Fault]int
	dead     bool

	lag lag
}

// New wraps a store. Probabilities that are none panic: they are a mistake of the test.
func New(inner table.Store, c Config) *Store {
	sum := 0.0
	for _, p := range c.chances() {
		if p.of < 0 {
			panic("faulty: negative chance")
		}
		sum += p.of
	}
	if sum > 1 || c.ReadThrottle < 0 || c.ReadThrottle > 1 {
		panic("faulty: chances add up to more than 1")
	}
	return &Store{inner: inner, c: c, injected: make(map[Fault]int), lag: lag{depth: c.IndexLag}}
}

type chance struct {
	fault Fault
	of    float64
}

func (c *Config) chances() []chance {
	return []chance{
		{Conflict, c.Conflict},
		{Throttle, c.Throttle},
		{LostRequest, c.LostRequest},
		{LostAnswer, c.LostAnswer},
		{Repeated, c.Repeated},
	}
}

// Calls is the number of calls so far.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Injected says how often each fault happened, so that a test can make sure that it
// tested something.
func (s *Store) Injected() map[Fault]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.injected)
}

// begin numbers a call and decides about it.
func (s *Store) begin(ops []table.Op) Fault {
	s.mu.Lock()
	n := s.calls
	s.calls++
	s.mu.Unlock()
	f := None
	if s.c.At != nil {
		f = s.c.At(Call{N: n, Ops: ops})
	}
	if f == None {
		f = s.dice(n, ops != nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return DieBefore
	}
	if f != None {
		s.injected[f]++
	}
	if f == DieBefore {
		s.dead = true
	}
	return f
}

func (s *Store) dice(n int, write bool) Fault {
	//nolint:gosec // it must be predictable
	x := rand.New(rand.NewPCG(s.c.Seed, uint64(n))).Float64()
	if !write {
		if x < s.c.ReadThrottle {
			return Throttle
		}
		return None
	}
	for _, p := range s.c.chances() {
		if x < p.of {
			return p.fault
		}
		x -= p.of
	}
	return None
}

// end turns a call's own error into the process's death, if it died meanwhile.
func (s *Store) end(f Fault, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == DieAfter {
		s.dead = true
	}
	if s.dead {
		return killed()
	}
	return err
}

func killed() error { return fmt.Errorf("%w: the process is gone: %w", table.ErrClosed, ErrInjected) }

// Write implements table.Store.
func (s *Store) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	if ops == nil {
		ops = []table.Op{}
	}
	f := s.begin(ops)
	switch f {
	case Conflict:
		return table.Result{}, fmt.Errorf("%w: %w", table.ErrConflict, ErrInjected)
	case Throttle:
		return table.Result{}, fmt.Errorf("%w: %w", table.ErrThrottled, ErrInjected)
	case LostRequest:
		return table.Result{}, fmt.Errorf("%w: %w", table.ErrUnknown, ErrInjected)
	case DieBefore:
		return table.Result{}, killed()
	case None, LostAnswer, Repeated, DieAfter: // the call is made
	}
	r, err := s.lag.write(ctx, s.inner, ops)
	if f == Repeated && len(ops) == 1 && len(ops[0].Add) == 0 && ops[0].Kind != table.Check {
		r, err = s.lag.write(ctx, s.inner, ops)
		if c, ok := table.Failed(err); ok {
			err = &table.ConditionError{Op: c.Op, Found: c.Found, Ambiguous: true}
		}
	}
	if err := s.end(f, err); err != nil {
		return table.Result{}, err
	}
	if f == LostAnswer {
		return table.Result{}, fmt.Errorf("%w: %w", table.ErrUnknown, ErrInjected)
	}
	return r, nil
}

// Get implements table.Store.
func (s *Store) Get(ctx context.Context, k table.Key) (table.Item, error) {
	return read(s, func() (table.Item, error) { return s.inner.Get(ctx, k) })
}

// Query implements table.Store.
func (s *Store) Query(ctx context.Context, q table.Query) (table.Page, error) {
	return read(s, func() (table.Page, error) {
		p, err := s.inner.Query(ctx, q)
		if n := s.fit(p.Items); n < len(p.Items) {
			p = table.Page{Items: p.Items[:n], Next: table.CursorAt(p.Items[n-1].Key.SK)}
		}
		return p, err
	})
}

// Index implements table.Store.
func (s *Store) Index(ctx context.Context, q table.IndexQuery) (table.KeyPage, error) {
	return read(s, func() (table.KeyPage, error) {
		if s.c.PageItems > 0 && (q.Limit == 0 || q.Limit > s.c.PageItems) {
			q.Limit = s.c.PageItems
		}
		return s.lag.index(ctx, s.inner, q)
	})
}

// fit is how many items a page may have.
func (s *Store) fit(items []table.Item) int {
	size := 0
	for i := range items {
		size += items[i].Size()
		if i > 0 && (s.c.PageBytes > 0 && size > s.c.PageBytes || s.c.PageItems > 0 && i == s.c.PageItems) {
			return i
		}
	}
	return len(items)
}

func read[T any](s *Store, do func() (T, error)) (T, error) {
	var none T
	f := s.begin(nil)
	switch f {
	case Throttle:
		return none, fmt.Errorf("%w: %w", table.ErrThrottled, ErrInjected)
	case LostRequest, LostAnswer:
		return none, fmt.Errorf("%w: %w", table.ErrUnknown, ErrInjected)
	case DieBefore:
		return none, killed()
	case None, Conflict, Repeated, DieAfter: // the call is made
	}
	v, err := do()
	if err := s.end(f, err); err != nil {
		return none, err
	}
	return v, nil
}
