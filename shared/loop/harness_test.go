package loop_test

import (
	"context"
	"log/slog"
	"path/filepath"
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
	b.store = theStore(t)
	var err error
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
	b.core, err = wiring.Build(wiring.Ports{Store: b.store, Queue: b.queue, Timers: b.queue, Poster: b.conns}, set)
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
	})
	return b
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
