package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"laneway/shared/queue"
)

var errNo = errors.New("no")

// batch makes messages of "group:name" words, ids being the words.
func batch(words string) []queue.Message {
	var out []queue.Message
	for w := range strings.FieldsSeq(words) {
		group, _, _ := strings.Cut(w, ":")
		out = append(out, queue.Message{ID: w, Group: group, Body: []byte(w)})
	}
	return out
}

func TestF30a_NothingOvertakesAFailureInItsGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, fails, handled, failed string }{
		{"g1:m1 g1:m2 g2:m1", "g1:m1", "g1:m1 g2:m1", "g1:m1 g1:m2"},
		{"g1:m1 g2:m1 g1:m2 g2:m2", "g1:m1", "g1:m1 g2:m1 g2:m2", "g1:m1 g1:m2"},
		{"g1:m1 g1:m2 g1:m3", "g1:m2", "g1:m1 g1:m2", "g1:m2 g1:m3"},
		{"g1:m1 g2:m1", "g1:m1 g2:m1", "g1:m1 g2:m1", "g1:m1 g2:m1"},
		{"g1:m1 g2:m1", "", "g1:m1 g2:m1", ""},
		{"", "", "", ""},
	} {
		for _, how := range []string{"error", "panic"} {
			var handled, reported []string
			failed := queue.Batch(t.Context(), batch(c.in), func(_ context.Context, m queue.Message) error {
				handled = append(handled, m.ID)
				if !slices.Contains(strings.Fields(c.fails), m.ID) {
					return nil
				}
				if how == "panic" {
					panic(m.ID)
				}
				return errNo
			}, func(m queue.Message, err error) {
				if _, ok := errors.AsType[*queue.PanicError](err); ok != (how == "panic") || !ok && !errors.Is(err, errNo) {
					t.Errorf("%s: reported %v", how, err)
				}
				reported = append(reported, m.ID)
			})
			if failed == nil {
				t.Error("nil would be null on the wire")
			}
			if got := strings.Join(handled, " "); got != c.handled {
				t.Errorf("%s of %q in %q: handled %q, want %q", how, c.fails, c.in, got, c.handled)
			}
			if got := strings.Join(failed, " "); got != c.failed {
				t.Errorf("%s of %q in %q: failed %q, want %q", how, c.fails, c.in, got, c.failed)
			}
			if got := strings.Join(reported, " "); got != c.fails {
				t.Errorf("%s of %q in %q: reported %q", how, c.fails, c.in, got)
			}
		}
	}
}

func TestBatchHandlesTimersAtOnceAndEachAlone(t *testing.T) {
	t.Parallel()
	messages := batch(":a :b :c")
	var all sync.WaitGroup
	all.Add(len(messages))
	failed := queue.Batch(t.Context(), messages, func(_ context.Context, m queue.Message) error {
		all.Done()
		all.Wait() // none would return if they came one after another
		if m.ID == ":b" {
			return errNo
		}
		return nil
	}, nil)
	if !slices.Equal(failed, []string{":b"}) {
		t.Errorf("failed %q", failed)
	}
}

func TestBatchLeavesTheRestWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var handled []string
	failed := queue.Batch(ctx, batch("a:1 b:1 c:1"), func(_ context.Context, m queue.Message) error {
		handled = append(handled, m.ID)
		cancel()
		return nil
	}, nil)
	if !slices.Equal(handled, []string{"a:1"}) || !slices.Equal(failed, []string{"b:1", "c:1"}) {
		t.Errorf("handled %q, failed %q", handled, failed)
	}
}

// Whatever fails: a handled message has only successes of its group before it,
// and what failed is what was not handled well.
func TestBatchAtRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var in []queue.Message
		fails := make(map[string]bool)
		for i := range rng.IntN(10) {
			m := queue.Message{ID: strconv.Itoa(i), Group: fmt.Sprint("g", rng.IntN(3))}
			in = append(in, m)
			fails[m.ID] = rng.IntN(3) == 0
		}
		var handled []string
		failed := queue.Batch(t.Context(), in, func(_ context.Context, m queue.Message) error {
			handled = append(handled, m.ID)
			if fails[m.ID] {
				return errNo
			}
			return nil
		}, nil)
		broken := make(map[string]bool)
		var wantHandled []string
		wantFailed := []string{}
		for _, m := range in {
			if !broken[m.Group] {
				wantHandled = append(wantHandled, m.ID)
				broken[m.Group] = fails[m.ID]
			}
			if broken[m.Group] {
				wantFailed = append(wantFailed, m.ID)
			}
		}
		if !slices.Equal(handled, wantHandled) || !slices.Equal(failed, wantFailed) {
			t.Fatalf("%v with failures %v: handled %q, failed %q", in, fails, handled, failed)
		}
	}
}

func TestAPanicsValueIsNotKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  string
	}{
		{"sesame", "string"},
		{errors.New("sesame"), "*errors.errorString"},
	} {
		err := queue.Call(t.Context(), func(context.Context, queue.Message) error { panic(c.value) }, queue.Message{})
		p, ok := errors.AsType[*queue.PanicError](err)
		if !ok || p.Kind != c.want || len(p.Stack) == 0 || strings.Contains(err.Error(), "sesame") {
			t.Errorf("panic(%v): %v", c.value, err)
		}
	}
	err := queue.Call(t.Context(), func(_ context.Context, m queue.Message) error {
		_ = m.Body[m.Receives]
		return nil
	}, queue.Message{})
	if err == nil || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("a runtime error: %v", err)
	}
}

// FuzzCheck: what is accepted can be written into XML and into a header.
func FuzzCheck(f *testing.F) {
	f.Add("group", "dedup", []byte("body"))
	f.Add("", "\x00", []byte("\x0b"))
	f.Fuzz(func(t *testing.T, group, dedup string, body []byte) {
		err := queue.Check(group, dedup, body)
		if err != nil {
			if !errors.Is(err, queue.ErrInvalid) {
				t.Errorf("%v", err)
			}
			return
		}
		for _, id := range []string{group, dedup} {
			if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' }) {
				t.Errorf("accepted id %q", id)
			}
		}
		if len(body) == 0 || !utf8.Valid(body) || bytes.ContainsAny(body, "\x00\x01\x08\x0b\x0c\x0e\x1f\uffff") {
			t.Errorf("accepted body %q", body)
		}
	})
}

func TestDelays(t *testing.T) {
	t.Parallel()
	for d, ok := range map[time.Duration]bool{-1: false, 0: true, 1: true, queue.MaxDelay: true, queue.MaxDelay + 1: false} {
		if err := queue.CheckDelay(d); (err == nil) != ok || err != nil && !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%v: %v", d, err)
		}
	}
}
