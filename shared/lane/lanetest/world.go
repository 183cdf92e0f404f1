// Package lanetest is a world for tests of the durable core: lanes and claims over a
// real store, a queue in the hands of the test, a clock that the test moves, and ids
// that can be read. A turn of a run is reduced to what the rules say about it.
package lanetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock/clocktest"
	"laneway/shared/lane"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// World is what a test of the durable core has.
type World struct {
	T      testing.TB
	Store  table.Store // as the services see it
	Clock  *clocktest.Manual
	Queue  *Queue
	Lanes  *lane.Service
	Claims *claim.Service
	Ends   *Ends
	Log    *Log
	Ref    session.Ref // a session to use
	Times  claim.Times

	ids *atomic.Int64
}

// New makes a world over a store.
func New(t testing.TB, store table.Store) *World {
	t.Helper()
	w := &World{
		T: t, Clock: clocktest.New(), Ends: &Ends{}, Log: &Log{}, ids: &atomic.Int64{},
		Ref: session.Ref{Tenant: "acme", Key: "agent:main:chat"}, Times: claim.Times{}.WithDefaults(),
	}
	w.Queue = &Queue{Clock: w.Clock}
	w.Over(store)
	return w
}

// Over makes the services anew over a store: another process, with the same clock,
// queue and ids.
func (w *World) Over(store table.Store) {
	log := slog.New(slog.NewTextHandler(w.Log, nil))
	w.Store = store
	w.Lanes = lane.New(lane.Service{
		Store: store, Queue: w.Queue, Timers: w.Queue, Clock: w.Clock, NewID: w.NewID, Times: w.Times, Log: log,
	})
	w.Claims = claim.New(claim.Service{Store: store, Clock: w.Clock, NewID: w.NewID, Times: w.Times, Log: log})
}

// Process is another process over the same tables: it remembers nothing. A nil store
// is that of the world.
func (w *World) Process(store table.Store) *World {
	n := *w
	if store == nil {
		store = w.Store
	}
	n.Over(store)
	return &n
}

// Frozen is another process over the same tables, whose time stands still: whatever
// it holds is not renewed. Moving its Clock thaws it.
func (w *World) Frozen() *World {
	n := *w
	n.Clock = clocktest.At(w.Clock.Now())
	n.Over(w.Store)
	return &n
}

// NewID is a counting id source.
func (w *World) NewID() string { return fmt.Sprintf("id-%d", w.ids.Add(1)) }

// Ctx is the context of the test.
func (w *World) Ctx() context.Context { return w.T.Context() }

// Call is a call of the world's session under a run id.
func (w *World) Call(runID string) lane.Call {
	return lane.Call{Run: run.Status{
		Ref: run.RefOf(w.Ref.Tenant, runID), RunID: runID, SessionKey: w.Ref.Key, AgentID: "main", Method: "agent",
		RequestHash: "hash of " + runID, Input: run.Input{Message: "message of " + runID},
	}}
}

// Accept accepts a call that must be accepted.
func (w *World) Accept(runID string) lane.Accepted {
	w.T.Helper()
	acc, err := w.Lanes.Accept(w.Ctx(), w.Call(runID))
	w.must(err)
	return acc
}

// Meta reads the hot item.
func (w *World) Meta() session.Meta {
	w.T.Helper()
	m, err := session.LoadMeta(w.Ctx(), w.Store, w.Ref)
	w.must(err)
	return m
}

// Status reads a run's record.
func (w *World) Status(runID string) run.Status {
	w.T.Helper()
	st, err := run.Load(w.Ctx(), w.Store, run.RefOf(w.Ref.Tenant, runID))
	w.must(err)
	return st
}

// Start claims the pending run that is next.
func (w *World) Start() *claim.Holder {
	w.T.Helper()
	m := w.Meta()
	p, ok := m.Lowest()
	if !ok {
		w.T.Fatal("no run to start")
	}
	h, err := w.Claims.Start(w.Ctx(), m, p)
	w.must(err)
	w.T.Cleanup(h.Close)
	return h
}

// Resume claims the active run.
func (w *World) Resume() *claim.Holder {
	w.T.Helper()
	h, err := w.Claims.Resume(w.Ctx(), w.Meta())
	w.must(err)
	w.T.Cleanup(h.Close)
	return h
}

// Settle settles whatever the session shows, as the receiver of a wake-up does.
func (w *World) Settle() {
	w.T.Helper()
	w.must(w.Lanes.Settle(w.Ctx(), w.Meta(), w.Ends, "settle/"+w.NewID()))
}

// Expire lets the lease of whoever holds the claim run out.
func (w *World) Expire() { w.Clock.Advance(w.Times.Lease + w.Times.Slack + time.Millisecond) }

// Idle says whether the session has nothing left, and fails the test where the key of
// the active index says otherwise.
func (w *World) Idle() bool {
	w.T.Helper()
	m := w.Meta()
	if err := CheckMeta(&m); err != nil {
		w.T.Fatal(err)
	}
	return !m.Busy
}

func (w *World) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// CheckMeta finds what may never be seen in a hot item.
func CheckMeta(m *session.Meta) error {
	idle := m.Active == "" && len(m.Pending) == 0 && m.MailN == 0 && len(m.Unsettled) == 0
	for _, p := range m.Pending {
		if p.Seq > m.Seq {
			return fmt.Errorf("pending run %s has sequence %d of %d", p.Run, p.Seq, m.Seq)
		}
	}
	switch {
	case m.Busy == idle:
		return fmt.Errorf("key of the active index: %v, idle: %v: %+v", m.Busy, idle, *m)
	case m.Active != "" && m.ActiveSeq == 0:
		return fmt.Errorf("active run without its sequence: %+v", *m)
	case m.MailN < 0 || m.MailN > 0 && m.Active == "":
		return fmt.Errorf("%d undelivered messages beside active run %q", m.MailN, m.Active)
	case m.Cancel != "" && m.Cancel != m.Active:
		return fmt.Errorf("cancel mark of %q beside active run %q", m.Cancel, m.Active)
	}
	return nil
}

// Ends is a lane.Finisher that remembers whom it told.
type Ends struct {
	// Do, if set, is asked about each run first.
	Do func(run.Status) (held bool, err error)

	mu   sync.Mutex
	told []string
}

// Finish implements lane.Finisher.
func (e *Ends) Finish(_ context.Context, st run.Status) (bool, error) {
	if e.Do != nil {
		if held, err := e.Do(st); held || err != nil {
			return held, err
		}
	}
	if st.Outcome == nil {
		return false, errors.New("a run without an outcome is unsettled")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, st.RunID)
	return false, nil
}

// Told lists the runs whose ends were told.
func (e *Ends) Told() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.told...)
}

// Log is what the services wrote.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Count says how often a text was logged.
func (l *Log) Count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// Terminal is what ends a run (L3): its outcome, the run among the unsettled ones, the
// marks cleared, the claim released.
func Terminal(h *claim.Holder, at time.Time, o run.Outcome) claim.Tx {
	m := h.Meta()
	body, _ := json.Marshal(o)
	return claim.Tx{
		Release: true,
		AddTo:   []table.MemberOp{{Attr: session.AttrUnsettled, Members: table.Set{m.Active}}},
		Set: []table.SetOp{
			{Path: table.P(session.AttrUpdated), Value: at.UnixMilli()},
			{Path: table.P(session.AttrLastRun), Value: m.Active},
		},
		Remove: []table.Path{
			table.P(session.AttrActive), table.P(session.AttrActiveSeq), table.P(session.AttrActiveLn), table.P(session.AttrActiveAt),
			table.P(session.AttrAttempt), table.P(session.AttrStalled), table.P(session.AttrWake), table.P(session.AttrCancel), table.P(session.AttrCancelWhy),
		},
		Ops: []table.Op{{
			Kind: table.Update, Key: run.Ref{Tenant: m.Tenant, Run: m.Active}.StatusKey(), If: table.Lacks(table.P(run.AttrOutcome)),
			Set: []table.SetOp{
				{Path: table.P(run.AttrState), Value: string(run.Ended)},
				{Path: table.P(run.AttrOutcome), Value: body},
				{Path: table.P(run.AttrEnded), Value: at.UnixMilli()},
				{Path: table.P(table.TTLAttr), Value: at.Add(run.Keep).Unix()},
			},
		}},
	}
}

// End commits the terminal of a claimed run.
func (w *World) End(h *claim.Holder, kind run.OutcomeKind) {
	w.T.Helper()
	w.must(h.Commit(w.Ctx(), Terminal(h, w.Clock.Now(), run.Outcome{Kind: kind, StopReason: "stop"})))
}
