package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laneway/functions/adapter"
	"laneway/shared/blob/dir"
	"laneway/shared/claim"
	"laneway/shared/clock/clocktest"
	"laneway/shared/connection"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/push"
	"laneway/shared/push/local"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
	"laneway/shared/transcript"
	"laneway/shared/wiring"
	"laneway/test/backends"
)

// theStore is the tables that tests run over: those of the endpoint where the
// environment names one, else a file.
func theStore(t *testing.T) table.Store {
	t.Helper()
	if os.Getenv("AWS_ENDPOINT_URL") != "" {
		return backends.Dynamo(t)
	}
	return backends.Bolt(t)
}

func TestBackend_DynamoDB(t *testing.T) {
	t.Parallel()
	backends.Dynamo(t) // says by name that all tests of the turn ran over a file only
}

// world is a stack without anybody who serves it: processes are made, killed and
// frozen by the test, wake-ups are delivered by it, and its clock stands still.
type world struct {
	t     *testing.T
	store table.Store
	clock *clocktest.Manual
	box   *box
	conns *local.Registry
	blobs *dir.Store
	model *fakeModel
	tools *tool.Registry
	log   *logs
	gw    *process // accepts; it is never killed
}

func newWorld(t *testing.T, tools ...tool.Tool) *world {
	t.Helper()
	w := &world{t: t, store: theStore(t), clock: clocktest.New(), conns: local.New(local.Config{}), model: newFakeModel(), log: &logs{}}
	w.box = &box{clock: w.clock}
	var err error
	w.blobs, err = dir.Open(dir.Config{Path: t.TempDir()})
	must(t, err)
	w.tools, err = tool.NewRegistry(tools...)
	must(t, err)
	w.gw = w.process(nil)
	t.Cleanup(func() {
		w.model.release()
		must(t, w.blobs.Close())
	})
	return w
}

// process is a function's process: with a store, a queue and a poster that fail from
// the moment on that it is killed, and a clock of its own if it can be frozen.
type process struct {
	w      *world
	clock  *clocktest.Manual
	store  *faulty.Store
	core   *wiring.Core
	runner *loop.Runner
	dead   atomic.Bool
	posts  func(push.Target, []byte) error // what becomes of a post; nil: it is made

	still   sync.RWMutex // held by posts that are under way
	stopped bool         // nothing of the process moves
}

// freeze stops the posts of a process that stands still; what is under way is made.
func (p *process) freeze(stopped bool) {
	p.still.Lock()
	defer p.still.Unlock()
	p.stopped = stopped
}

// process starts one. at is asked before each call of its store.
func (w *world) process(at func(faulty.Call) faulty.Fault, set ...func(*process, *wiring.Settings, *wiring.RunnerConfig)) *process {
	w.t.Helper()
	p := &process{w: w, clock: w.clock}
	p.store = faulty.New(w.store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
		if p.dead.Load() {
			return faulty.DieBefore
		}
		if at == nil {
			return faulty.None
		}
		f := at(c)
		if f == faulty.DieBefore || f == faulty.DieAfter {
			p.dead.Store(true)
		}
		return f
	}})
	s := wiring.Settings{Clock: p.clock, Log: slog.New(slog.NewTextHandler(w.log, nil)), Pacing: -1}
	rc := wiring.RunnerConfig{Models: w, Agents: w, Retry: retry.Config{Rand: func() float64 { return 0.5 }}}
	for _, f := range set {
		f(p, &s, &rc)
	}
	s.Clock = p.clock
	var err error
	p.core, err = wiring.Build(wiring.Ports{Store: p.store, Queue: mail{p}, Timers: mail{p}, Poster: poster{p}, Blobs: w.blobs}, s)
	must(w.t, err)
	p.runner, err = p.core.Runner(rc)
	must(w.t, err)
	return p
}

// kill ends the process as a machine does that loses its power.
func (p *process) kill() { p.dead.Store(true) }

// frozen is an option: the process has a clock of its own, which stands still.
func frozen(p *process, _ *wiring.Settings, _ *wiring.RunnerConfig) {
	p.clock = clocktest.At(p.w.clock.Now())
}

// mail is a process's way to the queue, poster its way to connections.
type mail struct{ p *process }

func (m mail) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	if m.p.dead.Load() {
		return queue.ErrClosed
	}
	return m.p.w.box.Send(ctx, lane, group, dedup, body)
}

func (m mail) After(ctx context.Context, delay time.Duration, body []byte) error {
	if m.p.dead.Load() {
		return queue.ErrClosed
	}
	return m.p.w.box.After(ctx, delay, body)
}

type poster struct{ p *process }

func (o poster) Post(ctx context.Context, to push.Target, frame []byte) error {
	if o.p.dead.Load() {
		return push.ErrGone // as good as anything: nobody hears the answer
	}
	o.p.still.RLock()
	defer o.p.still.RUnlock()
	if o.p.stopped {
		return push.ErrFailed
	}
	if o.p.posts != nil {
		if err := o.p.posts(to, frame); err != nil {
			return err
		}
	}
	return o.p.w.conns.Post(ctx, to, frame)
}

func (o poster) Close(ctx context.Context, to push.Target) error { return o.p.w.conns.Close(ctx, to) }

// logs is a log that can be searched.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

// The world is who answers: its model, its tools.

func (w *world) Select(context.Context, run.Input, session.Entry) (model.Selected, error) {
	return model.Selected{Provider: w.model, Name: "fake", Model: "fake-1", Endpoint: model.Local, ContextWindow: 100_000}, nil
}

func (w *world) Prompt(context.Context, loop.PromptInput) (string, error) { return "system", nil }

func (w *world) Tools(context.Context, *tool.Scope) (*tool.Registry, error) { return w.tools, nil }

// connect makes a ready connection.
func (w *world) connect(caps ...string) *client {
	w.t.Helper()
	c := &client{id: "conn-" + id.UUID()[:8], more: make(chan struct{})}
	conns := w.gw.core.Connections
	must(w.t, conns.Open(w.t.Context(), connection.Row{ID: c.id, Nonce: "n"}))
	must(w.t, conns.Ready(w.t.Context(), c.id, connection.Principal{Tenant: session.DefaultTenant}, connection.Client{Caps: caps}))
	w.conns.Register(c.id, c)
	return c
}

var ref = session.Ref{Tenant: session.DefaultTenant, Key: key}

func status(c *client, runID, text string) run.Status {
	return run.Status{
		Ref: run.RefOf(session.DefaultTenant, runID), RunID: runID, SessionKey: key, AgentID: "main", Method: "agent", RequestHash: runID + text,
		Origin: &run.Waiter{ConnectionID: c.id, RequestID: "req-" + runID, Kind: run.WaitFinal},
		Input:  run.Input{Message: text},
	}
}

// accept accepts an agent run of a client.
func (w *world) accept(c *client, runID, text string, change ...func(*run.Status)) {
	w.t.Helper()
	st := status(c, runID, text)
	for _, f := range change {
		f(&st)
	}
	_, err := w.gw.core.Lanes.Accept(w.t.Context(), lane.Call{Run: st})
	must(w.t, err)
}

// steer puts a message into the active run's mailbox; false: it could not.
func (w *world) steer(c *client, runID, text string) bool {
	w.t.Helper()
	st := status(c, runID, text)
	st.Input.QueueMode = "steer"
	_, ok, err := w.gw.core.Lanes.Steer(w.t.Context(), lane.Call{Run: st})
	must(w.t, err)
	return ok
}

func (w *world) stop(runID string) bool {
	w.t.Helper()
	ok, err := w.gw.core.Lanes.StopRun(w.t.Context(), lane.Stop{Ref: ref, RunID: runID, Reason: "rpc"})
	must(w.t, err)
	return ok
}

func (w *world) stopAll() {
	w.t.Helper()
	_, err := w.gw.core.Lanes.StopAll(w.t.Context(), lane.Stop{Ref: ref, Reason: "stop"})
	must(w.t, err)
}

func (w *world) meta() session.Meta {
	w.t.Helper()
	m, err := session.LoadMeta(w.t.Context(), w.store, ref)
	must(w.t, err)
	return m
}

func (w *world) status(runID string) run.Status {
	w.t.Helper()
	st, err := run.Load(w.t.Context(), w.store, run.RefOf(session.DefaultTenant, runID))
	must(w.t, err)
	return st
}

func (w *world) rows() []transcript.Entry {
	w.t.Helper()
	m := w.meta()
	rows, err := (&transcript.Log{Store: w.store, Blobs: w.blobs}).Range(w.t.Context(), ref, m.SessionID, 1, m.Head)
	must(w.t, err)
	return rows
}

// deliver hands a letter to a process, as the queue does: a panic is an error.
func (p *process) deliver(l letter) error {
	m := queue.Message{ID: "m", Lane: l.lane, Group: l.group, Body: l.body, Receives: 1}
	h := adapter.Wake(p.runner)
	if l.timer {
		h = func(ctx context.Context, m queue.Message) error { return p.core.Notify.HandleTimer(ctx, m.Body) }
	}
	return queue.Call(p.w.t.Context(), h, m)
}

// in is deliver of a wake-up in an invocation with a context.
func (p *process) in(ctx context.Context, l letter) error {
	return queue.Call(ctx, adapter.Wake(p.runner), queue.Message{Body: l.body})
}

// handle is deliver of a wake-up in an invocation that ends at a time.
func (p *process) handle(l letter, deadline time.Time) error {
	wake, err := lane.ParseWakeup(l.body)
	must(p.w.t, err)
	return queue.Call(p.w.t.Context(), func(ctx context.Context, _ queue.Message) error { return p.runner.Handle(ctx, wake, deadline) }, queue.Message{})
}

// invocation is a delivery that is under way.
type invocation struct {
	t   *testing.T
	err chan error
}

func (p *process) begin(f func() error) *invocation {
	i := &invocation{p.w.t, make(chan error, 1)}
	go func() { i.err <- f() }()
	return i
}

func (i *invocation) wait() error {
	i.t.Helper()
	select {
	case err := <-i.err:
		return err
	case <-time.After(within):
		i.t.Fatal("the invocation does not end")
		return nil
	}
}

// next gives the one wake-up that is due.
func (w *world) next() letter {
	w.t.Helper()
	l := w.box.take()
	if len(l) != 1 || l[0].timer {
		w.t.Fatalf("%d letters are due, want one wake-up: %+v", len(l), l)
	}
	return l[0]
}

// start delivers the one wake-up that is due, in the background.
func (p *process) start() *invocation {
	p.w.t.Helper()
	l := p.w.next()
	return p.begin(func() error { return p.deliver(l) })
}

// serve is a process that serves until nothing is left to do in the session: it gets
// what is due, failed letters again, and the sweep every 20 seconds.
func (p *process) serve() session.Meta {
	p.w.t.Helper()
	w := p.w
	limit := w.clock.Now().Add(time.Hour)
	lastSweep := w.clock.Now()
	for {
		due := w.box.take()
		for _, l := range due {
			if err := p.deliver(l); err != nil {
				if p.dead.Load() {
					w.t.Fatalf("a dead process serves: %v", err)
				}
				w.box.back(l)
			}
		}
		m := w.meta()
		if m.Exists() && !m.Busy && len(due) == 0 {
			return m
		}
		if len(due) > 0 {
			continue
		}
		w.clock.Advance(time.Second)
		if w.clock.Now().Sub(lastSweep) >= 20*time.Second {
			lastSweep = w.clock.Now()
			_, err := p.core.Lanes.Sweep(w.t.Context())
			must(w.t, err)
		}
		if w.clock.Now().After(limit) {
			w.t.Fatalf("the session stays busy: %+v", m)
		}
	}
}

// pass lets time go by while an invocation is at work, in steps in which its holder
// looks, renews, and waits again. n is how many waits are on the clock at least.
func (w *world) pass(d time.Duration, n int) {
	w.t.Helper()
	const step = 700 * time.Millisecond
	w.clock.Waiting(w.t, n)
	for ; d > 0; d -= step {
		before := w.clock.Armed()
		w.clock.Advance(min(step, d))
		for end := time.Now().Add(within); d >= step && w.clock.Armed() == before; {
			<-time.After(50 * time.Microsecond)
			if time.Now().After(end) {
				w.t.Fatal("the holder does not look again")
			}
		}
	}
}

// until lets time go by until an invocation has ended, and says how much it was.
func (w *world) until(i *invocation) time.Duration {
	w.t.Helper()
	begun := w.clock.Now()
	patience := time.Now().Add(within / 4) // for holders that are dead, and renew nothing
	for n, end := 1, time.Now().Add(within); len(i.err) == 0; n++ {
		if n%10 == 0 {
			for w.renewalIsDue() && len(i.err) == 0 && time.Now().Before(patience) {
				<-time.After(time.Millisecond)
			}
		}
		w.clock.Advance(100 * time.Millisecond)
		<-time.After(100 * time.Microsecond)
		if time.Now().After(end) {
			w.t.Fatal("the invocation does not end")
		}
	}
	must(w.t, i.wait())
	return w.clock.Now().Sub(begun)
}

// renewalIsDue says that the holder of the claim should have renewed it by now: where the
// machine is slow, the clock must not run away from it.
func (w *world) renewalIsDue() bool {
	w.t.Helper()
	times, m := claim.Times{}.WithDefaults(), w.meta()
	return m.Owner != "" && m.Lease.Sub(w.clock.Now()) < times.Lease-times.Renew-2*time.Second
}

// dump is everything that the tables hold of the session and of runs.
func (w *world) dump(runs ...string) []table.Item {
	w.t.Helper()
	m := w.meta()
	var out []table.Item
	q := []table.Query{{Table: table.Sessions, PK: ref.PK()}, {Table: table.Sessions, PK: ref.TranscriptPK(m.SessionID)}}
	for _, r := range runs {
		q = append(q, table.Query{Table: table.Runs, PK: run.RefOf(session.DefaultTenant, r).PK()})
	}
	for _, q := range q {
		for {
			page, err := w.store.Query(w.t.Context(), q)
			must(w.t, err)
			out = append(out, page.Items...)
			if q.After = page.Next; page.Next == "" {
				break
			}
		}
	}
	return out
}

// fakeTool counts what it really does.
type fakeTool struct {
	spec tool.Spec
	run  func(ctx context.Context, call tool.Call) (tool.Result, error) // nil: says done

	mu    sync.Mutex
	calls []tool.Call
}

func newTool(name string, effect tool.Effect) *fakeTool {
	return &fakeTool{spec: tool.Spec{Name: name, Description: name, Effect: effect, Schema: json.RawMessage(`{"type":"object"}`)}}
}

func (f *fakeTool) Spec() tool.Spec { return f.spec }

func (f *fakeTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	if f.run != nil {
		return f.run(ctx, call)
	}
	return tool.TextResult("done " + call.ID), nil
}

func (f *fakeTool) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// isRow says whether a Write puts a transcript row of a kind, and isTerminal whether it
// ends a run.
func isTerminal(ops []table.Op) bool {
	return slices.ContainsFunc(ops, func(o table.Op) bool {
		return slices.ContainsFunc(o.Set, func(s table.SetOp) bool { return s.Path == table.P(run.AttrOutcome) })
	})
}

func ledgerOps(ops []table.Op) (n int) {
	for _, o := range ops {
		if strings.HasPrefix(o.Key.SK, "C#") {
			n++
		}
	}
	return n
}

func transcriptOps(ops []table.Op) (n int) {
	for _, o := range ops {
		if strings.Contains(o.Key.PK, "#T#") {
			n++
		}
	}
	return n
}

// onWrite makes a hook of f for writes; it is asked once for each.
func onWrite(f func(n int, ops []table.Op) faulty.Fault) func(faulty.Call) faulty.Fault {
	n := atomic.Int64{}
	return func(c faulty.Call) faulty.Fault {
		if c.Ops == nil {
			return faulty.None
		}
		return f(int(n.Add(1)-1), c.Ops)
	}
}

// lost is the times after which a claim is dead for everybody.
var lost = claim.Times{}.WithDefaults().Lease + claim.Times{}.WithDefaults().Slack + time.Second

// reply is the one final answer to a run that a client has got.
func (w *world) reply(c *client, runID string) map[string]any {
	w.t.Helper()
	got := c.all(func(f map[string]any) bool { return f["type"] == "res" && f["id"] == "req-"+runID })
	if len(got) != 1 {
		w.t.Fatalf("%d finals of %s: %s", len(got), runID, c.dump())
	}
	return got[0]
}

func text(f map[string]any) string { return str(f, "payload.result.payloads.0.text") }
