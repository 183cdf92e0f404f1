package blobtest

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"laneway/shared/blob"
)

func (t check) randomOperations() {
	s, prefix := t.store, t.prefix
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ctx := t.Context()
	model := make(map[string]string)
	parts := []string{"a", "b", "A", "a.", "é"}
	anyKey := func() string {
		key := []string{parts[rng.IntN(len(parts))]}
		for rng.IntN(2) == 0 {
			key = append(key, parts[rng.IntN(len(parts))])
		}
		return prefix + strings.Join(key, "/")
	}
	for i := range 300 {
		k, v := anyKey(), strconv.Itoa(i)
		old, taken := model[k]
		switch rng.IntN(6) {
		case 0, 1:
			if err := s.Put(ctx, k, []byte(v)); err != nil {
				t.Fatalf("step %d: Put(%q): %v", i, k, err)
			}
			model[k] = v
		case 2:
			err := s.PutNew(ctx, k, []byte(v))
			if taken != errors.Is(err, blob.ErrExists) || !taken && err != nil {
				t.Fatalf("step %d: PutNew(%q): %v, taken %v", i, k, err, taken)
			}
			if !taken {
				model[k] = v
			}
		case 3:
			if err := s.Delete(ctx, k); err != nil {
				t.Fatalf("step %d: Delete(%q): %v", i, k, err)
			}
			delete(model, k)
		case 4:
			got, err := s.Get(ctx, k)
			if taken != (err == nil) || !taken && !errors.Is(err, blob.ErrNotFound) || string(got) != old {
				t.Fatalf("step %d: Get(%q): %q, %v, want %q", i, k, got, err, old)
			}
		case 5:
			p, after, limit := anyKey(), anyKey(), 1+rng.IntN(10)
			var want []string
			for _, k := range slices.Sorted(maps.Keys(model)) {
				if strings.HasPrefix(k, p) && k > after && len(want) < limit {
					want = append(want, k)
				}
			}
			got, err := s.List(ctx, p, after, limit)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("step %d: List(%q, %q, %d): %q, %v, want %q", i, p, after, limit, got, err, want)
			}
		}
	}
}

// Writers of one key: readers see one of the values, whole; of many PutNew one
// wins. Deletes beside puts must lose neither.
func (t check) contention() {
	s, prefix := t.store, t.prefix
	ctx := t.Context()
	const writers = 8
	key := prefix + "folder/shared"
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	quiet := t.differs(HangingGet, "nothing is got or deleted before all is put")
	for w := range writers {
		value := bytes.Repeat([]byte{byte('a' + w)}, 10_000+w)
		wg.Go(func() {
			for range 5 {
				if err := s.Put(ctx, key, value); err != nil {
					t.Errorf("Put: %v", err)
				}
				if quiet {
					continue
				}
				got, err := s.Get(ctx, key)
				if err != nil && !errors.Is(err, blob.ErrNotFound) {
					t.Errorf("Get: %v", err)
				}
				if err == nil && torn(got) {
					t.Errorf("Get: a torn value of %d bytes", len(got))
				}
				if err := s.Delete(ctx, key); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
			switch err := s.PutNew(ctx, prefix+"once", value); {
			case err == nil:
				mu.Lock()
				won++
				mu.Unlock()
			case !errors.Is(err, blob.ErrExists):
				t.Errorf("PutNew: %v", err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d of %d PutNew won", won, writers)
	}
	if err := s.Put(ctx, key, bytes.Repeat([]byte("a"), 10_000)); err != nil {
		t.Errorf("Put: %v", err)
	}
	for _, k := range []string{key, prefix + "once"} {
		if got, err := s.Get(ctx, k); err != nil || torn(got) {
			t.Errorf("Get at the end: %d bytes, %v", len(got), err)
		}
	}
}

// torn says whether a value is not one that a writer of contention put.
func torn(v []byte) bool {
	return len(v) == 0 || len(v) != 10_000+int(v[0]-'a') || bytes.Count(v, v[:1]) != len(v)
}
