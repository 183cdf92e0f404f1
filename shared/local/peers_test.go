package local

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/clock"
	"laneway/shared/clock/clocktest"
	"laneway/shared/push"
	pushlocal "laneway/shared/push/local"
	"laneway/shared/push/pushtest"
	"laneway/shared/table"
	tablebolt "laneway/shared/table/bolt"
)

// neighbours are two processes: posts of the first go to connections of the second.
func neighbours(t *testing.T, limit time.Duration, c clock.Clock) (first, second *peers) {
	t.Helper()
	second = newPeers(pushlocal.New(pushlocal.Config{Limit: push.MaxFrame, Timeout: limit}), "", "secret", c)
	server := httptest.NewServer(second)
	t.Cleanup(server.Close)
	second.self = server.URL
	first = newPeers(pushlocal.New(pushlocal.Config{}), "http://first", "secret", c)
	t.Cleanup(first.close)
	return first, second
}

// far is a connection of another process.
type far struct {
	leave func()

	mu       sync.Mutex
	received []string
	hung     chan struct{} // nil: it reads
}

func (f *far) Write(ctx context.Context, message []byte) error {
	f.mu.Lock()
	hung := f.hung
	f.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received = append(f.received, string(message))
	return nil
}

func (f *far) Close(int, string) error { return nil }

func (f *far) Leave() { f.leave() }

func (f *far) Received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.received)
}

func (f *far) Hang(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on {
		f.hung = make(chan struct{})
		return
	}
	close(f.hung)
	f.hung = nil
}

func TestPostsToAnotherProcess(t *testing.T) {
	t.Parallel()
	pushtest.Run(t, func(t *testing.T, limit time.Duration) pushtest.Fixture {
		t.Helper()
		first, second := neighbours(t, limit, clock.System{})
		first.timeout = limit
		return pushtest.Fixture{
			Poster: first,
			Connect: func(id string) (push.Target, pushtest.Client) {
				f := &far{}
				f.leave = second.conns.Register(id, f)
				return push.Target{ConnectionID: id, Callback: second.self}, f
			},
			Absent: push.Target{ConnectionID: "absent=", Callback: second.self},
		}
	})
}

func TestAPostToOnesOwnConnectionStaysHere(t *testing.T) {
	t.Parallel()
	first, _ := neighbours(t, time.Minute, clock.System{})
	f := &far{}
	defer first.conns.Register("a", f)()
	for _, callback := range []string{"", first.self} {
		if err := first.Post(t.Context(), push.Target{ConnectionID: "a", Callback: callback}, []byte("x")); err != nil {
			t.Error(err)
		}
	}
	if got := f.Received(); len(got) != 2 {
		t.Errorf("came: %q", got)
	}
}

// What another process did not sign, or signed for something else or long ago, is
// posted nowhere.
func TestAForeignPostIsRefused(t *testing.T) {
	t.Parallel()
	now := clocktest.New()
	first, second := neighbours(t, time.Minute, now)
	f := &far{}
	defer second.conns.Register("a", f)()
	to := push.Target{ConnectionID: "a", Callback: second.self}
	send := func(change func(*http.Request)) int {
		t.Helper()
		var status int
		first.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			change(r)
			res, err := http.DefaultTransport.RoundTrip(r)
			if err == nil {
				status = res.StatusCode
			}
			return res, err
		})
		_ = first.Post(t.Context(), to, []byte("x")) // the status says it
		return status
	}
	if got := send(func(*http.Request) {}); got != http.StatusOK {
		t.Fatalf("as it is: %d", got)
	}
	for name, change := range map[string]func(*http.Request){
		"unsigned":          func(r *http.Request) { r.Header.Del(headerSignature) },
		"signed by a guess": func(r *http.Request) { r.Header.Set(headerSignature, strings.Repeat("ab", 32)) },
		"for another one":   func(r *http.Request) { r.URL.Path = peerPath + "b" },
		"with another body": func(r *http.Request) { r.Body = http.NoBody; r.ContentLength = 0 },
		"by another method": func(r *http.Request) { r.Method = http.MethodDelete },
		"at another time":   func(r *http.Request) { r.Header.Set(headerAt, "1") },
		"without any time":  func(r *http.Request) { r.Header.Del(headerAt) },
	} {
		if got := send(change); got != http.StatusForbidden {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got := send(func(*http.Request) { now.Advance(peerSkew + time.Second) }); got != http.StatusForbidden {
		t.Errorf("long ago: %d", got)
	}
	if got := f.Received(); len(got) != 1 {
		t.Errorf("came: %q", got)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Of several processes that ask at once one has the turn, and nobody has it again
// before its time.
func TestATurnIsTakenByOne(t *testing.T) {
	t.Parallel()
	store, err := tablebolt.Open(tablebolt.Config{Path: t.TempDir() + "/tables.db", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	now := time.UnixMilli(1_000_000)
	for round, want := range []int{1, 0, 1} {
		at := now.Add([]time.Duration{0, 17 * time.Second, 18 * time.Second}[round])
		if got := taken(t, store, at); got != want {
			t.Errorf("%v later: %d have the turn", at.Sub(now), got)
		}
	}
	if mine, err := takeTurn(t.Context(), store, "another job", now, time.Minute); !mine || err != nil {
		t.Errorf("another job: %v, %v", mine, err)
	}
}

func taken(t *testing.T, store table.Store, at time.Time) int {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range 8 {
		wg.Go(func() {
			mine, err := takeTurn(t.Context(), store, "sweep", at, 18*time.Second)
			if err != nil {
				t.Error(err)
			}
			if mine {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return n
}
