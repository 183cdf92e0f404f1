package loop_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/token"
	"laneway/shared/transcript"
)

// keys is the tokens of a world.
func (w *world) keys() *token.Store { return &token.Store{Table: w.store, Clock: w.clock} }

// token makes a token and gives its id.
func (w *world) token(g token.Grant) string {
	w.t.Helper()
	secret, err := w.keys().Add(w.t.Context(), g)
	must(w.t, err)
	g, err = w.keys().Check(w.t.Context(), secret)
	must(w.t, err)
	return g.ID
}

func (w *world) remove(id string) {
	w.t.Helper()
	must(w.t, w.keys().Remove(w.t.Context(), id))
}

// by makes a run depend on a token.
func by(id string) func(*run.Status) { return func(st *run.Status) { st.Token = id } }

// revoked fails where a run did not end as one whose token is gone, or began.
func (w *world) revoked(runID string, began bool) {
	w.t.Helper()
	st := w.status(runID)
	if o := st.Outcome; o == nil || o.Kind != run.Aborted || o.StopReason != "auth-revoked" || o.ProviderStarted != began {
		w.t.Errorf("%s ended as %+v", runID, o)
	}
	said := slices.ContainsFunc(w.rows(), func(e transcript.Entry) bool { return e.RunID == runID })
	if said != began {
		w.t.Errorf("%s has rows in the conversation: %v", runID, said)
	}
}

// TestRuntime55_AuthRevoked_ARunThatIsAtWork: row "authority revoked while running".
func TestRuntime55_AuthRevoked_ARunThatIsAtWork(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		expires time.Duration
		after   func(w *world, id string)
	}{
		{"its token is removed", 0, func(w *world, id string) { w.remove(id) }},
		{"its token expires in mid-run", 8 * time.Second, func(*world, string) {}},
		{"removed, and known to be there just before", 0, func(w *world, id string) {
			w.pass(10500*time.Millisecond, 1)
			w.remove(id)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(hold(nil, "so far", "never"), say("next"))
			g := token.Grant{}
			if row.expires > 0 {
				g.Expires = w.clock.Now().Add(row.expires)
			}
			id := w.token(g)
			c := w.connect()
			w.accept(c, "r1", "hi", by(id), func(st *run.Status) { st.Method, st.Origin.Kind = "chat.send", run.WaitNone })
			p := w.process(nil)
			i := p.start()
			<-w.model.asked
			c.until(t, "its words", event("chat", "", "delta"))
			w.accept(c, "r2", "waits") // of somebody else
			row.after(w, id)
			if took := w.until(i); took >= 2*token.LookEvery {
				t.Errorf("it went on for %s", took)
			}
			w.revoked("r1", true)
			rows := w.rows()
			want := transcript.Abort{Aborted: true, Origin: "auth-revoked", RunID: "r1"}
			if last := rows[len(rows)-1]; last.Text() != "so far" || last.Abort == nil || *last.Abort != want {
				t.Errorf("partial text: %+v", last)
			}
			ends, chats := c.all(event("agent", "lifecycle", "end")), c.all(event("chat", "", "aborted"))
			if len(ends) != 1 || str(ends[0], "payload.data.stopReason") != "auth-revoked" || str(ends[0], "payload.data.status") != "cancelled" {
				t.Errorf("lifecycle: %v", ends)
			}
			if len(chats) != 1 || str(chats[0], "payload.stopReason") != "auth-revoked" || str(chats[0], "payload.message.content.0.text") != "so far" {
				t.Errorf("chat event: %v", chats)
			}
			p.serve()
			if st := w.status("r2"); st.Outcome == nil || st.Outcome.Kind != run.OK {
				t.Errorf("the next run: %+v", st.Outcome)
			}
		})
	}
}

// A run that waits when its token goes never begins, and the lane goes on.
func TestRuntime55_AuthRevoked_ARunThatWaits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		wait func(w *world, id string) // before anybody takes the wake-ups
	}{
		{"behind another run", func(w *world, id string) {
			w.accept(w.connect(), "r0", "first")
			w.accept(w.connect(), "r1", "hi", by(id))
		}},
		{"for a runner", func(w *world, id string) {
			w.accept(w.connect(), "r1", "hi", by(id))
			w.clock.Advance(token.LookEvery)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(say("one"), say("two"))
			id := w.token(token.Grant{})
			row.wait(w, id)
			w.remove(id)
			w.accept(w.connect(), "r2", "next")
			w.process(nil).serve()
			w.revoked("r1", false)
			if st := w.status("r2"); st.Outcome.Kind != run.OK {
				t.Errorf("the next run: %+v", st.Outcome)
			}
			for _, call := range w.model.calls() {
				for _, m := range call.Messages {
					if slices.ContainsFunc(m.Content, func(b model.Block) bool { return b.Text == "hi" }) {
						t.Error("the model was told what a revoked token had to say")
					}
				}
			}
		})
	}
}

// An attempt behind a crash looks before it does anything.
func TestRuntime55_AuthRevoked_ARunThatIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := make(chan struct{})
	w.model.on(hold(gate, "so far", ""), say("never"))
	id := w.token(token.Grant{})
	w.accept(w.connect(), "r1", "hi", by(id))
	p := w.process(nil)
	i := p.start()
	<-w.model.asked
	p.kill()
	close(gate)
	if i.wait() == nil {
		t.Fatal("a dead process acknowledged")
	}
	w.remove(id)
	w.box.lose()
	w.process(nil).serve()
	if st := w.status("r1"); st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != "auth-revoked" {
		t.Errorf("%+v", st.Outcome)
	}
	if n := len(w.model.calls()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// What was steered into a run by a token that is gone by then is not delivered, nor is
// it collected into another one's turn.
func TestRuntime55_AuthRevoked_WhatWouldJoinARun(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	w := newWorld(t)
	w.model.on(hold(gate, "first", ""), say("both"), say("rest"))
	gone, stays := w.token(token.Grant{}), w.token(token.Grant{})
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	i := p.start()
	<-w.model.asked
	for _, m := range [][2]string{{"s1", gone}, {"s2", stays}} {
		st := status(c, m[0], "steered "+m[0])
		st.Token = m[1]
		if _, ok, err := w.gw.core.Lanes.Steer(t.Context(), lane.Call{Run: st}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	w.remove(gone)
	close(gate)
	w.until(i)
	p.serve()
	w.revoked("s1", false)
	if st := w.status("s2"); st.Outcome == nil || st.Outcome.Kind != run.OK {
		t.Errorf("s2: %+v", st.Outcome)
	}

	rules := func(context.Context) (lane.Rules, error) {
		return lane.Rules{Mode: lane.Collect, Cap: 20, Drop: lane.DropNew}, nil
	}
	gone = w.token(token.Grant{})
	for _, m := range [][2]string{{"c0", ""}, {"c1", stays}, {"c2", gone}, {"c3", stays}} {
		st := status(c, m[0], "text of "+m[0])
		st.Token = m[1]
		_, err := w.gw.core.Lanes.Accept(t.Context(), lane.Call{Run: st, Rules: rules})
		must(t, err)
	}
	w.remove(gone)
	p.serve()
	w.revoked("c2", false)
	for _, id := range []string{"c1", "c3"} {
		if st := w.status(id); st.Outcome == nil || st.Outcome.Kind != run.OK {
			t.Errorf("%s: %+v", id, st.Outcome)
		}
	}
	for _, e := range w.rows() {
		if e.Role == model.User && (strings.Contains(e.Text(), "steered s1") || strings.Contains(e.Text(), "text of c2")) {
			t.Errorf("delivered: %q", e.Text())
		}
	}
}

// lookedAt counts the looks at tokens.
type lookedAt struct {
	table.Store
	n atomic.Int64
}

func (l *lookedAt) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if q.Table == table.Config && q.PK == "TOKENS" {
		l.n.Add(1)
	}
	return l.Store.Query(ctx, q)
}

// How often a token is looked at: not at all for a plain turn and for a run that depends on
// none, once in ten seconds for one that is at work.
func TestRuntime55_AuthRevoked_HowOftenATokenIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name        string
		token       bool
		lasts       time.Duration
		least, most int
	}{
		{"plain turn", true, 2 * time.Second, 0, 0},
		{"a minute and five seconds", true, 65 * time.Second, 4, 6},
		{"without a token", false, 65 * time.Second, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			w := newWorld(t)
			w.model.on(hold(gate, "so far", " and the rest"))
			looks := &lookedAt{Store: w.store}
			w.store = looks
			p := w.process(nil)
			id := ""
			if row.token {
				id = w.token(token.Grant{})
			}
			w.accept(w.connect(), "r1", "hi", by(id))
			i := p.start()
			<-w.model.asked
			w.pass(row.lasts, 1)
			close(gate)
			w.until(i)
			if st := w.status("r1"); st.Outcome.Kind != run.OK {
				t.Errorf("%+v", st.Outcome)
			}
			if n := int(looks.n.Load()); n < row.least || n > row.most {
				t.Errorf("%d looks, want %d to %d", n, row.least, row.most)
			}
			if m, err := session.LoadMeta(t.Context(), w.store, ref); err != nil || m.Busy {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// A summary of dropped messages depends on the token that all of them came with.
func TestRuntime55_AuthRevoked_ASummaryOfDroppedMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.token(token.Grant{}), w.token(token.Grant{})
	c := w.connect()
	rules := func(context.Context) (lane.Rules, error) {
		return lane.Rules{Mode: lane.Followup, Cap: 1, Drop: lane.DropSummarize}, nil
	}
	w.accept(c, "r0", "first")
	for _, m := range []struct{ id, token, summary string }{{"m1", a, "none"}, {"m2", a, a}, {"m3", b, a}, {"m4", b, ""}, {"m5", b, ""}} {
		st := status(c, m.id, "text of "+m.id)
		st.Token = m.token
		_, err := w.gw.core.Lanes.Accept(t.Context(), lane.Call{Run: st, Rules: rules})
		must(t, err)
		got := "none"
		for _, p := range w.meta().Pending {
			if strings.HasPrefix(p.Run, lane.SummaryPrefix) {
				got = w.status(p.Run).Token
			}
		}
		if got != m.summary {
			t.Errorf("behind %s the summary depends on %q, want %q", m.id, got, m.summary)
		}
	}
}
