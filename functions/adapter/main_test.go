package adapter_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/functions/adapter"
	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/rpc"
	"laneway/shared/table"
	tablebolt "laneway/shared/table/bolt"
	"laneway/shared/token"
	"laneway/shared/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stack is the services behind the adapters, over a real store; what they send and
// post is kept.
type stack struct {
	store  table.Store
	core   *wiring.Core
	socket *adapter.Socket
	queue  *sent
	posts  *posted
}

func setup(t *testing.T, set ...func(*wiring.Settings)) *stack {
	t.Helper()
	store, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(t.TempDir(), "t.db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	s := &stack{store: store, queue: &sent{}, posts: &posted{}}
	settings := wiring.Settings{Log: slog.New(slog.DiscardHandler)}
	for _, f := range set {
		f(&settings)
	}
	s.core, err = wiring.Build(wiring.Ports{Store: store, Queue: s.queue, Timers: s.queue, Poster: s.posts}, settings)
	must(t, err)
	gw, err := s.core.Gateway(&token.Store{Table: store}, directory{})
	must(t, err)
	s.socket = &adapter.Socket{Gateway: gw, Poster: s.posts}
	return s
}

type directory struct{}

func (directory) Agents(context.Context, string) ([]rpc.Agent, error) {
	return []rpc.Agent{{ID: "main"}}, nil
}

func (directory) Models(context.Context, string) ([]model.Info, error) { return nil, nil }

// sent is a queue that keeps what it is given.
type sent struct {
	mu     sync.Mutex
	wakes  [][]byte
	timers [][]byte
}

func (q *sent) Send(_ context.Context, _ queue.Lane, _, _ string, body []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakes = append(q.wakes, body)
	return nil
}

func (q *sent) After(_ context.Context, _ time.Duration, body []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timers = append(q.timers, body)
	return nil
}

// posted is a transport that keeps what it is given, or fails.
type posted struct {
	mu     sync.Mutex
	fail   error
	to     []push.Target
	frames []string
}

func (p *posted) Post(_ context.Context, to push.Target, frame []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return p.fail
	}
	p.to, p.frames = append(p.to, to), append(p.frames, string(frame))
	return nil
}

func (p *posted) Close(context.Context, push.Target) error { return nil }

var quiet = slog.New(slog.DiscardHandler)

// runner remembers the wake-ups that it got.
type runner struct {
	wakes     []lane.Wakeup
	deadlines []time.Time
	fail      func(lane.Wakeup) error
}

func (r *runner) Handle(_ context.Context, w lane.Wakeup, deadline time.Time) error {
	r.wakes, r.deadlines = append(r.wakes, w), append(r.deadlines, deadline)
	if r.fail != nil {
		return r.fail(w)
	}
	return nil
}

// sweeper counts.
type sweeper struct {
	swept  int
	active int
	err    error
}

func (s *sweeper) Sweep(context.Context, time.Duration) (lane.Swept, error) {
	s.swept++
	return lane.Swept{Active: s.active}, s.err
}

const samples = "../../events"

// sample reads a sample event into the shape that an adapter's function gets.
func sample[T any](t *testing.T, name string) T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(samples, name))
	must(t, err)
	return decoded[T](t, string(raw))
}

func decoded[T any](t *testing.T, raw string) T {
	t.Helper()
	var v T
	must(t, json.Unmarshal([]byte(raw), &v))
	return v
}
