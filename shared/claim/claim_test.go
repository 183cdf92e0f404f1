package claim_test

import (
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"laneway/shared/claim"
	"laneway/shared/lane/lanetest"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/test/backends"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs a test of claims over every store.
func each(t *testing.T, f func(t *testing.T, w *lanetest.World)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, store table.Store) {
		f(t, lanetest.New(t, store))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// row is the op that appends a transcript row once.
func row(ref session.Ref, sk string) table.Op {
	return table.Op{
		Kind: table.Put, If: table.NotExists(), Item: table.Attrs{"by": sk},
		Key: table.Key{Table: table.Sessions, PK: ref.TranscriptPK("s"), SK: sk},
	}
}

// there says whether an item is in the tables.
func there(w *lanetest.World, k table.Key) bool {
	w.T.Helper()
	_, err := w.Store.Get(w.Ctx(), k)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		w.T.Fatal(err)
	}
	return err == nil
}

// stable is the hot item as it is, for comparing.
func stable(w *lanetest.World) table.Item {
	w.T.Helper()
	it, err := w.Store.Get(w.Ctx(), w.Ref.MetaKey())
	must(w.T.(*testing.T), err)
	return it
}

// faultOnce puts one fault on the next call that is asked for.
type faultOnce struct {
	mu   sync.Mutex
	next func(faulty.Call) faulty.Fault
}

func (f *faultOnce) at(c faulty.Call) faulty.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.next
	if next == nil {
		return faulty.None
	}
	f.next = nil
	got := next(c)
	if got == faulty.None && f.next == nil {
		f.next = next // it waits for another call
	}
	return got
}

// nextWrite faults the next Write.
func nextWrite(f faulty.Fault) func(faulty.Call) faulty.Fault {
	return func(c faulty.Call) faulty.Fault {
		if c.Ops == nil {
			return faulty.None
		}
		return f
	}
}

func commit(h *claim.Holder, w *lanetest.World, ops ...table.Op) error {
	return h.Commit(w.Ctx(), claim.Tx{Ops: ops})
}
