package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/test/backends"
)

func (w *world) entry(key string) session.Entry {
	w.t.Helper()
	e, err := session.LoadEntry(context.Background(), w.store, w.ref(key))
	must(w.t, err)
	return e
}

// TestRuntime33_ResetWithDirectives: the session starts over, and what is said behind
// the command is kept where nothing else follows, or holds for the first message; a
// model is kept either way.
func TestRuntime33_ResetWithDirectives(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"chat.send", "agent"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			backends.Each(t, func(t *testing.T, s table.Store) {
				w := setup(t, over(s))
				c := w.user()
				for i, row := range []struct {
					send, answer, told        string
					thinking, model, queue, v string
				}{
					{send: "/reset /think high", answer: "✅ Session reset.\nThinking level set to high.", thinking: "high"},
					{send: "/new /think high", answer: "✅ New session started.\nThinking level set to high.", thinking: "high"},
					{send: "/reset /think high go on", told: "go on"},
					{send: "/think high /reset go on", told: "go on"},
					{send: "/new fake/fake-2", answer: "✅ New session started.\nModel set to fake/fake-2.", model: "fake-2"},
					{send: "/new fake-2 go on", told: "go on", model: "fake-2"},
					{send: "/new fake-2 /verbose on", answer: "✅ New session started.\nModel set to fake/fake-2.\nVerbose logging enabled.", model: "fake-2", v: "on"},
					{send: "/reset /model fake-2 go on", told: "go on", model: "fake-2"},
					{send: "/new nobody/else", told: "nobody/else"},
					{send: "/reset fake-2 is good", told: "fake-2 is good"},
					{send: "/reset /queue collect", answer: "mode=collect", queue: "collect"},
					{send: "/reset /status", answer: "Tokens: 0 in / 0 out"},
					{send: "/reset", answer: "✅ Session reset."},
				} {
					name, id := fmt.Sprint("s", i), fmt.Sprint("k", i)
					full := "agent:main:" + name
					c.says(name, "before"+id, "an old story")
					w.idle(full)
					c.ok(method, obj{"sessionKey": name, "message": row.send, "idempotencyKey": id}, nil)
					var got protocol.Wait
					c.ok("agent.wait", obj{"runId": id, "timeoutMs": 15000}, &got)
					m := w.idle(full)
					if row.told != "" {
						if texts := w.model.texts(); len(texts) != 1 || texts[0] != row.told {
							t.Errorf("%q: the model saw %q", row.send, texts)
						}
					} else if got.TerminalReply == nil || !strings.Contains(got.TerminalReply.Text, row.answer) {
						t.Errorf("%q: %+v", row.send, got.TerminalReply)
					}
					e := w.entry(full)
					if e.ThinkingLevel != row.thinking || e.ModelOverride != row.model || e.QueueMode != row.queue || e.VerboseLevel != row.v {
						t.Errorf("%q: %+v", row.send, e)
					}
					if m.Base == 0 {
						t.Errorf("%q: not started over: %+v", row.send, m)
					}
				}
			})
		})
	}
}

// TestRuntime33_ACardWithAReset shows the session as it is when it was started over.
func TestRuntime33_ACardWithAReset(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "k", "a story")
	w.idle(key)
	_, err := w.store.Write(t.Context(), table.Op{
		Kind: table.Update, Key: w.ref(key).MetaKey(), If: table.Exists(), Set: []table.SetOp{{Path: table.P(session.AttrTokensIn), Value: int64(7)}},
	})
	must(t, err)
	if got := c.command("/status", "k1"); !strings.Contains(got, "Tokens: 7 in") {
		t.Error(got)
	}
	if got := c.command("/reset /status", "k2"); !strings.Contains(got, "Tokens: 0 in") || !strings.HasPrefix(got, "✅ Session reset.\n") {
		t.Error(got)
	}
}

// TestC5_ACommandWhoseAnswerIsLostIsAnsweredOnce: the store made the write and its answer
// did not come; the write that is sent again finds its own trace.
func TestC5_ACommandWhoseAnswerIsLostIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"/think high", "/whoami", "/reset /think high"} {
		var armed atomic.Bool
		w := setup(t, noRunner, stored(func(s table.Store) table.Store {
			return faulty.New(s, faulty.Config{At: func(c faulty.Call) faulty.Fault {
				for _, op := range c.Ops {
					if op.Kind == table.Put && op.Key == run.RefOf(session.DefaultTenant, "k").StatusKey() && armed.CompareAndSwap(true, false) {
						return faulty.LostAnswer
					}
				}
				return faulty.None
			}})
		}))
		c := w.user()
		c.ok("sessions.patch", obj{"key": "s", "label": "there"}, nil)
		armed.Store(true)
		var sent protocol.ChatSent
		c.ok("chat.send", obj{"sessionKey": "s", "message": text, "idempotencyKey": "k"}, &sent)
		if armed.Load() || sent.Status != protocol.StatusStarted {
			t.Errorf("%s: %+v", text, sent)
		}
		c.finalText("k")
		if n := c.events("final", "k"); n != 1 {
			t.Errorf("%s: %d finals", text, n)
		}
	}
}

// TestLoop8_AWrongLevelStopsTheReset: nothing of such a message is done.
func TestLoop8_AWrongLevelStopsTheReset(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "k", "a story")
	w.idle(key)
	for id, row := range map[string][2]string{
		"w1": {"/reset /think banana", `Unrecognized thinking level "banana"`},
		"w2": {"/new /model nobody", `Unknown model "nobody"`},
		"w3": {"/reset /fast on /queue sideways", `Unrecognized queue mode "sideways"`},
	} {
		if got := c.command(row[0], id); !strings.Contains(got, row[1]) {
			t.Errorf("%s: %s", row[0], got)
		}
	}
	if m, e := w.idle(key), w.entry(key); m.Base != 0 || e.FastMode != "" || e.ThinkingLevel != "" || e.ModelOverride != "" {
		t.Errorf("%+v %+v", m, e)
	}
}

// TestLoop8_DirectivesAndQueueAlone: a message of nothing but directives keeps them all.
func TestLoop8_DirectivesAndQueueAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		got := c.command("/queue collect /think low", "k1")
		if !strings.Contains(got, "Thinking level set to low.") || !strings.Contains(got, "mode=collect") {
			t.Error(got)
		}
		if e := w.entry(key); e.ThinkingLevel != "low" || e.QueueMode != "collect" {
			t.Errorf("%+v", e)
		}
	})
}

// TestLoop8_NothingOfARefusedMessageIsKept: a message is judged before anything that it
// asks for is done, whatever it is refused for.
func TestLoop8_NothingOfARefusedMessageIsKept(t *testing.T) {
	t.Parallel()
	file := []obj{{"type": "image", "mimeType": "image/png", "content": "iVBORw0KGgo="}}
	for _, method := range []string{"chat.send", "agent"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			backends.Each(t, func(t *testing.T, s table.Store) {
				w := setup(t, over(s)) // takes no files
				c, writer := w.user(), w.scoped(protocol.ScopeWrite)
				c.says("s", "before", "an old story")
				w.idle(key)
				clean := func(why string) {
					t.Helper()
					e := w.entry(key)
					if e.ModelOverride != "" || e.ThinkingLevel != "" || e.QueueMode != "" || e.VerboseLevel != "" {
						t.Errorf("%s: kept %+v", why, e)
					}
					if m := w.meta(key); m.Base != 0 {
						t.Errorf("%s: started over", why)
					}
				}
				for i, text := range []string{"/model fake-2 see", "/reset see", "/new fake-2 see", "/model fake-2", "/reset"} {
					c.fails(method, obj{"sessionKey": "s", "message": text, "idempotencyKey": fmt.Sprint("file", i), "attachments": file}, protocol.CodeInvalidRequest, "files are not taken here")
					clean(text + " with a file")
				}
				for i, text := range []string{"/new fake-2", "/reset /think high", "/think high /verbose on", "/queue collect /verbose on", "/reset go on", "/model fake-2 /new go on"} {
					writer.fails(method, obj{"sessionKey": "s", "message": text, "idempotencyKey": fmt.Sprint("scope", i)}, protocol.CodeForbidden, "operator.admin")
					clean(text + " without the right")
				}
				c.fails(method, obj{"sessionKey": "s", "message": "/model fake-2 see", "idempotencyKey": "before"}, protocol.CodeInvalidRequest, "another request")
				clean("another request's key")
				c.ok("sessions.patch", obj{"key": "s", "sendPolicy": "deny"}, nil)
				for i, text := range []string{"/model fake-2 see", "/reset see"} {
					call := obj{"sessionKey": "s", "message": text, "idempotencyKey": fmt.Sprint("deny", i), "deliver": true}
					if method == "agent" {
						call["channel"] = "webchat"
					}
					c.fails(method, call, protocol.CodeInvalidRequest, "send blocked")
					clean(text + " that may not be delivered")
				}
			})
		})
	}
}

// TestRuntime27_ARefusedMessageChoosesNoModel: a message that finds the queue full keeps
// nothing, and has no card.
func TestRuntime27_ARefusedMessageChoosesNoModel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		c.command("/queue followup cap:1 drop:new debounce:0", "q")
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		c.say("waits", "b", "")
		if f := c.call("chat.send", obj{"sessionKey": "s", "message": "/model fake-2 /status too many", "idempotencyKey": "k"}); f.OK {
			t.Errorf("%s", f.Payload)
		}
		if e := w.entry(key); e.ModelOverride != "" {
			t.Errorf("%+v", e)
		}
		if _, err := run.Load(context.Background(), w.store, run.RefOf(session.DefaultTenant, "k:card")); !errors.Is(err, run.ErrUnknown) || c.events("final", "k:card") != 0 {
			t.Errorf("a card of a refused message: %v", err)
		}
		w.model.release()
		c.waited("b")
	})
}

// TestLoop8_DirectivesOfAFirstMessage: the message that a session is made with does what
// it would do in a session that is there already: directives are answered, kept or hold
// for it, and the model does not see them.
func TestLoop8_DirectivesOfAFirstMessage(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := setup(t, over(s))
		c := w.user()
		for id, row := range map[string]struct{ send, told, answer, thinking, model string }{
			"k1": {send: "/fast on begin", told: "begin"},
			"k2": {send: "/model fake/fake-2 see /v /tmp", told: "see /v /tmp", model: "fake-2"},
			"k3": {send: "/help", answer: "Write a message"},
			"k4": {send: "/think high", answer: "Thinking level set to high.", thinking: "high"},
			"k5": {send: "/model fake-2", answer: "Model set to fake/fake-2.", model: "fake-2"},
			"k6": {send: "/queue", answer: "Current queue settings"},
			"k7": {send: "/status begin", told: "begin"},
		} {
			var made, again protocol.SessionChanged
			call := obj{"message": row.send, "idempotencyKey": id}
			c.ok("sessions.create", call, &made)
			if made.RunID != id || made.RunStarted == nil || !*made.RunStarted {
				t.Errorf("%q: %+v", row.send, made)
			}
			before := len(w.model.texts())
			got := c.finalText(id)
			if row.told != "" && got != "you said "+row.told || row.told == "" && !strings.Contains(got, row.answer) {
				t.Errorf("%q: %q", row.send, got)
			}
			if row.told == "" && len(w.model.texts()) != before {
				t.Errorf("%q: the model was asked %q", row.send, w.model.texts())
			}
			if row.model != "" && row.told == "" && made.Resolved.Model != row.model {
				t.Errorf("%q: the reply says %+v", row.send, made.Resolved)
			}
			w.idle(made.Key)
			c.ok("sessions.create", call, &again)
			if again.Key != made.Key || again.RunID != id || c.events("final", id) != 1 {
				t.Errorf("%q again: %+v", row.send, again)
			}
			if e := w.entry(made.Key); e.FastMode != "" || e.ThinkingLevel != row.thinking || e.ModelOverride != row.model {
				t.Errorf("%q: %+v", row.send, e)
			}
		}
	})
}

// TestSessionsCreate_NotWithARefusedMessage: then there is no session either.
func TestSessionsCreate_NotWithARefusedMessage(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.scoped(protocol.ScopeWrite)
	c.fails("sessions.create", obj{"key": "s", "message": "/reset go on"}, protocol.CodeForbidden, "operator.admin")
	c.fails("sessions.create", obj{"key": "s", "message": "/verbose on"}, protocol.CodeForbidden, "operator.admin")
	c.fails("sessions.create", obj{"key": "s", "message": "see", "attachments": []obj{{"type": "image", "mimeType": "image/png", "content": "iVBORw0KGgo="}}}, protocol.CodeInvalidRequest, "files are not taken here")
	if m, e := w.meta(key), w.entry(key); m.Exists() || e.CreatedVia != "" {
		t.Errorf("%+v %+v", m, e)
	}
	var made protocol.SessionChanged
	if c.ok("sessions.create", obj{"key": "s", "message": "/stop"}, &made); made.RunID != "" || *made.RunStarted {
		t.Errorf("%+v", made)
	}
}

// TestLoop8_DirectivesOfSessionsSend: as of chat.send.
func TestLoop8_DirectivesOfSessionsSend(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.ok("sessions.send", obj{"key": "s", "message": "/think high", "idempotencyKey": "k1"}, nil)
	if got := c.finalText("k1"); got != "Thinking level set to high." {
		t.Error(got)
	}
	c.ok("sessions.send", obj{"key": "s", "message": "/whoami go on", "idempotencyKey": "k2"}, nil)
	if card := c.finalText("k2:card"); !strings.Contains(card, "You are") {
		t.Error(card)
	}
	if got := c.finalText("k2"); got != "you said go on" {
		t.Error(got)
	}
	if e := w.entry(key); e.ThinkingLevel != "high" {
		t.Errorf("%+v", e)
	}
}

// TestLoop8_Trace: kept where it stands alone, shown, patched; in a message it is not
// the model's to see.
func TestLoop8_Trace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		for i, row := range []struct{ send, want string }{
			{"/trace", "Current trace level: off.\nOptions: on, off."},
			{"/trace on", "Plugin trace enabled."},
			{"/trace", "Current trace level: on."},
			{"/trace loud", `Unrecognized trace level "loud". Valid levels: on, off.`},
		} {
			if got := c.command(row.send, fmt.Sprint("k", i)); !strings.Contains(got, row.want) {
				t.Errorf("%s: %s", row.send, got)
			}
		}
		var d protocol.SessionDescribed
		if c.ok("sessions.describe", obj{"key": "s"}, &d); d.Session.TraceLevel != "on" {
			t.Errorf("%+v", d.Session)
		}
		c.ok("sessions.patch", obj{"key": "s", "traceLevel": "off"}, nil)
		c.fails("sessions.patch", obj{"key": "s", "traceLevel": "full"}, protocol.CodeInvalidRequest, "at /traceLevel: must be one of on, off")
		c.says("s", "m", "/trace on go")
		w.idle(key)
		if got := w.model.texts(); got[len(got)-1] != "go" {
			t.Errorf("%q", got)
		}
		if e := w.entry(key); e.TraceLevel != "off" {
			t.Errorf("%+v", e)
		}
	})
}
