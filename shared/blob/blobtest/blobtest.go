// Package blobtest is the judge of the blob port: one suite for every adapter.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"laneway/shared/blob"
	"laneway/shared/meter"
)

// Run checks an adapter. open gives a store that refuses values of more than
// most bytes; it need not be empty, every case works under a prefix of its own.
// differences are those of the endpoint under test; each that changes a check is
// printed where it does.
func Run(t *testing.T, open func(t *testing.T, most int) blob.Store, differences ...Difference) {
	t.Helper()
	for name, run := range map[string]func(check){
		"a put value is got until it is deleted": check.lifeOfAValue,
		"PutNew never replaces":                  check.putNew,
		"invalid keys are refused":               check.invalidKeys,
		"every valid key is a value of its own":  check.oddKeys,
		"sizes":                                  check.sizes,
		"lists are in order and in pages":        check.lists,
		"an ended context":                       check.endedContext,
		"random operations as a map does them":   check.randomOperations,
		"values are whole under contention":      check.contention,
		"requests are counted":                   check.counted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("suite-%016x/", rand.Uint64())
			run(check{t, open(t, MaxSize), prefix, differences})
		})
	}
}

// MaxSize is the bound on values that the suite asks of the stores under test.
const MaxSize = 1 << 20

// check is one case at work: a test, the store, and what its keys begin with.
type check struct {
	*testing.T
	store       blob.Store
	prefix      string
	differences []Difference
}

// Difference is something in which an emulator is known not to be like AWS.
type Difference string

// HangingGet is that a get of a value that is put or deleted meanwhile may never
// be answered.
const HangingGet Difference = "a get beside a write of the same key may hang"

// differs says whether the endpoint has a difference, and prints that a check is
// changed by it.
func (t check) differs(d Difference, change string) bool {
	if !slices.Contains(t.differences, d) {
		return false
	}
	t.Logf("known difference %q: %s", d, change)
	return true
}

func (t check) lifeOfAValue() {
	s, prefix := t.store, t.prefix
	ctx, key := t.Context(), prefix+"a/b"
	if v, err := s.Get(ctx, key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get of an absent key: %q, %v", v, err)
	}
	if err := s.Delete(ctx, key); err != nil {
		t.Errorf("Delete of an absent key: %v", err)
	}
	for _, want := range []string{"one", "two, longer", "", "3"} {
		if err := s.Put(ctx, key, []byte(want)); err != nil {
			t.Fatalf("Put: %v", err)
		}
		if got, err := s.Get(ctx, key); err != nil || string(got) != want {
			t.Errorf("Get: %q, %v, want %q", got, err, want)
		}
	}
	if err := s.Delete(ctx, key); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if v, err := s.Get(ctx, key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get of a deleted key: %q, %v", v, err)
	}
}

func (t check) putNew() {
	s, prefix := t.store, t.prefix
	ctx, key := t.Context(), prefix+"k"
	if err := s.PutNew(ctx, key, []byte("first")); err != nil {
		t.Fatalf("PutNew of an absent key: %v", err)
	}
	if err := s.PutNew(ctx, key, []byte("second")); !errors.Is(err, blob.ErrExists) {
		t.Errorf("PutNew of a taken key: %v", err)
	}
	if got, err := s.Get(ctx, key); err != nil || string(got) != "first" {
		t.Errorf("Get: %q, %v", got, err)
	}
	if err := s.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	if err := s.PutNew(ctx, key, []byte("third")); err != nil {
		t.Errorf("PutNew after Delete: %v", err)
	}
}

func (t check) invalidKeys() {
	s, prefix := t.store, t.prefix
	ctx := t.Context()
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/..", "a\x00b", "a\nb", "a\x7fb",
		"\xff", "a/\xc3", "￾", strings.Repeat("k", blob.MaxKey+1),
	} {
		if err := s.Put(ctx, key, nil); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("Put(%q): %v", key, err)
		}
		if err := s.PutNew(ctx, key, nil); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("PutNew(%q): %v", key, err)
		}
		if _, err := s.Get(ctx, key); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("Get(%q): %v", key, err)
		}
		if err := s.Delete(ctx, key); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("Delete(%q): %v", key, err)
		}
	}
	if _, err := s.List(ctx, prefix, "", 0); !errors.Is(err, blob.ErrInvalid) {
		t.Errorf("List with limit 0: %v", err)
	}
	if _, err := s.List(ctx, "a\x00", "", 1); !errors.Is(err, blob.ErrInvalid) {
		t.Errorf("List with an impossible prefix: %v", err)
	}
}

func (t check) oddKeys() {
	s, prefix := t.store, t.prefix
	ctx := t.Context()
	keys := []string{
		"a", "A", "a/b", "a/B", "a/b/c", "a.", "a..b", "...", "a%", "a%/b", "a%+", "a%+/b", "%tmp", "%61", "a=", "a+b", "a b", " ", "~", `a\b`, `..\x`,
		"con", "CON", "con.txt", "aux/x", "com1", "lpt9.x", "a?b*c:d|e<f>g\"h", "äöü/ß", "ключ", "😀", "a&b", "a#b", "a;b", "-", "_", ".hidden", "a/.b",
		strings.Repeat("x", 400), strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("X", 400), strings.Repeat("ß", 200),
		strings.Repeat("x", 199) + "%y", strings.Repeat("x", 400) + "/y", strings.Repeat("x", 200) + "/x", strings.Repeat("d/", 200) + "d",
		strings.Repeat("m", blob.MaxKey-len(prefix)),
	}
	for i, k := range keys {
		if err := s.Put(ctx, prefix+k, []byte(strconv.Itoa(i))); err != nil {
			t.Fatalf("Put(%q): %v", k, err)
		}
	}
	for i, k := range keys {
		if got, err := s.Get(ctx, prefix+k); err != nil || string(got) != strconv.Itoa(i) {
			t.Errorf("Get(%q): %q, %v, want %d", k, got, err, i)
		}
	}
	want := slices.Clone(keys)
	slices.Sort(want)
	got, err := s.List(ctx, prefix, "", 1000)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], prefix)
	}
	if !slices.Equal(got, want) {
		t.Errorf("List:\n got %q\nwant %q", got, want)
	}
	for _, k := range keys {
		if err := s.Delete(ctx, prefix+k); err != nil {
			t.Errorf("Delete(%q): %v", k, err)
		}
	}
	if got, err := s.List(ctx, prefix, "", 10); err != nil || len(got) != 0 {
		t.Errorf("after all deletes: %q, %v", got, err)
	}
}

func (t check) sizes() {
	s, prefix := t.store, t.prefix
	ctx, key := t.Context(), prefix+"k"
	data := make([]byte, MaxSize+1)
	for i := range data {
		data[i] = byte(i * 7)
	}
	if err := s.Put(ctx, key, data); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("Put of %d bytes: %v", len(data), err)
	}
	if err := s.PutNew(ctx, key, data); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("PutNew of %d bytes: %v", len(data), err)
	}
	if err := s.Put(ctx, key, data[:MaxSize]); err != nil {
		t.Fatalf("Put of %d bytes: %v", MaxSize, err)
	}
	if got, err := s.Get(ctx, key); err != nil || !bytes.Equal(got, data[:MaxSize]) {
		t.Errorf("Get: %d bytes, %v", len(got), err)
	}
}

func (t check) lists() {
	s, prefix := t.store, t.prefix
	ctx := t.Context()
	var want []string
	for i := range 25 {
		k := fmt.Sprintf("%sp/%02d", prefix, i)
		want = append(want, k)
		if err := s.Put(ctx, k, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []string{"o/1", "p", "p.", "p0", "q"} {
		if err := s.Put(ctx, prefix+k, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          []string
	}{
		{"p/", "", 100, want},
		{"p/", "", 25, want},
		{"p/", "", 7, want[:7]},
		{"p/", "p/06", 7, want[7:14]},
		{"p/", "p/065", 7, want[7:14]},
		{"p/", "o", 2, want[:2]},
		{"p/", "p/24", 7, nil},
		{"p/", "z", 7, nil},
		{"p/1", "", 100, want[10:20]},
		{"p/1", "p/18", 100, want[19:20]},
		{"p", "", 3, []string{prefix + "p", prefix + "p.", want[0]}},
		{"p", "p/24", 3, []string{prefix + "p0"}},
		{"x", "", 3, nil},
	} {
		after := c.after
		if after != "" {
			after = prefix + after
		}
		got, err := s.List(ctx, prefix+c.prefix, after, c.limit)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("List(%q, %q, %d): %q, %v, want %q", c.prefix, c.after, c.limit, got, err, c.want)
		}
	}
}

func (t check) endedContext() {
	s, prefix := t.store, t.prefix
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	key := prefix + "k"
	if err := s.Put(ctx, key, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if err := s.PutNew(ctx, key, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("PutNew: %v", err)
	}
	if _, err := s.Get(ctx, key); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	if err := s.Delete(ctx, key); !errors.Is(err, context.Canceled) {
		t.Errorf("Delete: %v", err)
	}
	if _, err := s.List(ctx, prefix, "", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("List: %v", err)
	}
	if _, err := s.Get(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a put with an ended context: %v", err)
	}
}

func (t check) counted() {
	s, prefix := t.store, t.prefix
	var m meter.Meter
	ctx, key := meter.With(t.Context(), &m), prefix+"k"
	if err := s.Put(ctx, key, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.PutNew(ctx, key+"2", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(ctx, prefix, "", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, key); err != nil {
		t.Fatal(err)
	}
	if c := m.Counts(); c[meter.BlobPuts] != 3 || c[meter.BlobGets] != 1 {
		t.Errorf("counted %v", c)
	}
}
