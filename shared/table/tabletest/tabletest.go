// Package tabletest judges table.Store implementations.
//
// Run holds one store against every promise of package table: fixed cases, one for
// each sentence, and random operations whose every answer is compared with Model, the
// reference in memory. Compare holds two stores against each other. Both keep to
// partitions with random names, so that a store may be shared and may hold other data.
//
// Random operations print their seed; TABLETEST_SEED repeats one.
package tabletest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/id"
	"laneway/shared/table"
)

// Opener gives the store under test; it may give the same one every time.
type Opener func(t *testing.T) table.Store

// Run runs the whole suite as subtests of t.
func Run(t *testing.T, open Opener) {
	t.Helper()
	for _, group := range [][]testCase{
		writeCases(), updateCases(), memberCases(), conditionCases(), valueCases(),
		queryCases(), indexCases(), limitCases(), concurrentCases(),
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(&bench{T: t, s: open(t), ns: id.UUID()})
			})
		}
	}
	t.Run("random operations give what the reference gives", func(t *testing.T) {
		t.Parallel()
		compareRandom(t, NewModel(), open(t))
	})
}

// Compare runs the same random operations on two stores and fails at the first
// answer or item that differs.
func Compare(t *testing.T, a, b table.Store) {
	t.Helper()
	compareRandom(t, a, b)
}

type testCase struct {
	name string
	run  func(*bench)
}

// bench is one case's store and its own part of the key space.
type bench struct {
	*testing.T
	s  table.Store
	ns string
}

func (b *bench) ctx() context.Context { return b.Context() }

// pk is a partition key that no other case uses.
func (b *bench) pk(name string) string { return "test#" + b.ns + "#" + name }

func (b *bench) key(sk string) table.Key {
	return table.Key{Table: table.Sessions, PK: b.pk("p"), SK: sk}
}

func (b *bench) write(ops ...table.Op) table.Result {
	b.Helper()
	r, err := b.s.Write(b.ctx(), ops...)
	if err != nil {
		b.Fatalf("Write: %v", err)
	}
	return r
}

func (b *bench) put(sk string, a table.Attrs) table.Key {
	b.Helper()
	k := b.key(sk)
	b.write(table.Op{Kind: table.Put, Key: k, Item: a})
	return k
}

// refused expects an error of a class and returns it.
func (b *bench) refused(class error, ops ...table.Op) error {
	b.Helper()
	_, err := b.s.Write(b.ctx(), ops...)
	if !errors.Is(err, class) {
		b.Fatalf("Write: got %v, want %v", err, class)
	}
	return err
}

// failed expects the condition of an op to fail over an item (nil: none).
func (b *bench) failed(op int, found table.Attrs, ops ...table.Op) {
	b.Helper()
	err := b.refused(table.ErrCondition, ops...)
	c, ok := table.Failed(err)
	if !ok {
		b.Fatalf("%v is no ConditionError", err)
	}
	if c.Op != op {
		b.Errorf("op %d failed, want %d", c.Op, op)
	}
	if c.Ambiguous {
		b.Error("the failure is ambiguous, though every try was answered")
	}
	var want *table.Item
	if found != nil {
		want = &table.Item{Key: ops[op].Key, Attrs: found}
	}
	if d := cmp.Diff(want, c.Found); d != "" {
		b.Errorf("item found (-want +got):\n%s", d)
	}
}

// is expects an item with exactly these attributes.
func (b *bench) is(k table.Key, want table.Attrs) {
	b.Helper()
	it, err := b.s.Get(b.ctx(), k)
	if err != nil {
		b.Fatalf("Get %s: %v", k.SK, err)
	}
	if d := cmp.Diff(table.Item{Key: k, Attrs: want}, it); d != "" {
		b.Errorf("item %s (-want +got):\n%s", k.SK, d)
	}
}

func (b *bench) absent(k table.Key) {
	b.Helper()
	if it, err := b.s.Get(b.ctx(), k); !errors.Is(err, table.ErrNotFound) {
		b.Errorf("Get %s: got %v, %v, want ErrNotFound", k.SK, it.Attrs, err)
	}
}

// eventually polls for what a stale index will show in the end.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	if !eventually(b.ctx(), ok) {
		b.Fatalf("not seen in time: %s", what)
	}
}

func eventually(ctx context.Context, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// seeded is a generator whose seed is in the log of a test that fails.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("TABLETEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("TABLETEST_SEED: %v", err)
		}
	}
	t.Logf("TABLETEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func members(n int) table.Set {
	s := make(table.Set, n)
	for i := range s {
		s[i] = fmt.Sprintf("%03d", i)
	}
	return s
}
