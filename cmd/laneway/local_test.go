package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/shared/queueing"
	"laneway/shared/session"
)

// environment is one of a few variables, with the built-in model.
func environment(vars map[string]string) func(string) string {
	return func(name string) string {
		if name == "LANEWAY_MODEL" {
			return "demo"
		}
		return vars[name]
	}
}

// served is a gateway on this machine, as serve opens it over a directory, and a
// connection to it; end ends both. It is ended with the test at the latest.
func served(t *testing.T, dir string, vars map[string]string) (c *client.Conn, end func()) {
	t.Helper()
	server, err := openLocal(t.Context(), localConfig{
		Data: dir, Listen: "127.0.0.1:0", Token: "secret", Env: environment(vars), Stderr: io.Discard, Quiet: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(serving) }()
	c, err = client.Dial(t.Context(), client.Config{URL: server.URL(), Token: server.Token()})
	end = sync.OnceFunc(func() {
		if c != nil {
			c.Close()
		}
		stop()
		if err := errors.Join(<-ended, server.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	if err != nil {
		t.Fatal(err)
	}
	return c, end
}

// TestServe_SettingsByChannelAndType: what the environment says in sections holds for
// the sessions of each place, over a real connection.
func TestServe_SettingsByChannelAndType(t *testing.T) {
	t.Parallel()
	c, _ := served(t, t.TempDir(), map[string]string{
		"LANEWAY_QUEUE":            "steer cap:7; channel/slack: collect debounce:2s; channel/telegram: debounce:300ms",
		"LANEWAY_SESSION_RESET":    "daily@4,idle:60; type/group: idle:30; type/thread: atHour:6; channel/discord: none",
		"LANEWAY_INBOUND_DEBOUNCE": "0; channel/slack: 1ms",
	})
	for i, row := range []struct {
		key  string
		want protocol.ExplainedSettings
	}{
		{"agent:main:main", protocol.ExplainedSettings{Channel: "webchat", ChatType: "direct", QueueMode: "steer", QueueDebounceMs: 500, Reset: "daily@4,idle:60"}},
		{"agent:main:main:thread:t", protocol.ExplainedSettings{Channel: "webchat", ChatType: "thread", QueueMode: "steer", QueueDebounceMs: 500, Reset: "daily@6,idle:60"}},
		{"agent:main:slack:channel:c", protocol.ExplainedSettings{Channel: "slack", ChatType: "group", QueueMode: "collect", QueueDebounceMs: 2000, InboundMs: 1, Reset: "idle:30"}},
		{"agent:main:telegram:direct:p", protocol.ExplainedSettings{Channel: "telegram", ChatType: "direct", QueueMode: "steer", QueueDebounceMs: 300, Reset: "daily@4,idle:60"}},
		{"agent:main:discord:group:g", protocol.ExplainedSettings{Channel: "discord", ChatType: "group", QueueMode: "steer", QueueDebounceMs: 500, Reset: "none"}},
	} {
		var sent protocol.ChatSent
		run := fmt.Sprint("r", i)
		if err := c.Call(t.Context(), "chat.send", map[string]any{"sessionKey": row.key, "message": "hello", "idempotencyKey": run}, &sent); err != nil {
			t.Fatal(err)
		}
		if waits := sent.Disposition.Reason == "debounce"; waits != (row.want.InboundMs > 0) {
			t.Errorf("%s: %+v", row.key, sent.Disposition)
		}
		var e protocol.SessionExplained
		if err := c.Call(t.Context(), "sessions.explain", map[string]any{"key": row.key}, &e); err != nil {
			t.Fatal(err)
		}
		row.want.QueueCap, row.want.QueueDrop = 7, "summarize"
		if e.Settings != row.want {
			t.Errorf("%s: %+v, want %+v", row.key, e.Settings, row.want)
		}
	}
}

// TestServe_TextsThatWaitOutliveTheirProcess: they are in the tables, and one turn there
// is made of them by the gateway that comes next.
func TestServe_TextsThatWaitOutliveTheirProcess(t *testing.T) {
	t.Parallel()
	dir, vars := t.TempDir(), map[string]string{"LANEWAY_INBOUND_DEBOUNCE": "1s"}
	c, end := served(t, dir, vars)
	for _, text := range []string{"one", "two"} {
		if err := c.Call(t.Context(), "chat.send", map[string]any{"sessionKey": "s", "message": text, "idempotencyKey": text}, nil); err != nil {
			t.Fatal(err)
		}
	}
	end()
	c, _ = served(t, dir, vars)
	final := make(chan struct{}, 8)
	c.Subscribe(func(e client.Event) {
		if e.Name == protocol.EventChat && strings.Contains(string(e.Payload), `"state":"final"`) {
			final <- struct{}{}
		}
	})
	ask := func(method string, params map[string]any, out any) {
		t.Helper()
		if err := c.Call(t.Context(), method, params, out); err != nil {
			t.Fatal(err)
		}
	}
	ask("sessions.messages.subscribe", map[string]any{"key": "s"}, nil)
	wait := func() (w protocol.Wait) {
		t.Helper()
		ask("agent.wait", map[string]any{"runId": "two", "timeoutMs": 10_000}, &w)
		return w
	}
	w := wait()
	if w.Status == "pending" { // as a message is answered that has not begun
		select {
		case <-final:
		case <-time.After(20 * time.Second):
			t.Fatal("nobody answers what waited")
		}
		w = wait()
	}
	if w.Status != "ok" || w.Disposition == nil || *w.Disposition != (protocol.Disposition{Kind: "collected", RunID: "one"}) {
		t.Errorf("%+v, %+v", w, w.Disposition)
	}
	var h protocol.History
	ask("chat.history", map[string]any{"sessionKey": "s"}, &h)
	if len(h.Messages) == 0 || !strings.Contains(string(h.Messages[0].Content), `one\ntwo`) {
		t.Errorf("%+v", h.Messages)
	}
}

// TestServe_RefusesSettingsByTheirSection: nothing is served, and the error names the
// variable, the section and what is valid there.
func TestServe_RefusesSettingsByTheirSection(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		value, want string
		is          error
	}{
		"LANEWAY_QUEUE":            {"steer; channel/slack: queue", `channel/slack: "queue" is none; modes: steer`, queueing.ErrSettings},
		"LANEWAY_SESSION_RESET":    {"daily; type/group: weekly", `type/group: "weekly" is none; want daily`, session.ErrReset},
		"LANEWAY_INBOUND_DEBOUNCE": {"0; channel/slack: soon", `channel/slack: "soon" is none; want a duration`, queueing.ErrSettings},
	} {
		_, err := openLocal(t.Context(), localConfig{
			Data: t.TempDir(), Listen: "127.0.0.1:0", Token: "secret", Env: environment(map[string]string{name: row.value}), Stderr: io.Discard, Quiet: true,
		})
		if !errors.Is(err, row.is) || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s=%q: %v", name, row.value, err)
		}
	}
}
