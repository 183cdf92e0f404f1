package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/transcript"
	"laneway/shared/wiring"
)

func keysOf(l protocol.SessionsList) (out []string) {
	for _, s := range l.Sessions {
		out = append(out, strings.TrimPrefix(s.Key, "agent:main:"))
	}
	return out
}

func (c *client) list(params obj) protocol.SessionsList {
	c.t.Helper()
	var l protocol.SessionsList
	c.ok("sessions.list", params, &l)
	return l
}

func TestSessionsList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	if l := c.list(nil); l.Count != 0 || l.HasMore || l.Sessions == nil || l.Defaults == nil {
		t.Errorf("%+v", l)
	}
	for _, k := range []string{"a", "b", "c"} {
		c.says(k, "k"+k, "hello")
		w.idle("agent:main:" + k)
	}
	c.post("agent", obj{"sessionKey": "busy", "message": "hold", "idempotencyKey": "busy"})
	w.model.waitFor(t, "hold")
	c.ok("sessions.create", obj{"key": "made", "label": "Made by hand"}, nil)
	c.ok("sessions.patch", obj{"key": "b", "label": "Bee", "pinned": true}, nil)
	for _, q := range []struct {
		params obj
		want   []string
		more   bool
	}{
		{nil, []string{"busy", "made", "c", "b", "a"}, false},
		{obj{"limit": 2}, []string{"busy", "made"}, true},
		{obj{"limit": 2, "offset": 2}, []string{"c", "b"}, true},
		{obj{"limit": 2, "offset": 4}, []string{"a"}, false},
		{obj{"offset": 9}, nil, false},
		{obj{"activeOnly": true}, []string{"busy"}, false},
		{obj{"label": "Bee"}, []string{"b"}, false},
		{obj{"search": "HAND"}, []string{"made"}, false},
		{obj{"pinned": true}, []string{"b"}, false},
		{obj{"agentId": "other"}, nil, false},
		{obj{"activeMinutes": 60}, []string{"busy", "made", "c", "b", "a"}, false},
	} {
		l := c.list(q.params)
		if got := keysOf(l); !slices.Equal(got, q.want) || l.HasMore != q.more {
			t.Errorf("%v: %v, more %v; want %v, %v", q.params, got, l.HasMore, q.want, q.more)
		}
		if q.more && l.NextOffset == 0 {
			t.Errorf("%v: no next offset", q.params)
		}
	}
	l := c.list(obj{"includeLastMessage": true})
	if r := l.Sessions[0]; !r.HasActiveRun || !slices.Equal(r.ActiveRunIDs, []string{"busy"}) || r.Status != "running" || r.UpdatedAt == nil {
		t.Errorf("%+v", r)
	}
	if r := l.Sessions[2]; r.LastMessage != "you said hello" || r.HasActiveRun || r.Status != "done" || r.LastRunID != "kc" {
		t.Errorf("%+v", r)
	}
	c.ok("sessions.patch", obj{"key": "a", "archived": true}, nil)
	if got := keysOf(c.list(nil)); slices.Contains(got, "a") {
		t.Errorf("an archived session is listed: %v", got)
	}
	if got := keysOf(c.list(obj{"archived": true})); !slices.Equal(got, []string{"a"}) {
		t.Errorf("archived: %v", got)
	}
	if got := keysOf(c.list(obj{"archived": "all"})); len(got) != 5 {
		t.Errorf("all: %v", got)
	}
	c.fails("sessions.list", obj{"bogus": 1}, protocol.CodeInvalidRequest, "unexpected property 'bogus'")
}

// lagging is a store whose index still shows what is gone.
type lagging struct {
	table.Store
	ghost string
}

func (l *lagging) Index(ctx context.Context, q table.IndexQuery) (table.KeyPage, error) {
	p, err := l.Store.Index(ctx, q)
	if q.After == "" && q.Index == table.IndexRecent && l.ghost != "" {
		ghost := session.Ref{Tenant: session.DefaultTenant, Key: l.ghost}
		p.Keys = append([]table.IndexKey{{Key: ghost.MetaKey(), SK: "~"}}, p.Keys...)
		if len(p.Keys) > 1 {
			p.Keys = append(p.Keys, p.Keys[1]) // and shows one twice
		}
	}
	return p, err
}

// TestSessionsList_AStaleIndexShowsNothingThatIsNotThere: rows are made of the items
// themselves.
func TestSessionsList_AStaleIndexShowsNothingThatIsNotThere(t *testing.T) {
	t.Parallel()
	l := &lagging{}
	w := setup(t, stored(func(s table.Store) table.Store { l.Store = s; return l }))
	c := w.user()
	c.says("a", "k", "hello")
	w.idle("agent:main:a")
	c.says("gone", "k2", "hello")
	w.idle("agent:main:gone")
	c.ok("sessions.delete", obj{"key": "gone"}, nil)
	for _, ghost := range []string{"agent:main:gone", "agent:main:never"} {
		l.ghost = ghost
		if got := keysOf(c.list(nil)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: %v", ghost, got)
		}
	}
}

func TestS4_ListsFitTheirFrame(t *testing.T) {
	t.Parallel()
	const limit = 12_000
	w := setup(t, noRunner, settings(func(s *wiring.Settings) { s.MaxFrame = limit }))
	c := w.user()
	for i := range 40 {
		c.ok("sessions.create", obj{"key": fmt.Sprint("s", i), "label": strings.Repeat("\x01", 300)}, nil)
	}
	seen := map[string]bool{}
	for offset, pages := 0, 0; ; pages++ {
		f := c.call("sessions.list", obj{"limit": 100, "offset": offset})
		if !f.OK || len(f.Payload) > limit || pages > 50 {
			t.Fatalf("page %d: ok %v, %d bytes", pages, f.OK, len(f.Payload))
		}
		var l protocol.SessionsList
		into(t, f, &l)
		for _, s := range l.Sessions {
			if seen[s.Key] {
				t.Errorf("%s twice", s.Key)
			}
			seen[s.Key] = true
		}
		if !l.HasMore {
			break
		}
		offset = l.NextOffset
	}
	if len(seen) != 40 {
		t.Errorf("%d sessions", len(seen))
	}
}

func TestSessionsDescribeAndResolve(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	var d protocol.SessionDescribed
	f := c.call("sessions.describe", obj{"key": "s"})
	if string(f.Payload) != `{"session":null}` {
		t.Errorf("%s", f.Payload)
	}
	c.says("s", "k", "hello")
	w.idle(key)
	c.ok("sessions.describe", obj{"key": "s", "includeLastMessage": true}, &d)
	if r := d.Session; r == nil || r.Key != key || r.SessionID == "" || r.LastMessage != "you said hello" || r.EffectiveQueueMode == "" || *r.QueueCap != 20 || *r.QueueDebounceMs != 500 || r.QueueDrop != "summarize" {
		t.Errorf("%+v", d.Session)
	}
	c.ok("sessions.patch", obj{"key": "s", "label": "My label"}, nil)
	for _, p := range []obj{{"key": "S"}, {"key": key}, {"sessionId": d.Session.SessionID}, {"label": "My label"}, {"shortId": d.Session.SessionID[:8]}, {"key": "s", "agentId": "main"}} {
		f := c.call("sessions.resolve", p)
		if string(f.Payload) != `{"ok":true,"key":"agent:main:s","agentId":"main"}` {
			t.Errorf("%v: %s %v", p, f.Payload, f.Err)
		}
	}
	for _, p := range []obj{{"key": "nope"}, {"sessionId": "nope"}, {"label": "nope"}, {"shortId": "nope"}, {"label": "My label", "agentId": "other"}} {
		c.fails("sessions.resolve", p, protocol.CodeInvalidRequest, "No session found: ")
		p["allowMissing"] = true
		if f := c.call("sessions.resolve", p); string(f.Payload) != `{"ok":false}` {
			t.Errorf("%v: %s", p, f.Payload)
		}
	}
	c.fails("sessions.resolve", obj{}, protocol.CodeInvalidRequest, "one of")
	c.fails("sessions.resolve", obj{"reference": obj{}}, protocol.CodeInvalidRequest, "not supported")
	c.fails("sessions.describe", obj{"key": "agent:nobody:x"}, protocol.CodeInvalidRequest, "unknown agent")
}

func TestSessionsPreview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "k", "hello")
	w.idle(key)
	c.ok("sessions.create", obj{"key": "empty"}, nil)
	var p protocol.SessionsPreview
	c.ok("sessions.preview", obj{"keys": []string{"s", "empty", "nope", "agent::"}}, &p)
	want := `[{"key":"s","status":"ok","items":[{"role":"user","text":"hello"},{"role":"assistant","text":"you said hello"}]},` +
		`{"key":"empty","status":"empty","items":[]},{"key":"nope","status":"missing","items":[]},{"key":"agent::","status":"missing","items":[]}]`
	if got, _ := json.Marshal(p.Previews); string(got) != want {
		t.Errorf("%s", got)
	}
	c.ok("sessions.preview", obj{"keys": []string{"s"}, "limit": 1, "maxChars": 20}, &p)
	if len(p.Previews[0].Items) != 1 || p.Previews[0].Items[0].Role != "assistant" {
		t.Errorf("%+v", p)
	}
	c.fails("sessions.preview", obj{"keys": []string{}}, protocol.CodeInvalidRequest, "/keys")
}

func TestSessionsPatch(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	var ch protocol.SessionChanged
	c.ok("sessions.patch", obj{
		"key": "s", "label": "L", "thinkingLevel": "high", "verboseLevel": "on", "reasoningLevel": "low", "fastMode": "auto", "model": "fake/fake-2",
		"queueMode": "collect", "queueDebounceMs": 10, "queueCap": 3, "queueDrop": "old", "sendPolicy": "deny", "category": "work",
	}, &ch)
	if !ch.OK || ch.Key != key || ch.SessionID == "" || ch.Resolved.Model != "fake-2" {
		t.Errorf("%+v", ch)
	}
	var d protocol.SessionDescribed
	c.ok("sessions.describe", obj{"key": "s"}, &d)
	r := d.Session
	if r == nil || r.Label != "L" || r.ThinkingLevel != "high" || r.VerboseLevel != "on" || r.ReasoningLevel != "low" || r.FastMode != "auto" || r.Model != "fake-2" ||
		r.QueueMode != "collect" || r.EffectiveQueueMode != "collect" || *r.QueueDebounceMs != 10 || *r.QueueCap != 3 || r.QueueDrop != "old" || r.SendPolicy != "deny" || r.Category != "work" {
		t.Errorf("%+v", r)
	}
	c.ok("sessions.patch", obj{"key": "s", "label": nil, "model": nil, "queueCap": nil, "fastMode": nil}, &ch)
	d = protocol.SessionDescribed{}
	c.ok("sessions.describe", obj{"key": "s"}, &d)
	if r := d.Session; r.Label != "" || r.Model != "fake-1" || *r.QueueCap != 20 || r.FastMode != nil || r.ThinkingLevel != "high" {
		t.Errorf("null takes back: %+v", r)
	}
	c.fails("sessions.patch", obj{"key": "s", "model": "nobody/knows"}, protocol.CodeInvalidRequest, "unknown model")
	c.fails("sessions.patch", obj{"key": "s", "execHost": "h"}, protocol.CodeInvalidRequest, "/execHost: is not supported")
	c.fails("sessions.patch", obj{"key": "s", "queueMode": "jump"}, protocol.CodeInvalidRequest, "/queueMode")
	c.fails("sessions.patch", obj{"key": "s", "expectedSessionId": "other", "label": "x"}, protocol.CodeUnavailable, "another one")
	c.fails("sessions.patch", obj{}, protocol.CodeInvalidRequest, "'key'")
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
	d = protocol.SessionDescribed{}
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

func TestSessionsAbort_AnswersWhenTheEndIsWritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	nothing := `{"ok":true,"abortedRunId":null,"status":"aborted"}`
	for _, p := range []obj{{"key": "s"}, {"runId": "unknown"}, {"key": "s", "runId": "unknown"}, {"key": "s", "clearQueued": false}} {
		if f := c.call("sessions.abort", p); string(f.Payload) != nothing {
			t.Errorf("%v: %s %v", p, f.Payload, f.Err)
		}
	}
	for i, p := range []obj{{"key": "s"}, {"runId": "a1"}, {"key": "s", "runId": "a2"}, {"key": "s", "clearQueued": false}} {
		id, next := fmt.Sprint("a", i), fmt.Sprint("b", i)
		c.ok("chat.send", obj{"sessionKey": "s", "message": "hold " + id, "idempotencyKey": id}, nil)
		w.model.waitFor(t, "hold "+id)
		c.ok("chat.send", obj{"sessionKey": "s", "message": "next " + next, "idempotencyKey": next, "queueMode": "followup"}, nil)
		f := c.call("sessions.abort", p)
		if string(f.Payload) != `{"ok":true,"abortedRunId":"`+id+`","status":"aborted"}` {
			t.Errorf("%v: %s %v", p, f.Payload, f.Err)
		}
		st, err := run.Load(context.Background(), w.store, run.RefOf("default", id))
		if err != nil || !st.Done() || st.Outcome.Kind != run.Aborted {
			t.Errorf("%v: answered before the end: %+v, %v", p, st.Outcome, err)
		}
		w.idle(key)
		want := 1
		if i == 0 {
			want = 0 // without a run id all of it is stopped
		}
		if got := w.model.count("next " + next); got != want {
			t.Errorf("%v: the run that waited ran %d times, want %d", p, got, want)
		}
	}
	c.fails("sessions.abort", obj{}, protocol.CodeInvalidRequest, "one of key, runId")
}

func TestSessionsReset(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.fails("sessions.reset", obj{"key": "s"}, protocol.CodeInvalidRequest, "No session found")
	c.says("s", "a", "the past")
	w.idle(key)
	c.ok("sessions.patch", obj{"key": "s", "label": "L"}, nil)
	held := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "held"})
	w.model.waitFor(t, "hold")
	waits := c.post("agent", obj{"sessionKey": "s", "message": "waits", "idempotencyKey": "waits"})
	before := w.meta(key)
	var ch protocol.SessionChanged
	c.ok("sessions.reset", obj{"key": "s", "reason": "new"}, &ch)
	if !ch.OK || ch.SessionID != before.SessionID {
		t.Errorf("%+v", ch)
	}
	for _, r := range []string{held, waits} {
		var f protocol.Final
		into(t, c.answer(r, 2), &f)
		if f.Summary != "aborted" {
			t.Errorf("%+v", f)
		}
	}
	h, _ := c.history(obj{})
	if len(h.Messages) != 0 || h.TotalMessages != 0 || h.SessionInfo.Label != "L" || h.SessionInfo.TotalTokens != 0 {
		t.Errorf("%+v", h)
	}
	c.says("s", "b", "the present")
	m := w.idle(key)
	if got := w.model.texts(); !slices.Equal(got, []string{"the present"}) {
		t.Errorf("the model was asked %q", got)
	}
	rows, err := w.core.Transcripts.Range(context.Background(), w.ref(key), m.SessionID, m.Base, m.Base)
	if err != nil || rows[0].Type != transcript.Reset || rows[0].Reason != "new" {
		t.Errorf("%+v, %v", rows, err)
	}
	c.fails("sessions.reset", obj{"key": "s", "expectedSessionId": "other"}, protocol.CodeUnavailable, "another one")
	c.fails("sessions.reset", obj{"key": "s", "reason": "boredom"}, protocol.CodeInvalidRequest, "/reason")
}

// TestC1_ADeletedSessionKeepsItsTokenAndSequence: it is out of sight at once, and its
// key can be used again; nothing of the past comes back, and no number is used twice.
func TestC1_ADeletedSessionKeepsItsTokenAndSequence(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "a", "the past")
	w.idle(key)
	c.ok("sessions.patch", obj{"key": "s", "label": "L"}, nil)
	held := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "held"})
	w.model.waitFor(t, "hold")
	before := w.meta(key)
	f := c.call("sessions.delete", obj{"key": "s"})
	if string(f.Payload) != `{"ok":true,"key":"agent:main:s","deleted":true,"archived":[]}` {
		t.Fatalf("%s %v", f.Payload, f.Err)
	}
	c.answer(held, 2)
	gone := func() {
		t.Helper()
		if f := c.call("sessions.describe", obj{"key": "s"}); string(f.Payload) != `{"session":null}` {
			t.Errorf("describe: %s", f.Payload)
		}
		if l := c.list(nil); len(l.Sessions) != 0 {
			t.Errorf("list: %v", keysOf(l))
		}
		c.fails("sessions.resolve", obj{"sessionId": before.SessionID}, protocol.CodeInvalidRequest, "No session found")
		c.fails("sessions.reset", obj{"key": "s"}, protocol.CodeInvalidRequest, "No session found")
		if h, _ := c.history(obj{}); len(h.Messages) != 0 || h.SessionID != "" {
			t.Errorf("history: %+v", h)
		}
	}
	gone()
	if f := c.call("sessions.delete", obj{"key": "s"}); !strings.Contains(string(f.Payload), `"deleted":false`) {
		t.Errorf("again: %s", f.Payload)
	}
	m := w.idle(key)
	if m.Token <= before.Token || m.Seq != before.Seq || m.SessionID == before.SessionID || m.Head != 0 || m.Base != 0 {
		t.Errorf("before %+v\nafter %+v", before, m)
	}
	rows, err := w.store.Query(context.Background(), table.Query{Table: table.Sessions, PK: w.ref(key).TranscriptPK(before.SessionID)})
	if err != nil || len(rows.Items) != 0 {
		t.Errorf("%d rows left, %v", len(rows.Items), err)
	}
	gone()
	c.says("s", "b", "a new start")
	m2 := w.idle(key)
	if m2.Seq <= m.Seq || m2.Token <= m.Token || m2.SessionID != m.SessionID {
		t.Errorf("used again: %+v", m2)
	}
	if got := w.model.texts(); !slices.Equal(got, []string{"a new start"}) {
		t.Errorf("the model was asked %q", got)
	}
	var d protocol.SessionDescribed
	if c.ok("sessions.describe", obj{"key": "s"}, &d); d.Session == nil || d.Session.Label != "" {
		t.Errorf("%+v", d.Session)
	}
	if l := c.list(nil); len(l.Sessions) != 1 {
		t.Errorf("list: %v", keysOf(l))
	}
	c.fails("sessions.delete", obj{"key": "main"}, protocol.CodeInvalidRequest, "Cannot delete the main session")
	c.fails("sessions.delete", obj{"key": "s", "expectedSessionId": before.SessionID}, protocol.CodeUnavailable, "another one")
}

func TestSessionsDelete_CanKeepTheTranscript(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "a", "the past")
	sid := w.idle(key).SessionID
	c.ok("sessions.delete", obj{"key": "s", "deleteTranscript": false}, nil)
	if h, _ := c.history(obj{"sessionId": sid}); len(h.Messages) != 2 {
		t.Errorf("%d rows", len(h.Messages))
	}
	c.ok("sessions.create", obj{"key": "s"}, nil)
	if l := c.list(nil); len(l.Sessions) != 1 {
		t.Errorf("made again: %v", keysOf(l))
	}
}

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

func TestLists(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	for method, want := range map[string]string{
		"question.list":        `{"questions":[]}`,
		"plugin.approval.list": `[]`,
		"agents.list": `{"defaultId":"main","ownership":"explicit","selectionRequired":false,"mainKey":"main","scope":"per-sender","agents":[` +
			`{"id":"main","kind":"agent","name":"Main","workspace":"/w","model":{"primary":"fake/fake-1"}},{"id":"other","kind":"agent","model":{"primary":"fake/fake-2"}}]}`,
		"models.list": `{"models":[{"id":"fake-1","name":"Fake One","provider":"fake","available":true,"contextWindow":1000},{"id":"fake-2","name":"fake-2","provider":"fake","available":true}]}`,
	} {
		if f := c.call(method, obj{}); !f.OK || string(f.Payload) != want {
			t.Errorf("%s: %s %v", method, f.Payload, f.Err)
		}
	}
	var models protocol.ModelsList
	if c.ok("models.list", obj{"provider": "nobody"}, &models); models.Models == nil || len(models.Models) != 0 {
		t.Errorf("%+v", models)
	}
	var cmds protocol.CommandsList
	c.ok("commands.list", obj{"scope": "text", "includeArgs": false}, &cmds)
	var names []string
	for _, x := range cmds.Commands {
		names = append(names, x.Name)
		if len(x.Args) > 0 {
			t.Errorf("%s has args", x.Name)
		}
	}
	if !slices.Equal(names, []string{"stop", "new", "reset", "queue"}) {
		t.Errorf("%v", names)
	}
	var meta protocol.ChatMetadata
	if c.ok("chat.metadata", obj{"sessionKey": "s"}, &meta); len(meta.Models) != 2 || len(meta.Commands) != 4 {
		t.Errorf("%+v", meta)
	}
	for _, m := range []string{"health", "status"} {
		c.ok(m, nil, nil)
	}
}
