package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"laneway/shared/connection"
	"laneway/shared/protocol"
)

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c, one, all, none := w.user(), w.user(), w.user(), w.user()
	f := one.call("sessions.messages.subscribe", obj{"key": "S"})
	if string(f.Payload) != `{"subscribed":true,"key":"agent:main:s"}` {
		t.Errorf("%s", f.Payload)
	}
	if f := all.call("sessions.subscribe", nil); string(f.Payload) != `{"subscribed":true}` {
		t.Errorf("%s", f.Payload)
	}
	c.says("s", "k", "hello")
	c.says("t", "k2", "hello")
	one.find("final", 1, chatEvent("final", "k"))
	all.find("final", 1, chatEvent("final", "k"))
	all.find("final", 1, chatEvent("final", "k2"))
	w.idle("agent:main:t")
	if strings.Contains(one.dump(), `"k2"`) {
		t.Error("events of a session that was not subscribed to")
	}
	if strings.Contains(none.dump(), `"event":"chat"`) {
		t.Error("events without a subscription")
	}
	if f := one.call("sessions.messages.unsubscribe", obj{"key": "s"}); string(f.Payload) != `{"subscribed":false,"key":"agent:main:s"}` {
		t.Errorf("%s", f.Payload)
	}
	if f := all.call("sessions.unsubscribe", obj{}); string(f.Payload) != `{"subscribed":false}` {
		t.Errorf("%s", f.Payload)
	}
	c.says("s", "k3", "hello")
	w.idle(key)
	for _, x := range []*client{one, all} {
		if strings.Contains(x.dump(), `"k3"`) {
			t.Error("events after the end of the subscription")
		}
	}
	for i := range 100 {
		one.ok("sessions.messages.subscribe", obj{"key": fmt.Sprint("s", i)}, nil)
	}
	one.fails("sessions.messages.subscribe", obj{"key": "one more"}, protocol.CodeInvalidRequest, "too many subscriptions")
	one.fails("sessions.messages.subscribe", obj{}, protocol.CodeInvalidRequest, "'key'")
}

// TestS5_ANewSubscriberGetsThePastOfTheRun: what the active run has logged is sent
// after the reply, once, and not to the caller of the run, who has it.
func TestS5_ANewSubscriberGetsThePastOfTheRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c, late := w.user(), w.user()
	c.ok("chat.send", obj{"sessionKey": "s", "message": "hold one", "idempotencyKey": "k"}, nil)
	w.model.waitFor(t, "hold one")
	c.ok("chat.send", obj{"sessionKey": "s", "message": "hold two", "idempotencyKey": "st", "queueMode": "steer"}, nil)
	w.model.let("hold one")
	w.model.waitFor(t, "hold two") // the first step is committed, and its events with it
	starts := func(c *client) int { return strings.Count(c.dump(), `"phase":"start"`) }
	before := starts(c)
	for _, x := range []*client{c, late} {
		for range 2 {
			x.ok("sessions.messages.subscribe", obj{"key": "s"}, nil)
		}
	}
	if n := starts(late); n != 1 {
		t.Errorf("the start of the run came %d times\n%s", n, late.dump())
	}
	if n := starts(c); n != before {
		t.Errorf("the caller got the start of its run again: %d times", n)
	}
	dump := late.dump()
	if strings.Index(dump, `"subscribed":true`) > strings.Index(dump, `"phase":"start"`) {
		t.Error("events before the reply")
	}
}

// TestSubscriptions_ChangesOfASessionAreAnnounced to those who listen to it, in the
// tenant of the session only.
func TestSubscriptions_ChangesOfASessionAreAnnounced(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c, all, one, other, stranger := w.user(), w.user(), w.user(), w.user(), w.stranger()
	all.ok("sessions.subscribe", nil, nil)
	stranger.ok("sessions.subscribe", nil, nil)
	one.ok("sessions.messages.subscribe", obj{"key": "s"}, nil)
	other.ok("sessions.messages.subscribe", obj{"key": "t"}, nil)
	dead := w.user()
	dead.ok("sessions.subscribe", nil, nil)
	dead.gone()
	c.ok("sessions.create", obj{"key": "s"}, nil)
	c.ok("sessions.patch", obj{"key": "s", "label": "L"}, nil)
	c.ok("sessions.reset", obj{"key": "s"}, nil)
	c.ok("sessions.delete", obj{"key": "s"}, nil)
	for _, x := range []*client{all, one} {
		for i, reason := range []string{"create", "patch", "reset", "delete"} {
			var ev protocol.SessionsChangedEvent
			into(t, x.find(reason, i+1, func(f *protocol.Frame) bool { return f.Event == protocol.EventSessionsChanged }), &ev)
			if ev.SessionKey != key || ev.Reason != reason || ev.TS == 0 || (ev.Session == nil) != (reason == "delete") {
				t.Errorf("%s: %+v", reason, ev)
			}
			if reason == "patch" && ev.Session.Label != "L" {
				t.Errorf("%+v", ev.Session)
			}
		}
	}
	for _, x := range []*client{other, stranger} {
		if strings.Contains(x.dump(), protocol.EventSessionsChanged+`","payload`) {
			t.Errorf("told of a session that it does not listen to:\n%s", x.dump())
		}
	}
	if _, err := w.core.Connections.Load(context.Background(), dead.id); !errors.Is(err, connection.ErrGone) {
		t.Errorf("a connection that is gone is kept: %v", err)
	}
}
