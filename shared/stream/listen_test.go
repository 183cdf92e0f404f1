package stream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/connection"
	"laneway/shared/stream"
	"laneway/shared/table"
)

func TestS5_NewSubscriberGetsTheWholeTextWithTheNextDelta(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		s := w.open(info("a"))
		s.Text("one ")
		pause(time.Second)
		c := w.connect("c", tenant)
		w.subscribe("c", sessKey)
		w.no(s.Refresh(t.Context()))
		if len(c.got) != 0 {
			t.Errorf("got %v before anything new was said", c.says())
		}
		s.Text("two")
		pause(time.Second)
		c.equal("2 chat:delta")
		if c.chat != "one two" || c.replaced != 1 || c.message != "one two" {
			t.Errorf("shows %q after %d replacements", c.chat, c.replaced)
		}
		s.Text(" three")
		pause(time.Second)
		if c.chat != "one two three" || c.replaced != 1 || a.text() != c.chat {
			t.Errorf("shows %q after %d replacements", c.chat, c.replaced)
		}
		w.no(w.conns.Unsubscribe(t.Context(), "c", sessKey))
		w.no(s.Refresh(t.Context()))
		s.Text(" four")
		w.commit(s.Prepare(stream.EndMessage(), finished))
		s.Close(t.Context())
		if len(c.got) != 2 {
			t.Errorf("got %v after it unsubscribed", c.says())
		}
		if a.text() != "one two three four" {
			t.Errorf("origin shows %q", a.text())
		}
	})
}

func TestS6_WhoGetsWhat(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		origin := w.connect("origin", tenant, stream.CapTools)
		plain := w.connect("plain", tenant) // subscribed, without the capability
		w.subscribe("plain", sessKey)
		wide := w.connect("wide", tenant, stream.CapTools)
		w.no(w.conns.SubscribeAll(t.Context(), "wide"))
		elsewhere := w.connect("elsewhere", tenant, stream.CapTools)
		w.subscribe("elsewhere", "agent:main:other")
		foreign := w.connect("foreign", "other", stream.CapTools)
		w.subscribe("foreign", sessKey)
		w.no(w.conns.SubscribeAll(t.Context(), "foreign"))
		idle := w.connect("idle", tenant, stream.CapTools)

		s := w.open(info("origin"))
		w.commit(s.Prepare(started))
		synctest.Wait()
		s.Thinking("hm")
		s.Text("x")
		synctest.Wait()
		w.commit(s.Prepare(stream.EndMessage(), toolStart("t")))
		s.Emit("item", obj{"kind": "tool"})
		s.Emit("command_output", obj{"output": "o"})
		s.Emit("usage", obj{"outputTokens": 1})
		w.commit(s.Prepare(finished, final("x")))
		s.Close(t.Context())

		origin.equal("1 lifecycle", "2 thinking", "3 assistant", "4 assistant", "5 tool", "6 item", "7 command_output", "8 usage", "9 lifecycle", "10 chat:final")
		wide.equal("1 lifecycle", "3 chat:delta", "4 assistant", "5 tool", "6 item", "7 command_output", "8 usage", "9 lifecycle", "10 chat:final")
		plain.equal("1 lifecycle", "3 chat:delta", "4 assistant", "8 usage", "9 lifecycle", "10 chat:final")
		for _, c := range []*client{elsewhere, foreign, idle} {
			c.equal()
		}
		for _, f := range origin.got {
			p := f.Payload
			if p.SessionKey != sessKey || p.AgentID != "main" || p.RunID != runID || p.Seq == 0 {
				t.Errorf("attribution of %s", f.raw)
			}
			if (p.Stream == "lifecycle") != (p.SessionID == "sid-1") {
				t.Errorf("sessionId in %s", f.raw)
			}
			if !strings.HasPrefix(string(f.raw), `{"type":"event","event":"`+f.Event+`","payload":{"runId":"run-1",`) {
				t.Errorf("members of %s", f.raw)
			}
		}
	})
}

func TestS6_ChatSendGetsChatDeltas(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		c := w.connect("c", tenant)
		i := info("c")
		i.OriginUsesChat = true
		s := w.open(i)
		s.Text("hi")
		synctest.Wait()
		c.equal("1 chat:delta")
		s.Close(t.Context())
	})
}

func TestS6_OriginOfAnotherTenantGetsNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		x := w.connect("x", "other")
		s := w.open(info("x"))
		w.commit(s.Prepare(started))
		s.Close(t.Context())
		x.equal()
	})
}

// troubled is a store whose reads fail at first.
type troubled struct {
	*connection.Service
	failures int
}

func (f *troubled) Subscribers(ctx context.Context, tenant, key string) ([]connection.Subscriber, error) {
	if f.failures--; f.failures >= 0 {
		return nil, table.ErrThrottled
	}
	return f.Service.Subscribers(ctx, tenant, key)
}

func TestS6_WhatIsSaidBeforeTheRecipientsAreKnownReachesThem(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{0, 3, 99} { // 99: they are never known, but the origin is
		var f *troubled
		inWorld(t, func(c *stream.Config) {
			conns, _ := c.Connections.(*connection.Service)
			f = &troubled{conns, failures}
			c.Connections = f
		}, func(w *world) {
			t := w.t
			a, c := w.connect("a", tenant), w.connect("c", tenant)
			w.subscribe("c", sessKey)
			s, err := w.svc.Open(t.Context(), info("a"), 1)
			w.no(err)
			w.commit(s.Prepare(started))
			s.Text("one ")
			s.Text("two ")
			s.Text("three")
			w.commit(s.Prepare(stream.EndMessage(), finished))
			s.Close(t.Context())
			want := "one two three"
			if a.text() != want || a.says()[0] != "1 lifecycle" {
				t.Errorf("after %d failures the origin got %v %q", failures, a.says(), a.text())
			}
			if failures > 10 {
				want = ""
			}
			if c.text() != want || c.chat != want {
				t.Errorf("after %d failures the subscriber got %v %q", failures, c.says(), c.chat)
			}
		})
	}
}

func TestS6_StreamWithoutListenersSpendsNoNumbers(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		s := w.open(info(""))
		for range 100 {
			s.Text("x")
			s.Thinking("y")
			s.Emit("usage", obj{})
		}
		b := s.Prepare(stream.EndMessage(), finished)
		if b.First() != 1 || b.Next() != 3 {
			t.Errorf("numbers %d to %d", b.First(), b.Next())
		}
		w.commit(b)
		s.Close(t.Context())
		if got := w.log(0); len(got) != 2 || !strings.Contains(string(got[0].Data), strings.Repeat("x", 100)) {
			t.Errorf("log %v", got)
		}
	})
}

func TestReplace_TakesBackWhatWasSaid(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, c := w.connect("a", tenant), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		s := w.open(info("a"))
		s.Text("kept")
		w.commit(s.Prepare(stream.EndMessage()))
		s.BeginMessage()
		s.Text("a wrong start")
		synctest.Wait()
		s.Replace("")
		synctest.Wait()
		if a.items[a.order[1]] != "" || c.chat != "kept" {
			t.Errorf("texts %q and %q after the text was taken back", a.items[a.order[1]], c.chat)
		}
		s.Text("right")
		pause(time.Second)
		s.Replace("right, in the end")
		w.commit(s.Prepare(stream.EndMessage(), finished))
		s.Close(t.Context())
		for _, cl := range []*client{a, c} {
			if cl.text() != "kept\n\nright, in the end" {
				t.Errorf("%s shows %q", cl.id, cl.text())
			}
		}
		if c.chat != "kept\n\nright, in the end" {
			t.Errorf("chat %q", c.chat)
		}
	})
}

func TestOpen_RefusesARunWithoutAName(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		for _, i := range []stream.Info{{}, {RunID: "r", SessionKey: "k"}} {
			if _, err := w.svc.Open(t.Context(), i, 1); err == nil {
				t.Errorf("%+v was taken", i)
			}
		}
		if _, err := w.svc.Open(t.Context(), info(""), 0); err == nil {
			t.Error("number 0 was taken")
		}
		if _, err := stream.New(stream.Config{}); err == nil {
			t.Error("an empty Config was taken")
		}
		if err := w.svc.PushLogged(t.Context(), info(""), 1); err != nil {
			t.Errorf("of an empty log: %v", err)
		}
	})
}

func TestS2_PushLoggedSaysWhatIsUnsent(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		s := w.open(info(""))
		w.commit(s.Prepare(finished, final("x")))
		s.Close(t.Context())
		w.connect("a", tenant)
		w.wire.fault = func(string, int, []byte) (error, bool) { return errHang, false }
		err := w.svc.PushLogged(t.Context(), info("a"), 1)
		var u *stream.UnsentError
		if !errors.Is(err, stream.ErrUnsent) || !errors.As(err, &u) || len(u.Unsent) != 2 {
			t.Fatalf("error %v", err)
		}
		if seqs := []int64{u.Unsent[0].Seq, u.Unsent[1].Seq}; !slices.Equal(seqs, []int64{1, 2}) {
			t.Errorf("unsent %v", seqs)
		}
	})
}
