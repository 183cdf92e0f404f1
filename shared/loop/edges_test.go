package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
)

// TestF30b_AMessageThatAlwaysPanics: its wake-up fails three times and becomes a dead
// letter, which nobody brings again. The watchdog finds the work, the run ends with an
// error that says why, and the next message runs.
func TestF30b_AMessageThatAlwaysPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.by(func(r model.Request) answerFunc {
		if r.Messages[len(r.Messages)-1].Content[0].Text == "next" {
			return say("fine")
		}
		return func(context.Context, model.Request, func(model.Part, error) bool) { panic("scripted") }
	})
	c := w.connect()
	w.accept(c, "r1", "hi")
	dead := w.next()
	for range 3 { // as often as a lane gives it
		if err := w.process(nil).deliver(dead); err == nil {
			break // the run was ended before
		}
		w.clock.Advance(lost)
	}
	w.box.lose()
	w.accept(c, "r2", "next")
	w.box.lose()
	w.process(nil).serve()
	st := w.status("r1")
	if st.Outcome == nil || st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind == "" {
		t.Fatalf("ended %+v", st.Outcome)
	}
	if f := w.reply(c, "r1"); f["ok"] != false || str(f, "error.message") == "" {
		t.Errorf("final %v", f)
	}
	if text(w.reply(c, "r2")) != "fine" {
		t.Errorf("the next message: %v", w.reply(c, "r2"))
	}
}

// TestF30c_ATimeoutAndThreeRedeliveries: the function ends behind an effect, and its
// message comes three times more, once beside the claim that still looks alive. The run
// is begun once, the effect and the step before it are not made again.
func TestF30c_ATimeoutAndThreeRedeliveries(t *testing.T) {
	t.Parallel()
	var p *process
	act := newTool("act", tool.Unsafe)
	w := newWorld(t, act)
	act.run = func(context.Context, tool.Call) (tool.Result, error) {
		p.kill()
		return tool.TextResult("done"), nil
	}
	w.model.on(callTools(block("a", "act")), say("the outcome is not known"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	wake := w.next()
	p = w.process(nil)
	if p.deliver(wake) == nil {
		t.Fatal("a dead process acknowledged")
	}
	must(t, w.process(nil).deliver(wake)) // acknowledged: somebody may be at work
	if n := len(w.model.calls()); n != 1 {
		t.Fatalf("%d model calls beside a live claim", n)
	}
	w.clock.Advance(lost)
	for range 2 {
		must(t, w.process(nil).deliver(wake))
	}
	w.process(nil).serve()
	st := w.status("r1")
	if st.Outcome.Kind != run.OK || st.Attempt != 2 || st.Outcome.Steps != 2 || act.count() != 1 || len(w.model.calls()) != 2 {
		t.Errorf("%+v, %d attempts, %d effects, %d model calls", st.Outcome, st.Attempt, act.count(), len(w.model.calls()))
	}
	if got := w.users(); !slices.Equal(got, []string{"hi"}) {
		t.Errorf("messages %q", got)
	}
	w.reply(c, "r1")
	if m, err := session.LoadMeta(t.Context(), w.store, ref); err != nil || m.Busy {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestF30d_GoneConnectionIsRemovedOnceAndTheRunGoesOn: a subscriber's connection is gone
// in the middle of a turn. Its row and subscription are removed, nobody posts to it
// again, the run ends, and the other connection has every event.
func TestF30d_GoneConnectionIsRemovedOnceAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newTool("read", tool.ReadOnly))
	w.model.on(callTools(block("a", "read")), say("the ", "end"))
	c, gone := w.connect("tool-events"), w.connect("tool-events")
	must(t, w.gw.core.Connections.Subscribe(t.Context(), gone.id, key))
	posts, removed := atomic.Int64{}, atomic.Int64{}
	p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		for _, o := range ops {
			if o.Kind == table.Delete && o.Key.Table == table.Connections && o.Key.PK == gone.id {
				removed.Add(1)
			}
		}
		return faulty.None
	}))
	p.posts = func(to push.Target, _ []byte) error {
		if to.ConnectionID == gone.id && posts.Add(1) > 1 {
			return push.ErrGone
		}
		return nil
	}
	w.accept(c, "r1", "hi")
	must(t, p.start().wait())
	p.serve()
	if n := posts.Load(); n != 2 || removed.Load() != 1 {
		t.Errorf("%d posts to a connection that is gone, removed %d times", n, removed.Load())
	}
	if _, err := w.store.Get(t.Context(), table.Key{Table: table.Connections, PK: gone.id, SK: "META"}); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("its row: %v", err)
	}
	if text(w.reply(c, "r1")) != "the end" || w.status("r1").Outcome.Kind != run.OK {
		t.Errorf("told %s", c.dump())
	}
	last := float64(0)
	for _, f := range c.all(event("agent", "", "")) {
		seq, _ := f["payload"].(map[string]any)["seq"].(float64)
		if seq != last+1 {
			t.Errorf("%v came behind %v", seq, last)
		}
		last = seq
	}
}

// TestF30g_NumbersWithoutGapOrInversionAtRandomLatency: each post takes another time.
// There is one under way for each connection, and a connection sees numbers that grow by
// one. Of two, the one that falls behind may get several deltas of text as one (S3):
// then its number is the last one's, no other event and nothing of the text is missing.
func TestF30g_NumbersWithoutGapOrInversionAtRandomLatency(t *testing.T) {
	t.Parallel()
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprint("two connections: ", two), func(t *testing.T) {
			t.Parallel()
			randomLatency(t, two)
		})
	}
}

func randomLatency(t *testing.T, two bool) {
	t.Helper()
	w := newWorld(t, newTool("read", tool.ReadOnly))
	var words []string
	for n := range 200 {
		words = append(words, fmt.Sprint(n, " "))
	}
	w.model.on(callTools(block("a", "read")), say(words...))
	clients := []*client{w.connect("tool-events")}
	if two {
		clients = append(clients, w.connect("tool-events"))
		must(t, w.gw.core.Connections.Subscribe(t.Context(), clients[1].id, key))
	}
	underWay := make(map[string]*atomic.Int64)
	for _, c := range clients {
		underWay[c.id] = &atomic.Int64{}
	}
	p := w.process(nil)
	p.posts = func(to push.Target, _ []byte) error {
		if underWay[to.ConnectionID].Add(1) > 1 {
			t.Error("two posts at once to one connection")
		}
		defer underWay[to.ConnectionID].Add(-1)
		<-time.After(rand.N(3 * time.Millisecond))
		return nil
	}
	w.accept(clients[0], "r1", "hi")
	must(t, p.start().wait())
	p.serve()
	var others [2][]float64 // events that are no text, by client
	for i, c := range clients {
		last, shown := float64(0), ""
		for _, f := range c.all(event("agent", "", "")) {
			seq, _ := f["payload"].(map[string]any)["seq"].(float64)
			if seq != last+1 && (!two || seq <= last) {
				t.Errorf("%v (%s) came behind %v", seq, str(f, "payload.stream"), last)
			}
			last = seq
			if str(f, "payload.stream") == "assistant" {
				shown = str(f, "payload.data.text")
			} else {
				others[i] = append(others[i], seq)
			}
		}
		if shown != strings.Join(words, "") {
			t.Errorf("shown %q", shown)
		}
	}
	if two && !slices.Equal(others[0], others[1]) {
		t.Errorf("one got %v, the other %v", others[0], others[1])
	}
}
