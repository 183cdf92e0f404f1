package rpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/table"
	"laneway/test/backends"
)

// onBoth runs a test over every store, each time in a world of its own with a sender
// and somebody who only listens to the session "s".
func onBoth(t *testing.T, f func(t *testing.T, w *world, c, l *client)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := setup(t, over(s))
		c, l := w.user(), w.user()
		l.ok("sessions.messages.subscribe", obj{"key": "s"}, nil)
		f(t, w, c, l)
		for _, x := range []*client{c, l} {
			x.mu.Lock()
			for _, frame := range x.frames {
				if frame.Event == protocol.EventChat && strings.Contains(string(frame.Payload), "disposition") {
					t.Errorf("a receipt inside a chat event: %s", frame.Payload)
				}
			}
			x.mu.Unlock()
		}
	})
}

// say sends a chat message and gives its receipt.
func (c *client) say(text, id, mode string) *protocol.Disposition {
	c.t.Helper()
	var sent protocol.ChatSent
	p := obj{"sessionKey": "s", "message": text, "idempotencyKey": id}
	if mode != "" {
		p["queueMode"] = mode
	}
	c.ok("chat.send", p, &sent)
	if sent.Disposition == nil {
		c.t.Fatalf("chat.send of %s: no receipt", id)
	}
	return sent.Disposition
}

// receipt waits for the event that tells what became of a message.
func (c *client) receipt(id string, want protocol.Disposition) {
	c.t.Helper()
	c.find(fmt.Sprintf("receipt of %s: %+v", id, want), 1, func(f *protocol.Frame) bool {
		var d protocol.DispositionEvent
		return f.Event == protocol.EventDisposition && json.Unmarshal(f.Payload, &d) == nil &&
			d.RunID == id && d.SessionKey == key && d.Disposition == want
	})
}

func (c *client) waited(id string) protocol.Wait {
	c.t.Helper()
	c.find("the end of "+id, 1, func(f *protocol.Frame) bool {
		return f.Event == protocol.EventChat && strings.Contains(string(f.Payload), `"runId":"`+id+`"`) &&
			!strings.Contains(string(f.Payload), `"state":"delta"`)
	})
	var w protocol.Wait
	c.ok("agent.wait", obj{"runId": id, "timeoutMs": 15000}, &w)
	return w
}

func want(t *testing.T, what string, got *protocol.Disposition, want protocol.Disposition) {
	t.Helper()
	if got == nil || *got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func TestReceipts_AMessageMovesUpAndStarts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		want(t, "first", c.say("hold 1", "a", ""), protocol.Disposition{Kind: "started"})
		w.model.waitFor(t, "hold 1")
		want(t, "second", c.say("hold 2", "b", "followup"), protocol.Disposition{Kind: "queued", Position: 1})
		want(t, "third", c.say("three", "c", "followup"), protocol.Disposition{Kind: "queued", Position: 2})
		var x protocol.SessionExplained
		c.ok("sessions.explain", obj{"key": "s"}, &x)
		if len(x.Queue) != 2 {
			t.Fatalf("queue: %+v", x.Queue)
		}
		want(t, "explained", x.Queue[1].Disposition, protocol.Disposition{Kind: "queued", Position: 2})
		var pending protocol.Wait
		c.ok("agent.wait", obj{"runId": "c", "timeoutMs": 0}, &pending)
		if pending.Status != "pending" {
			t.Errorf("wait for a queued turn: %+v", pending)
		}
		want(t, "waited for", pending.Disposition, protocol.Disposition{Kind: "queued", Position: 2})
		w.model.let("hold 1")
		for _, x := range []*client{c, l} {
			x.receipt("b", protocol.Disposition{Kind: "started"})
			x.receipt("c", protocol.Disposition{Kind: "queued", Position: 1})
		}
		var again protocol.ChatSent
		c.ok("chat.send", obj{"sessionKey": "s", "message": "three", "idempotencyKey": "c", "queueMode": "followup"}, &again)
		want(t, "asked again", again.Disposition, protocol.Disposition{Kind: "queued", Position: 1})
		w.model.waitFor(t, "hold 2")
		w.model.let("hold 2")
		l.receipt("c", protocol.Disposition{Kind: "started"})
		want(t, "ended", c.waited("c").Disposition, protocol.Disposition{Kind: "started"})
	})
}

func TestReceipts_ASteeredMessageResolvesToTheRunThatAnsweredIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		want(t, "reply", c.say("look here", "b", "steer"), protocol.Disposition{Kind: "steered", RunID: "a"})
		w.model.let("hold 1")
		final := protocol.Disposition{Kind: "steered", RunID: "a", Step: 1}
		c.receipt("b", final)
		l.receipt("b", final)
		got := c.waited("b")
		if got.Status != "ok" || got.TerminalReply == nil || !strings.Contains(got.TerminalReply.Text, "you said look here") {
			t.Errorf("wait for what was steered: %+v", got)
		}
		want(t, "wait", got.Disposition, final)
		want(t, "the run that took it", c.waited("a").Disposition, protocol.Disposition{Kind: "started"})
	})
}

func TestReceipts_ASteerThatItsRunDidNotTakeIsQueued(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		c.say("later", "b", "steer")
		c.ok("chat.abort", obj{"sessionKey": "s", "runId": "a"}, nil)
		l.receipt("b", protocol.Disposition{Kind: "queued", Position: 1, Reason: "run-ended"})
		l.receipt("b", protocol.Disposition{Kind: "started"})
		if got := c.waited("b"); got.Status != "ok" {
			t.Errorf("%+v", got)
		}
	})
}

func TestReceipts_CollectedMessagesResolveToTheirRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.ok("sessions.patch", obj{"key": "s", "queueDebounceMs": 0}, nil)
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		c.say("two", "b", "collect")
		c.say("three", "c", "collect")
		w.model.let("hold 1")
		into := protocol.Disposition{Kind: "collected", RunID: "b"}
		c.receipt("c", into)
		l.receipt("c", into)
		b, got := c.waited("b"), c.waited("c")
		want(t, "wait", got.Disposition, into)
		want(t, "the run", b.Disposition, protocol.Disposition{Kind: "started"})
		if got.TerminalReply == nil || b.TerminalReply == nil || got.TerminalReply.Text != b.TerminalReply.Text {
			t.Errorf("%+v is not the end of %+v", got, b)
		}
	})
}

func TestReceipts_AnInterruptSupersedesWhatRunsAndWhatWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		c.say("two", "b", "followup")
		long := strings.Repeat("long ", 20)
		want(t, "reply", c.say("now", long, "interrupt"), protocol.Disposition{Kind: "started"})
		by := protocol.Disposition{Kind: "superseded", RunID: long}
		for _, id := range []string{"a", "b"} {
			c.receipt(id, by)
			l.receipt(id, by)
			got := c.waited(id)
			want(t, id, got.Disposition, by)
			if got.Status != "error" || got.StopReason != "superseded" || got.Error != "agent run superseded by a newer session writer" {
				t.Errorf("%s: %+v", id, got)
			}
		}
		if got := c.waited(long); got.Status != "ok" {
			t.Errorf("%+v", got)
		}
	})
}

// TestRuntime113_AnInterruptSaysThatItEndedARun: the reply has interruptedActiveRun where
// a run was at work, and no such member where none was.
func TestRuntime113_AnInterruptSaysThatItEndedARun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		send := func(id, mode string, want bool) {
			t.Helper()
			var got protocol.ChatSent
			c.ok("chat.send", obj{"sessionKey": "s", "message": "hold " + id, "idempotencyKey": id, "queueMode": mode}, &got)
			if got.Interrupted != want {
				t.Errorf("%s %s: %+v, want interruptedActiveRun %v", mode, id, got, want)
			}
		}
		send("1", "interrupt", false)
		w.model.waitFor(t, "hold 1")
		send("2", "followup", false)
		send("3", "interrupt", true)
		w.model.waitFor(t, "hold 3")
		w.model.let("hold 3")
		w.idle(key)
	})
}

func TestReceipts_OverflowAndStops(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.ok("sessions.patch", obj{"key": "s", "queueCap": 2, "queueDebounceMs": 0, "queueMode": "followup", "queueDrop": "summarize"}, nil)
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		c.say("two", "b", "")
		c.say("three", "c", "")
		// The summary takes the place of the oldest.
		want(t, "third", c.say("four", "d", ""), protocol.Disposition{Kind: "queued", Position: 3})
		c.find("summarised", 1, func(f *protocol.Frame) bool {
			return f.Event == protocol.EventDisposition && strings.Contains(string(f.Payload), `"runId":"b"`) && strings.Contains(string(f.Payload), `"kind":"summarised"`)
		})
		l.find("summarised", 1, func(f *protocol.Frame) bool {
			return f.Event == protocol.EventDisposition && strings.Contains(string(f.Payload), `"kind":"summarised"`)
		})
		c.ok("sessions.patch", obj{"key": "s", "queueDrop": "old"}, nil)
		c.say("five", "e", "")
		dropped := protocol.Disposition{Kind: "dropped", Reason: "queue_overflow"}
		c.receipt("c", dropped)
		l.receipt("c", dropped)
		got := c.waited("c")
		want(t, "dropped", got.Disposition, dropped)
		if got.Status != "error" || got.StopReason != "queue_overflow" {
			t.Errorf("%+v", got)
		}
		c.ok("chat.abort", obj{"sessionKey": "s", "runId": "d"}, nil)
		l.receipt("d", protocol.Disposition{Kind: "dropped", Reason: "rpc"})
		w.model.let("hold 1")
		b := c.waited("b")
		if b.Status != "ok" || b.Disposition == nil || b.Disposition.Kind != "summarised" || !strings.HasPrefix(b.Disposition.RunID, "followup-overflow:") {
			t.Errorf("a message that was summarised: %+v", b)
		}
	})
}
