package local

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/meter"
	"laneway/shared/push"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is a sink whose peer reads, or does not. Like a socket it refuses to be
// written by two at once.
type pipe struct {
	out     chan []byte
	writing atomic.Bool
	clash   atomic.Bool
	closed  atomic.Int32
}

func newPipe() *pipe { return &pipe{out: make(chan []byte)} }

func (p *pipe) Write(ctx context.Context, b []byte) error {
	if !p.writing.CompareAndSwap(false, true) {
		p.clash.Store(true)
	}
	defer p.writing.Store(false)
	select {
	case p.out <- bytes.Clone(b):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Close(code int, _ string) error {
	p.closed.Store(int32(code))
	return nil
}

func to(id string) push.Target { return push.Target{ConnectionID: id} }

func TestPostsToOneConnectionAreSerialised(t *testing.T) {
	t.Parallel()
	r := New(Config{})
	p := newPipe()
	defer r.Register("a", p)()
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := r.Post(t.Context(), to("a"), []byte(strconv.Itoa(i))); err != nil {
				t.Errorf("post %d: %v", i, err)
			}
		})
	}
	seen := make(map[string]bool)
	for range n {
		seen[string(<-p.out)] = true
	}
	wg.Wait()
	if len(seen) != n || p.clash.Load() {
		t.Errorf("%d different messages of %d, overlapping: %v", len(seen), n, p.clash.Load())
	}
}

func TestASlowConnectionIsBoundedAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		slow, quick := newPipe(), newPipe()
		defer r.Register("slow", slow)()
		defer r.Register("quick", quick)()
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 { // one in the sink, two that wait for their turn
			wg.Go(func() {
				if err := r.Post(t.Context(), to("slow"), []byte("x")); !errors.Is(err, push.ErrFailed) || time.Since(start) != push.PostTimeout {
					t.Errorf("post to a stuck peer: %v after %v", err, time.Since(start))
				}
			})
		}
		synctest.Wait()
		wg.Go(func() { <-quick.out })
		if err := r.Post(t.Context(), to("quick"), []byte("x")); err != nil || time.Since(start) != 0 {
			t.Errorf("post to another: %v after %v", err, time.Since(start))
		}
		wg.Wait()
		wg.Go(func() { <-slow.out })
		if err := r.Post(t.Context(), to("slow"), []byte("x")); err != nil {
			t.Errorf("post after the peer came back: %v", err)
		}
		wg.Wait()
	})
}

func TestGoneConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		if err := r.Post(t.Context(), to("unknown"), []byte("x")); !errors.Is(err, push.ErrGone) {
			t.Errorf("unknown: %v", err)
		}
		if err := r.Close(t.Context(), to("unknown")); err != nil {
			t.Errorf("close of unknown: %v", err)
		}

		p := newPipe()
		unregister := r.Register("a", p)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := r.Post(t.Context(), to("a"), []byte("x")); !errors.Is(err, push.ErrGone) {
					t.Errorf("post in flight when its connection goes: %v", err)
				}
			})
		}
		synctest.Wait()
		if err := r.Close(t.Context(), to("a")); err != nil || p.closed.Load() != closeNormal {
			t.Errorf("close: %v, code %d", err, p.closed.Load())
		}
		wg.Wait()
		unregister() // a second end changes nothing

		old := r.Register("b", newPipe())
		now := newPipe()
		unregister = r.Register("b", now)
		old()
		wg.Go(func() { <-now.out })
		if err := r.Post(t.Context(), to("b"), []byte("x")); err != nil {
			t.Errorf("post to the newer of two: %v", err)
		}
		wg.Wait()
		unregister()
		if err := r.Post(t.Context(), to("b"), []byte("x")); !errors.Is(err, push.ErrGone) || r.Len() != 0 {
			t.Errorf("after unregister: %v, %d left", err, r.Len())
		}
	})
}

func TestLimitAndMeter(t *testing.T) {
	t.Parallel()
	r := New(Config{Limit: push.MaxFrame})
	p := newPipe()
	defer r.Register("a", p)()
	var m meter.Meter
	ctx := meter.With(t.Context(), &m)
	if err := r.Post(ctx, to("a"), make([]byte, push.MaxFrame+1)); !errors.Is(err, push.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	for _, n := range []int{0, 1, 32 << 10, 32<<10 + 1, push.MaxFrame} {
		done := make(chan error, 1)
		go func() { done <- r.Post(ctx, to("a"), make([]byte, n)) }()
		if got := len(<-p.out); got != n {
			t.Errorf("%d bytes came for %d", got, n)
		}
		if err := <-done; err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if c := m.Counts(); c[meter.PostCalls] != 5 || c[meter.PostUnits] != 1+1+1+2+4 {
		t.Errorf("counted %v", c)
	}
}
