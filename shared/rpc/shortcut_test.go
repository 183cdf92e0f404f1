package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/test/backends"
)

// events counts the events of a run that has one name and state.
func (c *client) events(state, runID string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := chatEvent(state, runID)
	for i := range c.frames {
		if is(&c.frames[i]) {
			n++
		}
	}
	return n
}

// follows says whether a frame is the next one behind the reply to a request.
func (c *client) follows(req string, is func(*protocol.Frame) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.frames, func(f protocol.Frame) bool { return f.Type == "res" && f.ID == req })
	return i >= 0 && i+1 < len(c.frames) && is(&c.frames[i+1])
}

// finalText is the text of a run's chat final.
func (c *client) finalText(runID string) string {
	c.t.Helper()
	var fin protocol.ChatFinal
	into(c.t, c.find("final of "+runID, 1, chatEvent("final", runID)), &fin)
	var parts []struct{ Text string }
	must(c.t, json.Unmarshal(fin.Message.Content, &parts))
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// shortcutRows are messages with shortcuts: what the model is told, and what the card has.
var shortcutRows = map[string]struct {
	send, told string
	card       []string
}{
	"k1": {"please /status do x", "please do x", []string{"🧠 Model: fake/fake-1"}},
	"k2": {"/help me", "me", []string{"Write a message and the agent answers."}},
	"k3": {"see\n/commands", "see\n", []string{"/whoami – "}},
	"k4": {"/whoami /status both", "both", []string{"👤 You are ", "🧠 Model: "}},
	"k5": {"/think high /status do y", "do y", []string{"⚙️ Think: default"}}, // of the message alone
	"k6": {"/status and /status", "and ", []string{"🧠 Model: "}},
	"k7": {"/model fake/fake-2 /status z", "z", []string{"🧠 Model: fake/fake-2"}},
	"k8": {"/model list then", "then", []string{"- fake/fake-2"}},
}

// TestLoop8_ShortcutsInAMessage: they are answered at once under a run id of their own,
// and are no part of what the model sees; the run under the caller's key has one end, and
// a repeat doubles nothing.
func TestLoop8_ShortcutsInAMessage(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := setup(t, over(s))
		c := w.user()
		for id, row := range shortcutRows {
			call := obj{"sessionKey": id, "message": row.send, "idempotencyKey": id}
			req := c.post("chat.send", call)
			card := c.finalText(id + ":card")
			if !c.follows(req, chatEvent("final", id+":card")) {
				t.Errorf("%q: the card came before the reply, or not right behind it", row.send)
			}
			for _, want := range row.card {
				if strings.Count(card, want) != 1 {
					t.Errorf("%q: %q is not once in %s", row.send, want, card)
				}
			}
			if got := c.finalText(id); got != "you said "+row.told {
				t.Errorf("%q: answered %q", row.send, got)
			}
			w.idle("agent:main:" + id)
			if got := w.model.texts(); len(got) != 1 || got[0] != row.told {
				t.Errorf("%q: the model was told %q", row.send, got)
			}
			var sent protocol.ChatSent
			if c.ok("chat.send", call, &sent); sent.Status != protocol.StatusOK || sent.RunID != id {
				t.Errorf("%q again: %+v", row.send, sent)
			}
			for runID, text := range map[string]string{id: "you said " + row.told, id + ":card": card} {
				var wait protocol.Wait
				c.ok("agent.wait", obj{"runId": runID, "timeoutMs": 15000}, &wait)
				if wait.Status != "ok" || wait.TerminalReply == nil || wait.TerminalReply.Text != strings.TrimSpace(text) && wait.TerminalReply.Text != text {
					t.Errorf("%s: %+v %+v", runID, wait, wait.TerminalReply)
				}
				if n := c.events("final", runID); n != 1 {
					t.Errorf("%s: %d finals", runID, n)
				}
			}
			var h protocol.History
			if c.ok("chat.history", obj{"sessionKey": id}, &h); len(h.Messages) != 2 {
				t.Errorf("%q: %d rows", row.send, len(h.Messages))
			}
		}
	})
}

// TestLoop8_ShortcutsInAMessage_OfAgent: the card is the first payload of the final
// reply, to whoever asks and however often.
func TestLoop8_ShortcutsInAMessage_OfAgent(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := setup(t, over(s))
		c := w.user()
		for id, row := range shortcutRows {
			call := obj{"sessionKey": id, "message": row.send, "idempotencyKey": id}
			var first, again protocol.Final
			into(t, c.answer(c.post("agent", call), 2), &first)
			c.ok("agent", call, &again)
			for _, f := range []protocol.Final{first, again} {
				p := f.Result.Payloads
				if len(p) != 2 || !p[0].IsStatusNotice || p[1].IsStatusNotice || p[1].Text != "you said "+row.told {
					t.Fatalf("%q: %+v", row.send, p)
				}
				for _, want := range row.card {
					if strings.Count(p[0].Text, want) != 1 {
						t.Errorf("%q: %q is not once in %s", row.send, want, p[0].Text)
					}
				}
			}
			var wait protocol.Wait
			c.ok("agent.wait", obj{"runId": id, "timeoutMs": 15000}, &wait)
			if p := first.Result.Payloads; wait.TerminalReply == nil || wait.TerminalReply.Text != p[0].Text+"\n\n"+p[1].Text {
				t.Errorf("%q: agent.wait says %+v", row.send, wait.TerminalReply)
			}
			if n := w.model.count(row.told); n != 1 {
				t.Errorf("%q: asked %d times", row.send, n)
			}
		}
	})
}

// TestLoop8_ACardOfAStoppedRun: who asked gets the card also where the model was stopped.
func TestLoop8_ACardOfAStoppedRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	req := c.post("agent", obj{"sessionKey": "s", "message": "hold /whoami", "idempotencyKey": "k"})
	w.model.waitFor(t, "hold ")
	c.ok("chat.abort", obj{"sessionKey": "s"}, nil)
	var f protocol.Final
	into(t, c.answer(req, 2), &f)
	if f.Status != "timeout" || f.Result == nil || len(f.Result.Payloads) == 0 || !strings.Contains(f.Result.Payloads[0].Text, "👤 You are") {
		t.Errorf("%+v %+v", f, f.Result)
	}
}

// TestLoop8_ACardTakesNobodysRun: where a caller has a run by the card's name, the card
// gets another one.
func TestLoop8_ACardTakesNobodysRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "k:card", "mine")
	w.idle(key)
	c.ok("chat.send", obj{"sessionKey": "s", "message": "/whoami and you", "idempotencyKey": "k"}, nil)
	f := c.find("the card", 1, func(f *protocol.Frame) bool {
		return f.Event == protocol.EventChat && strings.Contains(string(f.Payload), `"runId":"k:card:`)
	})
	if !strings.Contains(string(f.Payload), "You are") {
		t.Errorf("%s", f.Payload)
	}
	c.finalText("k")
	st, err := run.Load(context.Background(), w.store, run.RefOf(session.DefaultTenant, "k:card"))
	if err != nil || st.Outcome.Text != "you said mine" {
		t.Errorf("%+v, %v", st.Outcome, err)
	}
}

// TestLoop8_ShortcutsAlone: each is answered as a run of its own, also several, and with
// directives that are kept, which a card shows already.
func TestLoop8_ShortcutsAlone(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	for id, row := range map[string]struct {
		send string
		want []string
	}{
		"a1": {"/whoami", []string{"tenant default", "scopes: operator.admin", "client test (cli)", key, "agent: main", c.id}},
		"a2": {"/help", []string{"Write a message"}},
		"a3": {"/STATUS", []string{"🧠 Model: fake/fake-1"}},
		"a4": {" /help /whoami ", []string{"Write a message", "👤 You are"}},
		"a5": {"/status /think high", []string{"Think: high", "Thinking level set to high."}},
		"a6": {"/elevated full", []string{"no elevated mode"}},
		"a7": {"/elev", []string{"no elevated mode"}},
		"a8": {"/exec host=node security=full", []string{"single exec host"}},
		"a9": {"/exec", []string{"single exec host"}},
	} {
		got := c.command(row.send, id)
		for _, want := range row.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %s", row.send, want, got)
			}
		}
		if strings.Contains(got, w.secret) {
			t.Errorf("%s shows the token", row.send)
		}
	}
}

// TestLoop8_WhatLooksLikeACommandIsText: paths, words, and what this gateway has not.
func TestLoop8_WhatLooksLikeACommandIsText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	for id, text := range map[string]string{
		"t1": "/status/foo", "t2": "and/help", "t3": "/elevated works how?", "t4": "/exec ls -l", "t5": "what is /exec host=x", "t6": "/trace it back",
	} {
		c.ok("chat.send", obj{"sessionKey": id, "message": text, "idempotencyKey": id}, nil)
		if got := c.finalText(id); got != "you said "+text {
			t.Errorf("%q: %q", text, got)
		}
		if _, err := run.Load(context.Background(), w.store, run.RefOf(session.DefaultTenant, id+":card")); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("%q has a card", text)
		}
	}
}

// TestLoop8_ASteeredMessageWithAShortcut: the card comes at once, the text goes into the
// turn that is at work.
func TestLoop8_ASteeredMessageWithAShortcut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		if d := c.say("/status and this too", "b", "steer"); d.Kind != "steered" {
			t.Errorf("%+v", d)
		}
		if card := c.finalText("b:card"); !strings.Contains(card, "running") {
			t.Errorf("%s", card)
		}
		w.model.let("hold 1")
		c.waited("b")
		w.idle(key)
		once(t, c.users(), "and this too")
		if strings.Contains(strings.Join(c.users(), "\n"), "/status") {
			t.Errorf("%q", c.users())
		}
	})
}
