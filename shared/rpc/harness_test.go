package rpc_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/blob"
	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/push/local"
	"laneway/shared/queue"
	queuebolt "laneway/shared/queue/bolt"
	"laneway/shared/rpc"
	"laneway/shared/session"
	"laneway/shared/table"
	tablebolt "laneway/shared/table/bolt"
	"laneway/shared/token"
	"laneway/shared/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within bounds every wait: long enough for a loaded machine, and nothing waits for
// it when things are right.
const within = 20 * time.Second

// world is a gateway over real stores with a runner behind it.
type world struct {
	t      *testing.T
	gw     *rpc.Gateway
	core   *wiring.Core
	store  table.Store
	conns  *local.Registry
	tokens *token.Store
	model  *gate
	secret string // of the default tenant, all scopes
	frames atomic.Int64
}

type option func(*options)

type options struct {
	settings wiring.Settings
	store    func(table.Store) table.Store
	queue    func(queue.Sender) queue.Sender
	idle     bool         // nobody serves the lanes
	broken   *atomic.Bool // while it is true every wake-up fails
	blobs    blob.Store
}

func settings(f func(*wiring.Settings)) option { return func(o *options) { f(&o.settings) } }

// noRunner leaves what is accepted waiting.
func noRunner(o *options) { o.idle = true }

// brokenWhile makes every wake-up fail while b is true.
func brokenWhile(b *atomic.Bool) option { return func(o *options) { o.broken = b } }

// withFiles lets messages have files.
func withFiles(b blob.Store) option { return func(o *options) { o.blobs = b } }

// stored puts something between the services and the store.
func stored(f func(table.Store) table.Store) option { return func(o *options) { o.store = f } }

// over keeps everything in a store that the test has made.
func over(s table.Store) option {
	return stored(func(table.Store) table.Store { return s })
}

// queued puts something between the services and the lanes.
func queued(f func(queue.Sender) queue.Sender) option { return func(o *options) { o.queue = f } }

func setup(tb testing.TB, opts ...option) *world {
	tb.Helper()
	o := options{settings: wiring.Settings{
		Log: slog.New(slog.DiscardHandler), Version: "test", BusyWait: 2 * time.Second, Times: claim.Times{Poll: 10 * time.Millisecond},
	}}
	for _, f := range opts {
		f(&o)
	}
	dir := tb.TempDir()
	bolt, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(dir, "t.db"), NoSync: true})
	must(tb, err)
	q, err := queuebolt.Open(queuebolt.Config{Path: filepath.Join(dir, "q.db"), Visibility: 50 * time.Millisecond})
	must(tb, err)
	w := &world{store: bolt, conns: local.New(local.Config{}), model: newGate()}
	w.t, _ = tb.(*testing.T)
	if o.store != nil {
		w.store = o.store(bolt)
	}
	var sender queue.Sender = q
	if o.queue != nil {
		sender = o.queue(q)
	}
	w.core, err = wiring.Build(wiring.Ports{Store: w.store, Queue: sender, Timers: q, Poster: w.conns, Dead: q, Blobs: o.blobs}, o.settings)
	must(tb, err)
	w.tokens = &token.Store{Table: w.store, Clock: o.settings.Clock}
	w.secret, err = w.tokens.Add(context.Background(), token.Grant{})
	must(tb, err)
	w.gw, err = w.core.Gateway(w.tokens, directory{})
	must(tb, err)
	runner, err := w.core.Runner(wiring.RunnerConfig{Models: w.model, Agents: w.model})
	must(tb, err)
	lanes := func(ctx context.Context, m queue.Message) error {
		wake, err := lane.ParseWakeup(m.Body)
		if err != nil {
			return err
		}
		if o.broken != nil && o.broken.Load() {
			return errors.New("the runner is broken")
		}
		return runner.Handle(ctx, wake, time.Time{})
	}
	if o.idle {
		lanes = nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := q.Run(ctx, lanes, func(ctx context.Context, m queue.Message) error { return w.core.Notify.HandleTimer(ctx, m.Body) })
		if err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		w.model.release()
		wg.Wait()
		must(tb, q.Close())
		must(tb, bolt.Close())
	})
	return w
}

// directory is two agents with one model.
type directory struct{}

func (directory) Agents(context.Context, string) ([]rpc.Agent, error) {
	return []rpc.Agent{
		{ID: "main", Name: "Main", Workspace: "/w", Provider: "fake", Model: "fake-1", ContextTokens: 1000},
		{ID: "other", Provider: "fake", Model: "fake-2"},
	}, nil
}

func (directory) Models(context.Context, string) ([]model.Info, error) {
	return []model.Info{{ID: "fake-1", Name: "Fake One", Provider: "fake", ContextWindow: 1000}, {ID: "fake-2", Provider: "fake"}}, nil
}

func (w *world) ref(key string) session.Ref {
	return session.Ref{Tenant: session.DefaultTenant, Key: key}
}

func (w *world) meta(key string) session.Meta {
	w.t.Helper()
	m, err := session.LoadMeta(context.Background(), w.store, w.ref(key))
	must(w.t, err)
	return m
}

// until polls the tables.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(within)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			w.t.Fatalf("never: %s", what)
		}
	}
}

// idle waits until a session has nothing left to do.
func (w *world) idle(key string) session.Meta {
	w.t.Helper()
	var m session.Meta
	defer func() {
		if w.t.Failed() {
			w.t.Logf("session %+v", m)
		}
	}()
	w.until(key+" is idle", func() bool {
		m = w.meta(key)
		return m.Exists() && !m.Busy && m.Owner == ""
	})
	return m
}

// says runs a message to its end and gives the reply's payload.
func (c *client) says(key, runID, text string) protocol.Final {
	c.t.Helper()
	req := c.post("agent", obj{"sessionKey": key, "message": text, "idempotencyKey": runID})
	var f protocol.Final
	into(c.t, c.answer(req, 2), &f)
	return f
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func busyFast(s *wiring.Settings) { s.BusyWait = 50 * time.Millisecond }

func setBase(ref session.Ref, base int64) table.Op {
	return table.Op{Kind: table.Update, Key: ref.MetaKey(), If: table.Exists(), Set: []table.SetOp{{Path: table.P(session.AttrBase), Value: base}}}
}
