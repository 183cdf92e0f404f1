// Package pushtest is the judge of the push port: one suite for every adapter,
// and a server that speaks API Gateway's @connections.
package pushtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/meter"
	"laneway/shared/push"
)

const (
	// short is the time limit of posts where a case waits for it to pass; a
	// handshake on a busy machine must fit in.
	short = 2 * time.Second
	// long is the limit where it must not matter.
	long = time.Minute
)

// Client is the other side of a connection.
type Client interface {
	Received() []string
	Hang(on bool)
	Leave()
}

// Fixture is an adapter under test: its posts may be of push.MaxFrame bytes and
// take as long as the suite says.
type Fixture struct {
	Poster push.Poster
	// Connect makes a live connection with an id of API Gateway's alphabet.
	Connect func(id string) (push.Target, Client)
	// Absent is the target of a connection that never was.
	Absent push.Target
}

// check is one case at work.
type check struct {
	*testing.T
	Fixture
}

// Run checks an adapter. open makes one whose posts have the time limit.
func Run(t *testing.T, open func(t *testing.T, timeout time.Duration) Fixture) {
	t.Helper()
	const stuck = "a stuck client is given up in time"
	for name, run := range map[string]func(check){
		"messages come whole and in order":         check.messages,
		"every id of API Gateway's is reached":     check.ids,
		"a connection that is gone answers so":     check.gone,
		"close ends a connection":                  check.closing,
		"a message over the limit is refused":      check.tooLarge,
		stuck:                                      check.stuck,
		"many connections at once":                 check.many,
		"posts and their units are counted":        check.counted,
		"a post with an ended context is no post":  check.ended,
		"an abandoned post does not end the other": check.abandoned,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := long
			if name == stuck {
				timeout = short
			}
			run(check{t, open(t, timeout)})
		})
	}
}

func (t check) messages() {
	to, client := t.Connect("a=")
	want := []string{"{}", `{"text":"öß 😀"}`, strings.Repeat("x", push.MaxFrame), `{"n":3}`}
	for i, m := range want {
		if err := t.Poster.Post(t.Context(), to, []byte(m)); err != nil {
			t.Errorf("post %d: %v", i, err)
		}
	}
	if got := client.Received(); !slices.Equal(got, want) {
		t.Errorf("%d messages came, or not as they were sent", len(got))
	}
}

func (t check) ids() {
	for _, id := range []string{"abc=", "a+b/c==", "Ab-_9", "a%2Fb", "a b"} {
		to, client := t.Connect(id)
		if err := t.Poster.Post(t.Context(), to, []byte(id)); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if got := client.Received(); !slices.Equal(got, []string{id}) {
			t.Errorf("%q received %q", id, got)
		}
	}
}

func (t check) gone() {
	to, client := t.Connect("a=")
	if err := t.Poster.Post(t.Context(), to, []byte("x")); err != nil {
		t.Errorf("live: %v", err)
	}
	client.Leave()
	for _, to := range []push.Target{to, t.Absent} {
		if err := t.Poster.Post(t.Context(), to, []byte("x")); !errors.Is(err, push.ErrGone) {
			t.Errorf("post to %+v: %v", to, err)
		}
		if err := t.Poster.Close(t.Context(), to); err != nil {
			t.Errorf("close of %+v: %v", to, err)
		}
	}
}

func (t check) closing() {
	to, _ := t.Connect("a=")
	other, client := t.Connect("b=")
	if err := t.Poster.Close(t.Context(), to); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := t.Poster.Post(t.Context(), to, []byte("x")); !errors.Is(err, push.ErrGone) {
		t.Errorf("post after close: %v", err)
	}
	if err := t.Poster.Close(t.Context(), to); err != nil {
		t.Errorf("second close: %v", err)
	}
	if err := t.Poster.Post(t.Context(), other, []byte("x")); err != nil || len(client.Received()) != 1 {
		t.Errorf("another connection: %v, %d messages", err, len(client.Received()))
	}
}

func (t check) tooLarge() {
	to, client := t.Connect("a=")
	if err := t.Poster.Post(t.Context(), to, make([]byte, push.MaxFrame+1)); !errors.Is(err, push.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if got := client.Received(); len(got) != 0 {
		t.Errorf("%d messages came", len(got))
	}
}

func (t check) stuck() {
	to, client := t.Connect("a=")
	other, _ := t.Connect("b=")
	client.Hang(true)
	var wg sync.WaitGroup
	start := time.Now()
	wg.Go(func() {
		if err := t.Poster.Post(t.Context(), to, []byte("x")); !errors.Is(err, push.ErrFailed) {
			t.Errorf("stuck: %v", err)
		}
		if took := time.Since(start); took < short || took > 20*short {
			t.Errorf("given up after %v", took)
		}
	})
	if err := t.Poster.Post(t.Context(), other, []byte("x")); err != nil {
		t.Errorf("another connection meanwhile: %v", err)
	}
	wg.Wait()
	client.Hang(false)
	if err := t.Poster.Post(t.Context(), to, []byte("y")); err != nil || !slices.Contains(client.Received(), "y") {
		t.Errorf("when it works again: %v", err)
	}
}

func (t check) many() {
	const connections, each = 20, 10
	var wg sync.WaitGroup
	for c := range connections {
		wg.Go(func() {
			to, client := t.Connect(fmt.Sprintf("c%d=", c))
			var want []string
			for i := range each {
				want = append(want, fmt.Sprint(c, i))
				if err := t.Poster.Post(t.Context(), to, []byte(want[i])); err != nil {
					t.Errorf("connection %d, post %d: %v", c, i, err)
				}
			}
			if got := client.Received(); !slices.Equal(got, want) {
				t.Errorf("connection %d: %q, want %q", c, got, want)
			}
		})
	}
	wg.Wait()
}

func (t check) counted() {
	to, _ := t.Connect("a=")
	var m meter.Meter
	ctx := meter.With(t.Context(), &m)
	for _, n := range []int{1, 32 << 10, 32<<10 + 1, push.MaxFrame} {
		if err := t.Poster.Post(ctx, to, make([]byte, n)); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if c := m.Counts(); c[meter.PostCalls] != 4 || c[meter.PostUnits] != 1+1+2+4 {
		t.Errorf("counted %v", c)
	}
}

func (t check) ended() {
	to, client := t.Connect("a=")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := t.Poster.Post(ctx, to, []byte("x")); !errors.Is(err, context.Canceled) || !errors.Is(err, push.ErrFailed) {
		t.Errorf("%v", err)
	}
	if got := client.Received(); len(got) != 0 {
		t.Errorf("%d messages came", len(got))
	}
}

func (t check) abandoned() {
	to, client := t.Connect("a=")
	client.Hang(true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- t.Poster.Post(ctx, to, []byte("x")) }()
	cancel()
	if err := <-done; !errors.Is(err, push.ErrFailed) {
		t.Errorf("abandoned: %v", err)
	}
	client.Hang(false)
	if err := t.Poster.Post(t.Context(), to, []byte("y")); err != nil || !slices.Equal(client.Received(), []string{"y"}) {
		t.Errorf("next: %v, %q", err, client.Received())
	}
}
