package rpc_test

import (
	"strings"
	"sync"
	"testing"

	"laneway/shared/protocol"
)

func TestSessionsPatch(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	var ch protocol.SessionChanged
	c.ok("sessions.patch", obj{
		"key": "s", "label": "L", "thinkingLevel": "high", "verboseLevel": "on", "reasoningLevel": "stream", "fastMode": "auto", "model": "fake/fake-2",
		"queueMode": "collect", "queueDebounceMs": 10, "queueCap": 3, "queueDrop": "old", "sendPolicy": "deny", "category": "work",
	}, &ch)
	if !ch.OK || ch.Key != key || ch.SessionID == "" || ch.Resolved.Model != "fake-2" {
		t.Errorf("%+v", ch)
	}
	var d protocol.SessionDescribed
	c.ok("sessions.describe", obj{"key": "s"}, &d)
	r := d.Session
	if r == nil || r.Label != "L" || r.ThinkingLevel != "high" || r.VerboseLevel != "on" || r.ReasoningLevel != "stream" || r.FastMode != "auto" || r.Model != "fake-2" ||
		r.QueueMode != "collect" || r.EffectiveQueueMode != "collect" || *r.QueueDebounceMs != 10 || *r.QueueCap != 3 || r.QueueDrop != "old" || r.SendPolicy != "deny" || r.Category != "work" {
		t.Errorf("%+v", r)
	}
	c.ok("sessions.patch", obj{"key": "s", "label": nil, "model": nil, "queueCap": nil, "fastMode": nil}, &ch)
	d = protocol.SessionDescribed{}
	c.ok("sessions.describe", obj{"key": "s"}, &d)
	if r := d.Session; r.Label != "" || r.Model != "fake-1" || *r.QueueCap != 20 || r.FastMode != nil || r.ThinkingLevel != "high" {
		t.Errorf("null takes back: %+v", r)
	}
	c.fails("sessions.patch", obj{"key": "s", "model": "nobody/knows"}, protocol.CodeInvalidRequest, `at /model: unknown model "nobody/knows"`)
	c.fails("sessions.patch", obj{"key": "s", "execHost": "h"}, protocol.CodeInvalidRequest, "/execHost: is not supported")
	c.fails("sessions.patch", obj{"key": "s", "queueMode": "jump"}, protocol.CodeInvalidRequest, "/queueMode")
	c.fails("sessions.patch", obj{"key": "s", "expectedSessionId": "other", "label": "x"}, protocol.CodeUnavailable, "another one")
	c.fails("sessions.patch", obj{}, protocol.CodeInvalidRequest, "'key'")
}

// TestSessionsPatch_VerboseIsForAdmins: as the command is.
func TestSessionsPatch_VerboseIsForAdmins(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.scoped(protocol.ScopeRead, protocol.ScopeWrite)
	c.ok("sessions.patch", obj{"key": "s", "label": "L"}, nil)
	c.fails("sessions.patch", obj{"key": "s", "verboseLevel": "full", "label": "M"}, protocol.CodeForbidden, protocol.ScopeAdmin)
	var d protocol.SessionDescribed
	c.ok("sessions.describe", obj{"key": "s"}, &d)
	if d.Session.VerboseLevel != "" || d.Session.Label != "L" {
		t.Errorf("%+v", d.Session)
	}
}

// TestSessionsPatch_ConcurrentChangesAreAllKept: no patch writes back what another
// one has changed.
func TestSessionsPatch_ConcurrentChangesAreAllKept(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	var wg sync.WaitGroup
	for _, p := range []obj{{"label": "L"}, {"thinkingLevel": "high"}, {"queueMode": "collect"}, {"category": "c"}, {"pinned": true}} {
		p["key"] = "s"
		wg.Go(func() {
			for range 3 {
				if f := c.call("sessions.patch", p); !f.OK {
					t.Error(f.Err)
				}
			}
		})
	}
	wg.Wait()
	var d protocol.SessionDescribed
	c.ok("sessions.describe", obj{"key": "s"}, &d)
	if r := d.Session; r.Label != "L" || r.ThinkingLevel != "high" || r.QueueMode != "collect" || r.Category != "c" || !r.Pinned {
		t.Errorf("%+v", r)
	}
}

func TestSessionsCreateAndSend(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	var made protocol.SessionChanged
	c.ok("sessions.create", obj{"agentId": "other", "label": "L", "model": "fake-1"}, &made)
	if !strings.HasPrefix(made.Key, "agent:other:dashboard:") || made.SessionID == "" || made.RunStarted == nil || *made.RunStarted || made.Resolved.Model != "fake-1" {
		t.Errorf("%+v", made)
	}
	var r protocol.SessionResolved
	if c.ok("sessions.resolve", obj{"sessionId": made.SessionID}, &r); r.Key != made.Key {
		t.Errorf("%+v", r)
	}
	with := obj{"message": "hello", "idempotencyKey": "once"}
	var first, again protocol.SessionChanged
	c.ok("sessions.create", with, &first)
	c.ok("sessions.create", with, &again)
	if first.Key != again.Key || first.RunID != "once" || again.RunID != "once" || !*first.RunStarted || !*again.RunStarted {
		t.Errorf("%+v\n%+v", first, again)
	}
	c.find("its run", 1, chatEvent("final", "once"))
	w.idle(first.Key)
	if w.model.count("hello") != 1 {
		t.Error("a repeat ran again")
	}
	var sent protocol.ChatSent
	c.ok("sessions.send", obj{"key": made.Key, "message": "hi"}, &sent)
	if sent.RunID == "" || sent.Status != "started" {
		t.Errorf("%+v", sent)
	}
	c.find("its run", 1, chatEvent("final", sent.RunID))
	c.ok("sessions.send", obj{"key": made.Key, "message": "hi there", "idempotencyKey": "mine"}, &sent)
	c.find("its run", 1, chatEvent("final", "mine"))
	w.idle(made.Key)
	if c.ok("sessions.send", obj{"key": made.Key, "message": "hi there", "idempotencyKey": "mine"}, &sent); sent.Status != "ok" {
		t.Errorf("a repeat: %+v", sent)
	}
	c.fails("sessions.send", obj{"key": "s", "message": ""}, protocol.CodeInvalidRequest, "message or attachment")
	c.fails("sessions.create", obj{"fork": true}, protocol.CodeInvalidRequest, "/fork")
	c.fails("sessions.create", obj{"model": "x"}, protocol.CodeInvalidRequest, "unknown model")
	c.fails("sessions.create", obj{"key": "agent:main:x", "agentId": "other"}, protocol.CodeInvalidRequest, "does not match")
}
