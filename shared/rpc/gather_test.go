package rpc_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/blob/dir"
	"laneway/shared/protocol"
	"laneway/shared/queueing"
	"laneway/shared/table"
	"laneway/shared/wiring"
	"laneway/test/backends"
)

// inbound is a world in which texts of a channel wait for more.
func inbound(t *testing.T, s table.Store, setting string) *world {
	t.Helper()
	in, err := queueing.ParseInbound(setting)
	must(t, err)
	blobs, err := dir.Open(dir.Config{Path: t.TempDir()})
	must(t, err)
	return setup(t, over(s), withFiles(blobs), settings(func(s *wiring.Settings) { s.Inbound = in }))
}

// texting sends a chat message to a session and gives its receipt.
func (c *client) texting(key, id, text string, more obj) *protocol.Disposition {
	c.t.Helper()
	p := obj{"sessionKey": key, "message": text, "idempotencyKey": id}
	maps.Copy(p, more)
	var sent protocol.ChatSent
	c.ok("chat.send", p, &sent)
	return sent.Disposition
}

// TestRuntime28_TextsOfASenderBecomeOneTurn: each row of what ends their wait at once.
// The time itself is too long for a test.
func TestRuntime28_TextsOfASenderBecomeOneTurn(t *testing.T) {
	t.Parallel()
	const at = "agent:main:slack:direct:p"
	for _, row := range []struct {
		name  string
		end   func(w *world, c *client)
		turns []string // of people
	}{
		{"what says of itself how it queues", func(_ *world, c *client) {
			c.texting(at, "end", "three", obj{"queueMode": "followup"})
		}, []string{"one\ntwo", "three"}},
		{"a file", func(_ *world, c *client) {
			c.texting(at, "end", "three", obj{"attachments": []obj{{"type": "image", "mimeType": "image/png", "content": "iVBORw0KGgo="}}})
		}, []string{"one\ntwo", "three"}},
		{"an option of one message", func(_ *world, c *client) { c.texting(at, "end", "/verbose on three", nil) }, []string{"one\ntwo", "three"}},
		{"another sender", func(w *world, _ *client) { w.user().texting(at, "end", "three", nil) }, []string{"one\ntwo", "three"}},
		{"a new session, which ends them", func(_ *world, c *client) { c.texting(at, "end", "/new three", nil) }, []string{"three"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			backends.Each(t, func(t *testing.T, s table.Store) {
				w := inbound(t, s, "channel/slack: 60s")
				c := w.user()
				c.ok("sessions.messages.subscribe", obj{"key": at}, nil)
				want(t, "the first", c.texting(at, "a", "one", nil), protocol.Disposition{Kind: "queued", Position: 1, Reason: "debounce"})
				want(t, "the second", c.texting(at, "b", "two", nil), protocol.Disposition{Kind: "queued", Position: 2, Reason: "debounce"})
				var e protocol.SessionExplained
				c.ok("sessions.explain", obj{"key": at}, &e)
				if len(e.Queue) != 2 || e.Queue[1].Mode != "gather" || e.Next.Action != "start" || e.Settings.InboundMs != 60_000 {
					t.Errorf("%+v, next %+v, settings %+v", e.Queue, e.Next, e.Settings)
				}
				if got := c.texting("agent:main:discord:direct:p", "other", "hello", nil); got.Kind != "started" {
					t.Errorf("another channel: %+v", got)
				}
				row.end(w, c)
				if got := c.waited("end"); got.Status != "ok" {
					t.Errorf("%+v", got)
				}
				w.idle(at)
				var h protocol.History
				c.ok("chat.history", obj{"sessionKey": at}, &h)
				if got := people(t, h); !slices.Equal(got, row.turns) {
					t.Errorf("%q, want %q", got, row.turns)
				}
				if len(row.turns) == 1 {
					return
				}
				var wait protocol.Wait
				c.ok("agent.wait", obj{"runId": "b", "timeoutMs": 15000}, &wait)
				if wait.Status != "ok" || wait.Disposition == nil || *wait.Disposition != (protocol.Disposition{Kind: "collected", RunID: "a"}) {
					t.Errorf("the second is %+v", wait)
				}
			})
		})
	}
}

// TestRuntime28_CommandsDoNotWait: nor do they end the wait of texts; a stop ends the
// texts.
func TestRuntime28_CommandsDoNotWait(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := inbound(t, s, "60s")
		c := w.user()
		c.ok("sessions.messages.subscribe", obj{"key": "s"}, nil)
		c.texting("s", "a", "one", nil)
		if got := c.command("/queue", "q"); !strings.Contains(got, "mode=steer") {
			t.Error(got)
		}
		var ab protocol.ChatAborted
		c.ok("chat.send", obj{"sessionKey": "s", "message": "/stop", "idempotencyKey": "stop"}, &ab)
		if !slices.Equal(ab.RunIDs, []string{"a"}) {
			t.Errorf("stopped %+v", ab)
		}
		w.idle(key)
	})
}

// TestRuntime28_TheWaitEndsByItself: nobody has to come.
func TestRuntime28_TheWaitEndsByItself(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := inbound(t, s, "50ms")
		c := w.user()
		before := time.Now()
		c.texting("s", "a", "one", nil)
		if got := c.waited("a"); got.Status != "ok" || time.Since(before) < 50*time.Millisecond {
			t.Errorf("%+v after %s", got, time.Since(before))
		}
	})
}

// people are the texts of a conversation that people wrote.
func people(t *testing.T, h protocol.History) (out []string) {
	t.Helper()
	for _, row := range h.Messages {
		if row.Role != "user" {
			continue
		}
		var text string
		if json.Unmarshal(row.Content, &text) != nil {
			var parts []struct{ Text string }
			into(t, protocol.Frame{Payload: row.Content}, &parts)
			text = parts[0].Text
		}
		out = append(out, text)
	}
	return out
}
