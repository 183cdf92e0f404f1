package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/claim"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/push/local"
	"laneway/shared/queue"
	queuebolt "laneway/shared/queue/bolt"
	"laneway/shared/rpc"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	tablebolt "laneway/shared/table/bolt"
	"laneway/shared/token"
	"laneway/shared/tool"
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
	idle     bool // nobody serves the lanes
}

func settings(f func(*wiring.Settings)) option { return func(o *options) { f(&o.settings) } }

// noRunner leaves what is accepted waiting.
func noRunner(o *options) { o.idle = true }

// stored puts something between the services and the store.
func stored(f func(table.Store) table.Store) option { return func(o *options) { o.store = f } }

// queued puts something between the services and the lanes.
func queued(f func(queue.Sender) queue.Sender) option { return func(o *options) { o.queue = f } }

func setup(t testing.TB, opts ...option) *world {
	t.Helper()
	o := options{settings: wiring.Settings{
		Log: slog.New(slog.DiscardHandler), Version: "test", BusyWait: 2 * time.Second, Times: claim.Times{Poll: 10 * time.Millisecond, Answer: 300 * time.Millisecond},
	}}
	for _, f := range opts {
		f(&o)
	}
	dir := t.TempDir()
	bolt, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(dir, "t.db"), NoSync: true})
	must(t, err)
	q, err := queuebolt.Open(queuebolt.Config{Path: filepath.Join(dir, "q.db"), Visibility: 50 * time.Millisecond})
	must(t, err)
	w := &world{store: bolt, conns: local.New(local.Config{}), model: newGate()}
	w.t, _ = t.(*testing.T)
	if o.store != nil {
		w.store = o.store(bolt)
	}
	var sender queue.Sender = q
	if o.queue != nil {
		sender = o.queue(q)
	}
	w.core, err = wiring.Build(wiring.Ports{Store: w.store, Queue: sender, Timers: q, Poster: w.conns}, o.settings)
	must(t, err)
	w.tokens = &token.Store{Table: bolt}
	w.secret, err = w.tokens.Add(context.Background(), token.Grant{})
	must(t, err)
	w.gw, err = w.core.Gateway(w.tokens, directory{})
	must(t, err)
	runner, err := w.core.Runner(wiring.RunnerConfig{Models: w.model, Agents: w.model})
	must(t, err)
	lanes := func(ctx context.Context, m queue.Message) error {
		wake, err := lane.ParseWakeup(m.Body)
		if err != nil {
			return err
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
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		w.model.release()
		wg.Wait()
		must(t, q.Close())
		must(t, bolt.Close())
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

// gate is a model that says back what it was told. A message that begins with
// "hold" is answered when the gate is opened, or never.
type gate struct {
	mu    sync.Mutex
	asked []model.Request
	more  chan struct{} // closed and replaced with every request
	open  chan struct{} // closed: everything is answered
	once  sync.Once
	held  map[string]chan struct{} // by message
}

func newGate() *gate {
	return &gate{more: make(chan struct{}), open: make(chan struct{}), held: make(map[string]chan struct{})}
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// let answers one message that is held.
func (g *gate) let(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.held[text])
}

func (g *gate) Select(context.Context, run.Input, session.Entry) (model.Selected, error) {
	return model.Selected{Provider: g, Name: "fake", Model: "fake-1", Endpoint: model.Local}, nil
}

func (g *gate) Prompt(context.Context, loop.PromptInput) (string, error) { return "", nil }

func (g *gate) Tools(context.Context, *tool.Scope) (*tool.Registry, error) { return nil, nil }

func (g *gate) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		g.mu.Lock()
		g.asked = append(g.asked, r)
		close(g.more)
		g.more = make(chan struct{})
		text := lastText(r)
		held := make(chan struct{})
		g.held[text] = held
		g.mu.Unlock()
		if !yield(model.Part{Text: "you said "}, nil) {
			return
		}
		if strings.HasPrefix(text, "hold") {
			select {
			case <-g.open:
			case <-held:
			case <-ctx.Done():
				yield(model.Part{}, &model.Error{Class: model.Timeout, Message: "cancelled"})
				return
			}
		}
		if yield(model.Part{Text: text}, nil) {
			yield(model.Part{Done: &model.Done{StopReason: "stop"}}, nil)
		}
	}
}

func lastText(r model.Request) string {
	if len(r.Messages) == 0 {
		return ""
	}
	var s string
	for _, b := range r.Messages[len(r.Messages)-1].Content {
		s += b.Text
	}
	return s
}

// texts is what the model was asked last, message by message.
func (g *gate) texts() (out []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) == 0 {
		return nil
	}
	for _, m := range g.asked[len(g.asked)-1].Messages {
		var s string
		for _, b := range m.Content {
			s += b.Text
		}
		out = append(out, s)
	}
	return out
}

// waitFor waits until the model was asked about a message.
func (g *gate) waitFor(t *testing.T, text string) {
	t.Helper()
	end := time.After(within)
	for {
		g.mu.Lock()
		more := g.more
		for _, r := range g.asked {
			if lastText(r) == text {
				g.mu.Unlock()
				return
			}
		}
		g.mu.Unlock()
		select {
		case <-more:
		case <-end:
			t.Fatalf("the model was never asked about %q", text)
		}
	}
}

func (g *gate) count(text string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.asked {
		if lastText(r) == text {
			n++
		}
	}
	return n
}

// client is one end of a connection: it keeps what it is sent.
type client struct {
	w    *world
	t    *testing.T
	id   string
	at   atomic.Int64
	gone func()

	mu     sync.Mutex
	frames []protocol.Frame
	raw    [][]byte
	more   chan struct{}
	closed []int
}

// dial opens a connection that has not said anything.
func (w *world) dial() *client {
	w.t.Helper()
	c := w.plug()
	must(w.t, w.gw.Opened(context.Background(), c.id, ""))
	return c
}

// plug makes a connection that the gateway does not know of.
func (w *world) plug() *client {
	c := &client{w: w, t: w.t, id: "c-" + id.UUID(), more: make(chan struct{})}
	c.at.Store(time.Now().UnixMicro())
	c.gone = w.conns.Register(c.id, c)
	return c
}

// Write and Close make a client the sink of what is posted to it.
func (c *client) Write(_ context.Context, message []byte) error { c.take(message); return nil }

func (c *client) Close(code int, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = append(c.closed, code)
	return nil
}

func (c *client) take(message []byte) {
	f, err := protocol.DecodeFrame(message)
	if err != nil {
		c.t.Errorf("sent what is no frame: %s", message)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames, c.raw = append(c.frames, f), append(c.raw, append([]byte(nil), message...))
	close(c.more)
	c.more = make(chan struct{})
}

// serve gives the gateway a message of the connection, as it came in at a time.
func (c *client) serve(body []byte, at int64) {
	c.w.gw.Serve(context.Background(), &rpc.Frame{
		ConnectionID: c.id, Body: body, At: at, Send: c.take,
		Closing: func(code int, reason string) { _ = c.Close(code, reason) },
	})
}

// post sends a request and gives its id.
func (c *client) post(method string, params any) string {
	return c.postAt(method, params, c.at.Add(1))
}

func (c *client) postAt(method string, params any, at int64) string {
	reqID := fmt.Sprintf("r%d", c.w.frames.Add(1))
	body, err := protocol.AppendRequest(nil, reqID, method, params)
	must(c.t, err)
	c.serve(body, at)
	return reqID
}

// find waits for the n-th frame that is wanted, from 1.
func (c *client) find(what string, n int, want func(*protocol.Frame) bool) protocol.Frame {
	c.t.Helper()
	end := time.After(within)
	seen := 0
	for i := 0; ; {
		c.mu.Lock()
		for ; i < len(c.frames); i++ {
			if want(&c.frames[i]) {
				if seen++; seen == n {
					f := c.frames[i]
					c.mu.Unlock()
					return f
				}
			}
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-end:
			c.t.Fatalf("no frame: %s (%d of %d)\n%s", what, seen, n, c.dump())
		}
	}
}

func (c *client) dump() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, r := range c.raw {
		b.Write(r)
		b.WriteByte('\n')
	}
	return b.String()
}

// answer is the n-th response to a request.
func (c *client) answer(reqID string, n int) protocol.Frame {
	c.t.Helper()
	return c.find("answer "+fmt.Sprint(n)+" to "+reqID, n, func(f *protocol.Frame) bool { return f.Type == "res" && f.ID == reqID })
}

// answers counts the responses to a request.
func (c *client) answers(reqID string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.frames {
		if c.frames[i].Type == "res" && c.frames[i].ID == reqID {
			n++
		}
	}
	return n
}

// call sends a request and waits for its first answer.
func (c *client) call(method string, params any) protocol.Frame {
	c.t.Helper()
	return c.answer(c.post(method, params), 1)
}

// ok is call for a request that must succeed; the payload goes into out.
func (c *client) ok(method string, params, out any) {
	c.t.Helper()
	f := c.call(method, params)
	if !f.OK {
		c.t.Fatalf("%s: %v", method, f.Err)
	}
	into(c.t, f, out)
}

// fails is call for a request that must fail with a code and a piece of the message.
func (c *client) fails(method string, params any, code, message string) *protocol.Error {
	c.t.Helper()
	f := c.call(method, params)
	if f.OK || f.Err == nil || f.Err.Code != code || !strings.Contains(f.Err.Message, message) {
		c.t.Fatalf("%s: ok %v, %v; want %s with %q", method, f.OK, f.Err, code, message)
	}
	return f.Err
}

func into(t testing.TB, f protocol.Frame, out any) {
	t.Helper()
	if out != nil {
		if err := json.Unmarshal(f.Payload, out); err != nil {
			t.Fatalf("%s: %v", f.Payload, err)
		}
	}
}

func hello(secret string, more obj) obj {
	p := obj{
		"minProtocol": 4, "maxProtocol": 4, "auth": obj{"token": secret},
		"client": obj{"id": "test", "version": "1", "platform": "linux", "mode": "cli"},
	}
	for k, v := range more {
		p[k] = v
	}
	return p
}

type obj = map[string]any

// login is a connection that is ready.
func (w *world) login(secret string, more obj) *client {
	w.t.Helper()
	c := w.dial()
	c.ok("connect", hello(secret, more), nil)
	return c
}

// user is a ready connection of the default tenant with all scopes.
func (w *world) user() *client { return w.login(w.secret, nil) }

// scoped is a ready connection with some scopes only.
func (w *world) scoped(scopes ...string) *client {
	return w.login(w.secret, obj{"scopes": append([]string{}, scopes...)})
}

// stranger is a ready connection of another tenant.
func (w *world) stranger() *client {
	w.t.Helper()
	secret, err := w.tokens.Add(context.Background(), token.Grant{Tenant: "acme"})
	must(w.t, err)
	return w.login(secret, nil)
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func busyFast(s *wiring.Settings) { s.BusyWait = 50 * time.Millisecond }

func setBase(ref session.Ref, base int64) table.Op {
	return table.Op{Kind: table.Update, Key: ref.MetaKey(), If: table.Exists(), Set: []table.SetOp{{Path: table.P(session.AttrBase), Value: base}}}
}
