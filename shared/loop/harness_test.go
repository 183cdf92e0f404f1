package loop_test

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/functions/adapter"
	"laneway/shared/agent"
	"laneway/shared/claim"
	"laneway/shared/connection"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/push/local"
	"laneway/shared/queue"
	queuebolt "laneway/shared/queue/bolt"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	tablebolt "laneway/shared/table/bolt"
	"laneway/shared/wiring"
)

// within bounds every wait of these tests: long enough for a loaded machine, and
// nothing waits for it when things are right.
const within = 20 * time.Second

// bench is one stack on one machine with a scripted model.
type bench struct {
	t      *testing.T
	core   *wiring.Core
	store  table.Store
	queue  *queuebolt.Queue
	model  *fakeModel
	conns  *local.Registry
	runner *loop.Runner
	ws     string // the agent's workspace
}

type setting func(*wiring.Settings, *wiring.RunnerConfig)

// setup makes a stack whose lanes are served until the test ends.
func setup(t *testing.T, settings ...setting) *bench {
	t.Helper()
	b := &bench{t: t, model: newFakeModel(), ws: t.TempDir()}
	dir := t.TempDir()
	store, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(dir, "t.db"), NoSync: true})
	must(t, err)
	b.store = store
	b.queue, err = queuebolt.Open(queuebolt.Config{Path: filepath.Join(dir, "q.db"), Visibility: 50 * time.Millisecond})
	must(t, err)
	b.conns = local.New(local.Config{})
	set := wiring.Settings{Log: slog.New(slog.DiscardHandler), Times: claim.Times{Poll: 20 * time.Millisecond}}
	rc := wiring.RunnerConfig{Retry: retry.Config{Base: time.Millisecond}}
	agents, err := agent.New(agent.Config{
		Agents: []agent.Spec{{ID: "main", Workspace: b.ws}},
		Model:  model.Selected{Provider: b.model, Name: "fake", Model: "fake-1", Endpoint: model.Cloud, ContextWindow: 100_000},
		Shell:  true,
	})
	must(t, err)
	rc.Models, rc.Agents = agents, agents
	for _, s := range settings {
		s(&set, &rc)
	}
	b.core, err = wiring.Build(wiring.Ports{Store: store, Queue: b.queue, Timers: b.queue, Poster: b.conns}, set)
	must(t, err)
	b.runner, err = b.core.Runner(rc)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.queue.Run(ctx, adapter.Wake(b.runner), func(ctx context.Context, m queue.Message) error {
			return b.core.Notify.HandleTimer(ctx, m.Body)
		}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		b.model.release()
		wg.Wait()
		must(t, b.queue.Close())
		must(t, store.Close())
	})
	return b
}

// client is a connection that collects what it is sent.
type client struct {
	id     string
	mu     sync.Mutex
	frames []map[string]any
	more   chan struct{}
}

func (c *client) Write(_ context.Context, message []byte) error {
	var f map[string]any
	if err := json.Unmarshal(message, &f); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames = append(c.frames, f)
	close(c.more)
	c.more = make(chan struct{})
	return nil
}

func (c *client) Close(int, string) error { return nil }

// until waits for the first frame that is wanted, from the first on.
func (c *client) until(t *testing.T, what string, want func(map[string]any) bool) map[string]any {
	t.Helper()
	end := time.After(within)
	for i := 0; ; {
		c.mu.Lock()
		for ; i < len(c.frames); i++ {
			if want(c.frames[i]) {
				f := c.frames[i]
				c.mu.Unlock()
				return f
			}
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-end:
			t.Fatalf("no frame: %s; got %s", what, c.dump())
		}
	}
}

func (c *client) dump() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, _ := json.Marshal(c.frames)
	return string(b)
}

func (c *client) all(want func(map[string]any) bool) (out []map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		if want(f) {
			out = append(out, f)
		}
	}
	return out
}

// connect makes a ready connection.
func (b *bench) connect(caps ...string) *client {
	b.t.Helper()
	c := &client{id: "conn-" + id.UUID(), more: make(chan struct{})}
	ctx := context.Background()
	must(b.t, b.core.Connections.Open(ctx, connection.Row{ID: c.id, Nonce: "n"}))
	must(b.t, b.core.Connections.Ready(ctx, c.id, connection.Principal{Tenant: session.DefaultTenant}, connection.Client{Caps: caps}))
	b.conns.Register(c.id, c)
	return c
}

// send accepts an agent run of a client.
func (b *bench) send(c *client, key, runID, text string, change ...func(*run.Status)) {
	b.t.Helper()
	st := run.Status{
		Ref: run.RefOf(session.DefaultTenant, runID), RunID: runID, SessionKey: key, AgentID: "main", Method: "agent", RequestHash: runID + text,
		Origin: &run.Waiter{ConnectionID: c.id, RequestID: "req-" + runID, Kind: run.WaitFinal},
		Input:  run.Input{Message: text},
	}
	for _, f := range change {
		f(&st)
	}
	_, err := b.core.Lanes.Accept(context.Background(), lane.Call{Run: st})
	must(b.t, err)
}

// final waits for the second reply of a run.
func (b *bench) final(c *client, runID string) map[string]any {
	b.t.Helper()
	return c.until(b.t, "final of "+runID, func(f map[string]any) bool { return f["type"] == "res" && f["id"] == "req-"+runID })
}

func (b *bench) meta(key string) session.Meta {
	b.t.Helper()
	m, err := session.LoadMeta(context.Background(), b.store, session.Ref{Tenant: session.DefaultTenant, Key: key})
	must(b.t, err)
	return m
}

// idle waits until nothing is left to do in a session.
func (b *bench) idle(key string) session.Meta {
	b.t.Helper()
	end := time.Now().Add(within)
	for {
		m := b.meta(key)
		if m.Exists() && !m.Busy {
			return m
		}
		if time.Now().After(end) {
			b.t.Fatalf("session stays busy: %+v", m)
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-b.t.Context().Done():
		}
	}
}

// text walks to a string member by path.
func str(f map[string]any, path string) string {
	var v any = f
	for _, k := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[k]
		case []any:
			if k != "0" || len(x) == 0 {
				return ""
			}
			v = x[0]
		default:
			return ""
		}
	}
	s, _ := v.(string)
	return s
}

func event(name, stream, phase string) func(map[string]any) bool {
	return func(f map[string]any) bool {
		return f["event"] == name && (stream == "" || str(f, "payload.stream") == stream) && (phase == "" || str(f, "payload.data.phase") == phase || str(f, "payload.state") == phase)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fakeModel answers by script: each call takes the next answer, or the last one
// again.
type fakeModel struct {
	mu       sync.Mutex
	script   []answerFunc
	requests []model.Request
	asked    chan struct{}
	over     chan struct{}
	once     sync.Once
}

type answerFunc func(ctx context.Context, r model.Request, yield func(model.Part, error) bool)

func newFakeModel() *fakeModel {
	return &fakeModel{asked: make(chan struct{}, 1000), over: make(chan struct{})}
}

func (m *fakeModel) on(script ...answerFunc) { m.mu.Lock(); defer m.mu.Unlock(); m.script = script }

func (m *fakeModel) release() { m.once.Do(func() { close(m.over) }) }

func (m *fakeModel) calls() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]model.Request(nil), m.requests...)
}

func (m *fakeModel) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, r)
		f := m.script[min(n, len(m.script)-1)]
		m.mu.Unlock()
		m.asked <- struct{}{}
		f(ctx, r, yield)
	}
}

func done(stop string) model.Part { return model.Part{Done: &model.Done{StopReason: stop}} }

func say(deltas ...string) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		for _, d := range deltas {
			if !yield(model.Part{Text: d}, nil) {
				return
			}
		}
		yield(done("stop"), nil)
	}
}

func callTools(calls ...model.Block) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		for _, c := range calls {
			c.Type = model.ToolCall
			if !yield(model.Part{ToolCall: &c}, nil) {
				return
			}
		}
		yield(done("toolUse"), nil)
	}
}

func fail(class model.Class) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{}, &model.Error{Class: class, Message: "scripted " + string(class)})
	}
}

// hold says some text, then waits for the gate (or the end of the call), then the rest.
func hold(gate <-chan struct{}, before, after string) answerFunc {
	return func(ctx context.Context, _ model.Request, yield func(model.Part, error) bool) {
		if before != "" && !yield(model.Part{Text: before}, nil) {
			return
		}
		select {
		case <-gate:
		case <-ctx.Done():
			yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "cancelled", Err: ctx.Err()})
			return
		}
		if after != "" && !yield(model.Part{Text: after}, nil) {
			return
		}
		yield(done("stop"), nil)
	}
}
