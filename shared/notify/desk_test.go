package notify_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/connection"
	"laneway/shared/lane"
	"laneway/shared/notify"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/wiring"
	"laneway/test/backends"
)

// desk is a service over a real store, with timers and a transport in the hands of a
// test, and a clock that it moves.
type desk struct {
	t     *testing.T
	store table.Store
	clock *clocktest.Manual
	core  *wiring.Core

	mu     sync.Mutex
	timers []alarm
	posted []posted
	order  []string                        // timers and writes, as they came
	post   func(push.Target, []byte) error // what becomes of a post; nil: it arrives
}

type alarm struct {
	due  time.Time
	body []byte
}

type posted struct {
	to    string
	frame string
}

func newDesk(t *testing.T, store table.Store) *desk {
	t.Helper()
	d := &desk{t: t, store: store, clock: clocktest.New()}
	d.clock.Short = 0
	d.core = d.process(store)
	return d
}

// process is another process over the same tables.
func (d *desk) process(store table.Store) *wiring.Core {
	d.t.Helper()
	core, err := wiring.Build(
		wiring.Ports{Store: watched{store, d}, Queue: d, Timers: d, Poster: d},
		wiring.Settings{Clock: d.clock, Log: slog.New(slog.DiscardHandler)})
	must(d.t, err)
	return core
}

// watched notes what is done to waiters.
type watched struct {
	table.Store
	d *desk
}

func (w watched) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	if strings.HasPrefix(ops[0].Key.SK, "W#") {
		w.d.note("row")
	}
	return w.Store.Write(ctx, ops...)
}

func (w watched) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if k.SK == "STATUS" {
		w.d.note("status")
	}
	return w.Store.Get(ctx, k)
}

func (d *desk) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.order = append(d.order, what)
}

func (d *desk) Send(context.Context, queue.Lane, string, string, []byte) error { return nil }

func (d *desk) After(_ context.Context, delay time.Duration, body []byte) error {
	if err := queue.CheckDelay(delay); err != nil {
		return err
	}
	if err := queue.CheckBody(body); err != nil {
		return err
	}
	d.note("timer")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timers = append(d.timers, alarm{d.clock.Now().Add(delay), body})
	return nil
}

func (d *desk) Post(_ context.Context, to push.Target, frame []byte) error {
	if d.post != nil {
		if err := d.post(to, frame); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.posted = append(d.posted, posted{to.ConnectionID, string(frame)})
	return nil
}

func (d *desk) Close(context.Context, push.Target) error { return nil }

// due takes the timers whose time has come.
func (d *desk) due() []alarm {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []alarm
	now := d.clock.Now()
	d.timers = slices.DeleteFunc(d.timers, func(a alarm) bool {
		if a.due.After(now) {
			return false
		}
		out = append(out, a)
		return true
	})
	return out
}

// pass lets time go by, timers firing as it does.
func (d *desk) pass(span time.Duration) {
	d.t.Helper()
	for end := d.clock.Now().Add(span); ; {
		for _, a := range d.due() {
			must(d.t, d.core.Notify.HandleTimer(d.t.Context(), a.body))
		}
		left := end.Sub(d.clock.Now())
		if left <= 0 {
			return
		}
		d.clock.Advance(min(left, time.Second))
	}
}

// armed is how many timers wait.
func (d *desk) armed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.timers)
}

func (d *desk) connect(id string) run.Waiter {
	d.t.Helper()
	must(d.t, d.core.Connections.Open(d.t.Context(), connection.Row{ID: id, Nonce: "n"}))
	must(d.t, d.core.Connections.Ready(d.t.Context(), id, connection.Principal{Tenant: session.DefaultTenant}, connection.Client{}))
	return run.Waiter{ConnectionID: id, RequestID: "q-" + id}
}

// told is the replies that a connection has got, ticks and events left out.
func (d *desk) told(id string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, p := range d.posted {
		if p.to == id && strings.Contains(p.frame, `"type":"res"`) {
			out = append(out, p.frame)
		}
	}
	return out
}

func (d *desk) ticks(id string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, p := range d.posted {
		if p.to == id && strings.Contains(p.frame, `"event":"tick"`) {
			n++
		}
	}
	return n
}

var theRun = run.RefOf(session.DefaultTenant, "r1")

// accept makes the run r1, which waits.
func (d *desk) accept(change ...func(*run.Status)) {
	d.t.Helper()
	st := run.Status{
		Ref: theRun, RunID: "r1", SessionKey: "agent:main:w", AgentID: "main", Method: "agent", RequestHash: "h",
		Input: run.Input{Message: "m"},
	}
	for _, f := range change {
		f(&st)
	}
	_, err := d.core.Lanes.Accept(d.t.Context(), lane.Call{Run: st})
	must(d.t, err)
}

// end ends r1, which has not begun. Nobody is told by it.
func (d *desk) end() {
	d.t.Helper()
	ok, err := d.core.Lanes.StopRun(d.t.Context(), lane.Stop{Ref: session.Ref{Tenant: session.DefaultTenant, Key: "agent:main:w"}, RunID: "r1", Reason: "rpc"})
	must(d.t, err)
	if !ok {
		d.t.Fatal("not ended")
	}
}

// endOf ends a run of its own session, and tells its end.
func (d *desk) endOf(id string) {
	d.t.Helper()
	ok, err := d.core.Lanes.StopRun(d.t.Context(), lane.Stop{Ref: session.Ref{Tenant: session.DefaultTenant, Key: "agent:main:w" + id}, RunID: "r1" + id, Reason: "rpc"})
	must(d.t, err)
	if !ok {
		d.t.Fatal("not ended")
	}
	st, err := run.Load(d.t.Context(), d.store, run.RefOf(session.DefaultTenant, "r1"+id))
	must(d.t, err)
	_, err = d.core.Notify.Finish(d.t.Context(), st)
	must(d.t, err)
}

// finish tells r1's end as a settler does.
func (d *desk) finish(s *notify.Service) bool {
	d.t.Helper()
	st, err := run.Load(d.t.Context(), d.store, theRun)
	must(d.t, err)
	held, err := s.Finish(d.t.Context(), st)
	must(d.t, err)
	return held
}

func (d *desk) wait(w run.Waiter, runID string, window time.Duration) string {
	d.t.Helper()
	frame, err := d.core.Notify.Wait(d.t.Context(), run.RefOf(session.DefaultTenant, runID), runID, w, window)
	must(d.t, err)
	return string(frame)
}

func status(t *testing.T, frame string) string {
	t.Helper()
	var f struct {
		ID      string `json:"id"`
		OK      bool   `json:"ok"`
		Payload struct {
			RunID  string `json:"runId"`
			Status string `json:"status"`
		} `json:"payload"`
	}
	must(t, json.Unmarshal([]byte(frame), &f))
	return f.Payload.Status
}

const expired = `"payload":{"runId":"r1","status":"timeout"}`

// onBolt is for what does not depend on the store.
func onBolt(t *testing.T, f func(d *desk)) {
	t.Helper()
	f(newDesk(t, backends.Bolt(t)))
}
