package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"laneway/shared/protocol"
	"laneway/test/fakegateway"
)

func TestWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait        protocol.Wait
		code        int
		out, stderr string
	}{
		"ok":          {protocol.Wait{RunID: "r", Status: "ok", EndedAt: 2, TerminalReply: protocol.NewReply("the answer")}, 0, "the answer\n", ""},
		"failed":      {protocol.Wait{RunID: "r", Status: "error", EndedAt: 2, Error: "boom"}, 1, "", "boom"},
		"not over":    {protocol.WaitExpired("r"), 1, "", "has not ended"},
		"out of time": {protocol.Wait{RunID: "r", Status: "timeout", EndedAt: 2}, 1, "", "ended with timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.gateway.On("agent.wait", func(conn *fakegateway.Conn, r protocol.Request) { conn.Result(r, c.wait) })
			w.runs(c.code, "wait", "r", "--timeout", "7")
			if w.out.String() != c.out {
				t.Errorf("stdout %q", w.out)
			}
			contains(t, "stderr", w.err.String(), c.stderr)
			p := fakegateway.Params[protocol.AgentWaitParams](t, w.gateway.Await("agent.wait"))
			if p.RunID != "r" || *p.TimeoutMs != 7000 {
				t.Errorf("params %+v", p)
			}
			w.runs(c.code, "wait", "r", "--json")
			contains(t, "stdout", w.out.String(), `"runId":"r"`)
		})
	}
}

func TestWaitIsInterrupted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("agent.wait", func(*fakegateway.Conn, protocol.Request) { w.signals <- os.Interrupt })
	w.runs(130, "wait", "r")
}

func TestSessionsList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := int64(1_796_058_131_523)
	w.gateway.On("sessions.list", func(conn *fakegateway.Conn, r protocol.Request) {
		conn.Result(r, protocol.SessionsList{HasMore: true, Sessions: []protocol.SessionRow{
			{Key: "agent:main:main", UpdatedAt: &at, Model: "m1", HasActiveRun: true}, {Key: "agent:main:x", Label: "other"},
		}})
	})
	w.runs(0, "sessions", "list", "--limit", "2", "--agent", "main")
	contains(t, "stdout", w.out.String(), "agent:main:main", "running", "m1", "idle", "other")
	contains(t, "stderr", w.err.String(), "--limit 8")
	w.runs(0, "sessions", "list", "--json")
	if !strings.Contains(w.out.String(), `"sessions":[`) {
		t.Errorf("stdout %q", w.out)
	}
}

func TestSessionsShow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("chat.history", func(conn *fakegateway.Conn, r protocol.Request) {
		conn.Result(r, map[string]any{"messages": []protocol.HistoryRow{
			{Role: "user", Content: json.RawMessage(`"two\nlines"`), Timestamp: 1},
			{Role: "assistant", Content: json.RawMessage(`[{"type":"text","text":"look"},{"type":"toolCall","name":"read"}]`)},
			{Role: "toolResult", ToolName: "read", IsError: true, Content: json.RawMessage(`[{"type":"text","text":"no such file"}]`)},
		}})
	})
	w.runs(0, "sessions", "show", "agent:main:main")
	contains(t, "stdout", w.out.String(), "    two\n    lines\n", "[toolCall read]", "toolResult (read, error)", "no such file")
	w.gateway.On("chat.history", func(conn *fakegateway.Conn, r protocol.Request) { conn.Result(r, map[string]any{}) })
	w.runs(1, "sessions", "show", "agent:main:none")
}

func TestServeChoosesItsToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  string
		want string // "": one is made
		bad  string
	}{
		"file":                       {args: []string{"--token-file", file}, env: "token-of-the-environment", want: "from-file"},
		"environment":                {env: "token-of-the-environment", want: "token-of-the-environment"},
		"made":                       {},
		"missing file":               {args: []string{"--token-file", file + "x"}, bad: "does not exist"},
		"other interface, no token":  {args: []string{"--listen", "0.0.0.0:1"}, bad: "reachable from other machines"},
		"no interface, no token":     {args: []string{"--listen", ":1"}, bad: "reachable from other machines"},
		"other interface with token": {args: []string{"--listen", "0.0.0.0:1"}, env: "token-of-the-environment", want: "token-of-the-environment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.env["OPENCLAW_GATEWAY_TOKEN"] = c.env
			server := &fakeLocal{url: w.gateway.URL}
			var cfg localConfig
			w.app.openLocal = func(_ context.Context, got localConfig) (localServer, error) {
				cfg = got
				w.signals <- syscall.SIGTERM
				return server, nil
			}
			data := filepath.Join(w.home, "d")
			args := append([]string{"serve", "--data", data, "--limits", "apigateway"}, c.args...)
			if c.bad != "" {
				w.runs(1, args...)
				contains(t, "stderr", w.err.String(), c.bad)
				return
			}
			w.runs(0, args...)
			if !server.closed || cfg.Data != data || cfg.Limits != "apigateway" {
				t.Errorf("closed %t, config %+v", server.closed, cfg)
			}
			if strings.Contains(w.err.String(), cfg.Token) {
				t.Error("the token was printed")
			}
			if c.want != "" {
				if cfg.Token != c.want {
					t.Errorf("token %q", cfg.Token)
				}
				return
			}
			path := filepath.Join(data, tokenFile)
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", info, err)
			}
			contains(t, "stderr", w.err.String(), path)
			if stored, err := storedToken(path); err != nil || stored != cfg.Token || len(stored) < 32 {
				t.Errorf("stored %q, served with %q, %v", stored, cfg.Token, err)
			}
			first := cfg.Token
			w.runs(0, args...)
			if cfg.Token != first {
				t.Error("a second start made another token")
			}
		})
	}
}

func TestServeIsInterrupted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.app.openLocal = func(context.Context, localConfig) (localServer, error) {
		w.signals <- os.Interrupt
		return &fakeLocal{url: w.gateway.URL}, nil
	}
	w.runs(130, "serve")
}
