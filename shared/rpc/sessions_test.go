package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/table"
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

func TestLists(t *testing.T) {
	t.Parallel()
	const levels = `,"thinkingLevels":[{"id":"off","label":"off"},{"id":"minimal","label":"minimal"},{"id":"low","label":"low"},{"id":"medium","label":"medium"},{"id":"high","label":"high"}]}`
	w := setup(t, noRunner)
	c := w.user()
	for method, want := range map[string]string{
		"question.list":        `{"questions":[]}`,
		"plugin.approval.list": `[]`,
		"agents.list": `{"defaultId":"main","ownership":"explicit","selectionRequired":false,"mainKey":"main","scope":"per-sender","agents":[` +
			`{"id":"main","kind":"agent","name":"Main","workspace":"/w","model":{"primary":"fake/fake-1"}},{"id":"other","kind":"agent","model":{"primary":"fake/fake-2"}}]}`,
		"models.list": `{"models":[{"id":"fake-1","name":"Fake One","provider":"fake","tags":["default"],"available":true,"contextWindow":1000` + levels +
			`,{"id":"fake-2","name":"fake-2","provider":"fake","available":true` + levels + `]}`,
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
	if !slices.Equal(names, []string{"help", "commands", "status", "usage", "whoami", "model", "think", "verbose", "trace", "reasoning", "fast", "stop", "new", "reset", "queue"}) {
		t.Errorf("%v", names)
	}
	var meta protocol.ChatMetadata
	if c.ok("chat.metadata", obj{"sessionKey": "s"}, &meta); len(meta.Models) != 2 || len(meta.Commands) != len(names) {
		t.Errorf("%+v", meta)
	}
	for _, m := range []string{"health", "status"} {
		c.ok(m, nil, nil)
	}
}
