package rpc_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"laneway/shared/blob/dir"
	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/table"
)

// TestLoop8_ARepeatedMessageChoosesNothingAnew: a message that comes again under its key
// takes no choice back that was made after it, and says what became of it.
func TestLoop8_ARepeatedMessageChoosesNothingAnew(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		send := func(text, id string) protocol.ChatSent {
			var sent protocol.ChatSent
			c.ok("chat.send", obj{"sessionKey": "s", "message": text, "idempotencyKey": id}, &sent)
			c.ok("agent.wait", obj{"runId": id, "timeoutMs": 15000}, nil)
			return sent
		}
		send("/think high", "k1")
		send("/model fake/fake-2 and answer", "k2")
		send("/queue collect", "k3")
		w.idle(key)
		send("/think low", "k4")
		send("/model fake/fake-1", "k5")
		send("/queue followup", "k6")
		for id, text := range map[string]string{"k1": "/think high", "k2": "/model fake/fake-2 and answer", "k3": "/queue collect"} {
			if sent := send(text, id); sent.Status != protocol.StatusOK {
				t.Errorf("%s: %+v", text, sent)
			}
		}
		e, err := session.LoadEntry(context.Background(), w.store, w.ref(key))
		must(t, err)
		if e.ThinkingLevel != "low" || e.ModelOverride != "fake-1" || e.QueueMode != "followup" {
			t.Errorf("%+v", e)
		}
		c.fails("chat.send", obj{"sessionKey": "s", "message": "/think max", "idempotencyKey": "k1"}, protocol.CodeInvalidRequest, "")
	})
}

// TestLoop8_DirectivesBesideFiles: a message with a file is answered as its directives
// say, and the model does not see them; nothing of it is kept.
func TestLoop8_DirectivesBesideFiles(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"chat.send", "agent"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			blobs, err := dir.Open(dir.Config{Path: t.TempDir()})
			must(t, err)
			w := setup(t, withFiles(blobs))
			c := w.user()
			file := obj{"type": "image", "mimeType": "image/png", "content": "iVBORw0KGgo="}
			for id, text := range map[string]string{"k1": "/fast on what is this?", "k2": "what /fast is this? /reasoning on", "k3": "/fast on"} {
				c.ok(method, obj{"sessionKey": "s", "message": text, "idempotencyKey": id, "attachments": []obj{file}}, nil)
				c.ok("agent.wait", obj{"runId": id, "timeoutMs": 15000}, nil)
				w.idle(key)
				got := w.model.texts()
				if last := got[len(got)-1]; strings.Contains(last, "on") || id == "k2" && !strings.Contains(last, "/fast") {
					t.Errorf("%s: the model was asked %q", text, last)
				}
			}
			e, err := session.LoadEntry(context.Background(), w.store, w.ref(key))
			must(t, err)
			if e.FastMode != "" || e.ReasoningLevel != "" {
				t.Errorf("%+v", e)
			}
		})
	}
}

// before does something before a write that comes after it was armed.
type before struct {
	table.Store

	do atomic.Pointer[func()]
}

func (b *before) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	if f := b.do.Swap(nil); f != nil {
		(*f)()
	}
	return b.Store.Write(ctx, ops...)
}

// TestRuntime23_QueueSettingsTakeNothingFromOthers: a /queue command at the same time as
// a change of other preferences loses neither.
func TestRuntime23_QueueSettingsTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	b := &before{}
	w := setup(t, stored(func(s table.Store) table.Store { b.Store = s; return b }))
	c := w.user()
	c.ok("sessions.patch", obj{"key": "s", "label": "old"}, nil)
	patch := func() {
		_, err := session.UpdateEntry(context.Background(), b.Store, w.ref(key), func(e *session.Entry) error { e.Label = "new"; return nil })
		if err != nil {
			t.Error(err)
		}
	}
	b.do.Store(&patch)
	c.ok("chat.send", obj{"sessionKey": "s", "message": "/queue collect", "idempotencyKey": "k1"}, nil)
	e, err := session.LoadEntry(context.Background(), w.store, w.ref(key))
	must(t, err)
	if e.Label != "new" || e.QueueMode != "collect" {
		t.Errorf("%+v", e)
	}
}

// TestRuntime23_ADebounceIsANumber: what is none changes nothing.
func TestRuntime23_ADebounceIsANumber(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	for _, text := range []string{"/queue debounce:nan", "/queue debounce:NaNs", "/queue debounce:inf", "/queue debounce:-1"} {
		c.ok("chat.send", obj{"sessionKey": "s", "message": text, "idempotencyKey": text}, nil)
		f := c.find("an answer to "+text, 1, func(f *protocol.Frame) bool {
			return f.Event == protocol.EventChat && strings.Contains(string(f.Payload), text)
		})
		if !strings.Contains(string(f.Payload), "Invalid debounce") {
			t.Errorf("%s: %s", text, f.Payload)
		}
	}
}

// TestLoop8_WhatIsKeptIsKnown: a level that no model has, and an id that is none, are
// refused by name, wherever a session or a message may say one.
func TestLoop8_WhatIsKeptIsKnown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.fails("sessions.create", obj{"key": "s", "thinkingLevel": "banana"}, protocol.CodeInvalidRequest, "at /thinkingLevel: must be one of off")
	c.fails("chat.send", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "k1", "thinking": "banana"}, protocol.CodeInvalidRequest, "at /thinking: must be one of off")
	c.fails("agent", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "k1", "thinking": "banana"}, protocol.CodeInvalidRequest, "at /thinking: must be one of off")
	for _, id := range []string{"a b", "a\nb", "a\u0000b"} {
		c.fails("sessions.patch", obj{"key": "s", "model": "fake/" + id}, protocol.CodeInvalidRequest, "unknown model")
		c.fails("sessions.create", obj{"key": "s", "model": "fake/" + id}, protocol.CodeInvalidRequest, "unknown model")
	}
	c.ok("chat.send", obj{"sessionKey": "s", "message": "/model fake/" + strings.Repeat("x", 100_000), "idempotencyKey": "k2"}, nil)
	e, err := session.LoadEntry(context.Background(), w.store, w.ref(key))
	must(t, err)
	if e.ModelOverride != "" || e.ThinkingLevel != "" {
		t.Errorf("kept %d bytes of a model, thinking %q", len(e.ModelOverride), e.ThinkingLevel)
	}
	c.ok("sessions.create", obj{"key": "s", "thinkingLevel": "MID", "model": "fake/not-listed"}, nil)
	if e, err = session.LoadEntry(context.Background(), w.store, w.ref(key)); err != nil || e.ThinkingLevel != "medium" || e.ModelOverride != "not-listed" {
		t.Errorf("%+v, %v", e, err)
	}
}
