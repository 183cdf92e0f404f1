package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/token"
	"laneway/test/fakegateway"
)

func TestAgentPrintsTheReplyOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.answers(func(id string) any { return protocol.FinalOK(id, payloads("Hello\n", "World")) })
	w.runs(0, "agent", "-m", "hi")
	if got := w.out.String(); got != "Hello\n\nWorld\n" {
		t.Errorf("stdout %q", got)
	}
	if got := w.err.String(); got != "" {
		t.Errorf("stderr %q", got)
	}
	p := fakegateway.Params[protocol.AgentParams](t, w.gateway.Await("agent"))
	if p.Message != "hi" || p.AgentID != "main" || p.SessionKey != "" || p.IdempotencyKey == "" || *p.Timeout != 600 {
		t.Errorf("params %+v", p)
	}
}

func TestAgentSelectors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want protocol.AgentParams // compared by its selectors
		bad  string
	}{
		"agent":              {args: []string{"--agent", "ops"}, want: protocol.AgentParams{AgentID: "ops"}},
		"key":                {args: []string{"--session-key", "agent:ops:x"}, want: protocol.AgentParams{SessionKey: "agent:ops:x"}},
		"key and agent":      {args: []string{"--session-key", "agent:ops:x", "--agent", "ops"}, want: protocol.AgentParams{SessionKey: "agent:ops:x", AgentID: "ops"}},
		"bare key and agent": {args: []string{"--session-key", "x", "--agent", "ops"}, want: protocol.AgentParams{SessionKey: "x", AgentID: "ops"}},
		"id":                 {args: []string{"--session-id", "s1"}, want: protocol.AgentParams{SessionID: "s1"}},
		"to":                 {args: []string{"--to", "+1"}, want: protocol.AgentParams{To: "+1", AgentID: "main"}},
		"global":             {args: []string{"--session-key", "global"}, want: protocol.AgentParams{SessionKey: "global"}},
		"another agent's":    {args: []string{"--session-key", "agent:ops:x", "--agent", "main"}, bad: "does not belong"},
		"half a key":         {args: []string{"--session-key", "agent:ops"}, bad: "want agent:ID:NAME"},
		"global and agent":   {args: []string{"--session-key", "global", "--agent", "main"}, bad: "no agent"},
		"blank beside valid": {args: []string{"--agent", "main", "--to", " "}, bad: "--to is blank"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.answers(func(id string) any { return protocol.FinalOK(id, payloads("ok")) })
			args := append([]string{"agent", "-m", "hi"}, c.args...)
			if c.bad != "" {
				w.runs(1, args...)
				contains(t, "stderr", w.err.String(), c.bad)
				if len(w.gateway.Requests()) != 0 {
					t.Error("a connection was made")
				}
				return
			}
			w.runs(0, args...)
			p := fakegateway.Params[protocol.AgentParams](t, w.gateway.Await("agent"))
			if p.AgentID != c.want.AgentID || p.SessionKey != c.want.SessionKey || p.SessionID != c.want.SessionID || p.To != c.want.To {
				t.Errorf("params %+v", p)
			}
		})
	}
}

func TestAgentMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bom := file("bom", []byte("\ufefffrom a file\n"))
	latin := file("latin", []byte{'a', 0xe9, 'b'})
	large := file("large", make([]byte, maxMessageFile+1))
	full := file("full", []byte(strings.Repeat("x", maxMessageFile)))
	for name, c := range map[string]struct {
		args []string
		want string
		bad  string
	}{
		"file":       {args: []string{"--message-file", bom}, want: "from a file\n"},
		"stdin":      {args: []string{"--message-file", "-"}, want: "from stdin"},
		"4 MiB":      {args: []string{"--message-file", full}, want: strings.Repeat("x", maxMessageFile)},
		"both":       {args: []string{"-m", "a", "--message-file", bom}, bad: "give one of them"},
		"none":       {bad: "nothing to send"},
		"not UTF-8":  {args: []string{"--message-file", latin}, bad: "not UTF-8"},
		"over 4 MiB": {args: []string{"--message-file", large}, bad: "larger than 4 MiB"},
		"missing":    {args: []string{"--message-file", filepath.Join(dir, "no")}, bad: "no such file"},
		"empty":      {args: []string{"-m", " "}, bad: "empty"},
		"command":    {args: []string{"-m", "/compact now"}, bad: "/compact is not a message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.app.stdin = strings.NewReader("from stdin")
			w.answers(func(id string) any { return protocol.FinalOK(id, payloads("ok")) })
			args := append([]string{"agent"}, c.args...)
			if c.bad != "" {
				w.runs(1, args...)
				contains(t, "stderr", w.err.String(), c.bad)
				return
			}
			w.runs(0, args...)
			if p := fakegateway.Params[protocol.AgentParams](t, w.gateway.Await("agent")); p.Message != c.want {
				t.Errorf("message of %d bytes", len(p.Message))
			}
		})
	}
}

func TestAgentEnds(t *testing.T) {
	t.Parallel()
	media := "https://example.com/a.png"
	for name, c := range map[string]struct {
		final       any
		code        int
		out, stderr string
	}{
		"ok without payloads":  {protocol.FinalOK("r", protocol.Result{}), 0, "", ""},
		"nothing at all":       {struct{}{}, 0, "", "No reply from agent."},
		"error with payloads":  {protocol.FinalFailed("r", payloads("what I have")), 1, "what I have\n", "error"},
		"timeout":              {protocol.FinalAborted("r", "timeout", "provider", true, nil), 1, "", "aborted"},
		"in flight":            {protocol.Final{RunID: "r", Status: protocol.StatusInFlight}, 1, "", "already in flight"},
		"attachment":           {protocol.FinalOK("r", protocol.Result{Payloads: []protocol.Payload{{Text: "see", MediaURL: &media}}}), 0, "see\nAttachment: " + media + "\n", ""},
		"only an attachment":   {protocol.FinalOK("r", protocol.Result{Payloads: []protocol.Payload{{MediaURLs: []string{"a", "b"}}}}), 0, "Attachment: a\nAttachment: b\n", ""},
		"status nobody knows":  {protocol.Final{RunID: "r", Status: "odd"}, 1, "", "odd"},
		"unreadable last word": {[]int{1}, 1, "", "not what was expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.answers(func(string) any { return c.final })
			w.runs(c.code, "agent", "-m", "hi")
			if w.out.String() != c.out {
				t.Errorf("stdout %q, want %q", w.out, c.out)
			}
			contains(t, "stderr", w.err.String(), c.stderr)
		})
	}
}

func TestAgentRefusedAndBroken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("agent", func(c *fakegateway.Conn, r protocol.Request) {
		p := fakegateway.Params[protocol.AgentParams](t, r)
		accept(c, r, p)
		c.Failure(r, protocol.FinalThrown(p.IdempotencyKey, "boom"), protocol.Unavailable("boom"))
	})
	w.runs(1, "agent", "-m", "hi")
	contains(t, "stderr", w.err.String(), "boom")
	w.runs(1, "agent", "-m", "hi", "--json")
	var f failure
	if err := json.Unmarshal([]byte(w.out.String()), &f); err != nil {
		t.Fatal(err)
	}
	if f.OK || f.Error.Type != "cli_error" || f.Error.Code != protocol.CodeUnavailable || f.RunID == "" || f.Origin != "gateway" {
		t.Errorf("%+v", f)
	}
}

func TestAgentJSON(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.answers(func(id string) any { return protocol.FinalOK(id, payloads("<b>")) })
	w.runs(0, "agent", "-m", "hi", "--json")
	var final protocol.Final
	if err := json.Unmarshal([]byte(w.out.String()), &final); err != nil {
		t.Fatal(err)
	}
	if final.Status != "ok" || final.Result.Payloads[0].Text != "<b>" || strings.Count(w.out.String(), "\n") != 1 {
		t.Errorf("%s", w.out)
	}
	w = setup(t)
	w.answers(func(id string) any { return protocol.FinalFailed(id, payloads("part")) })
	w.runs(1, "agent", "-m", "hi", "--json")
	contains(t, "stdout", w.out.String(), `"status":"error"`, "part")
	w = setup(t)
	w.answers(func(id string) any {
		r := payloads("x")
		r.DeliveryStatus = map[string]any{"status": "sent"}
		return protocol.FinalOK(id, r)
	})
	w.runs(0, "agent", "-m", "hi", "--json", "--deliver", "--channel", "c")
	var top struct{ DeliveryStatus map[string]any }
	if err := json.Unmarshal([]byte(w.out.String()), &top); err != nil || top.DeliveryStatus["status"] != "sent" {
		t.Errorf("%s, %v", w.out, err)
	}
	w = setup(t)
	w.runs(1, "agent", "--json")
	contains(t, "stdout", w.out.String(), `"ok":false`, "cli_error", "nothing to send")
	if w.err.String() != "" {
		t.Errorf("stderr %q", w.err)
	}
}

// A lost connection is a failure that names the run; the message is never sent again.
func TestAgentLosesItsConnection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("agent", func(c *fakegateway.Conn, r protocol.Request) {
		accept(c, r, fakegateway.Params[protocol.AgentParams](t, r))
		c.Close(1012, "service restart")
	})
	w.runs(1, "agent", "-m", "hi")
	id := fakegateway.Params[protocol.AgentParams](t, w.gateway.Await("agent")).IdempotencyKey
	contains(t, "stderr", w.err.String(), "service restart", "laneway wait "+id)
	n := 0
	for _, r := range w.gateway.Requests() {
		if r.Method == "agent" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestAgentSignals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal os.Signal
		code   int
	}{"interrupt": {os.Interrupt, 130}, "terminate": {syscall.SIGTERM, 143}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.gateway.On("agent", func(conn *fakegateway.Conn, r protocol.Request) {
				accept(conn, r, fakegateway.Params[protocol.AgentParams](t, r))
				w.signals <- c.signal
			})
			w.gateway.On("chat.abort", func(conn *fakegateway.Conn, r protocol.Request) {
				conn.Result(r, map[string]any{"ok": true, "aborted": true})
			})
			w.runs(c.code, "agent", "-m", "hi")
			run := fakegateway.Params[protocol.AgentParams](t, w.gateway.Await("agent")).IdempotencyKey
			p := fakegateway.Params[protocol.ChatAbortParams](t, w.gateway.Await("chat.abort"))
			if p.RunID != run || p.SessionKey != "agent:main:main" || p.AgentID != "main" {
				t.Errorf("abort %+v", p)
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("agent", func(conn *fakegateway.Conn, r protocol.Request) {
		accept(conn, r, fakegateway.Params[protocol.AgentParams](t, r))
		w.signals <- os.Interrupt
	})
	w.gateway.On("chat.abort", func(*fakegateway.Conn, protocol.Request) { w.signals <- os.Interrupt }) // never answered
	w.runs(130, "agent", "-m", "hi")
}

// A signal that comes before the run was accepted stops it as soon as it is.
func TestSignalBeforeAcceptance(t *testing.T) {
	t.Parallel()
	w := setup(t)
	signals := make(chan os.Signal)
	w.app.signals = signals
	w.gateway.On("agent", func(conn *fakegateway.Conn, r protocol.Request) {
		signals <- os.Interrupt // returns when it was taken
		accept(conn, r, fakegateway.Params[protocol.AgentParams](t, r))
	})
	w.gateway.On("chat.abort", func(conn *fakegateway.Conn, r protocol.Request) { conn.Result(r, struct{}{}) })
	w.runs(130, "agent", "-m", "hi")
	w.gateway.Await("chat.abort")
}

func TestSignalWhileConnecting(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("connect", func(*fakegateway.Conn, protocol.Request) { w.signals <- os.Interrupt })
	w.runs(130, "agent", "-m", "hi")
	for _, r := range w.gateway.Requests() {
		if r.Method == "agent" {
			t.Error("the message was sent")
		}
	}
}

func TestAgentInsideAnAgentIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.env["OPENCLAW_SHELL"] = "exec"
	w.runs(1, "agent", "-m", "hi")
	contains(t, "stderr", w.err.String(), "refused")
}

// fakeLocal is an edition in this process that a fake gateway stands for.
type fakeLocal struct {
	url            string
	served, closed bool
}

func (f *fakeLocal) URL() string   { return f.url }
func (f *fakeLocal) Token() string { return "local-token" }

func (f *fakeLocal) Tokens() *token.Store { return &token.Store{} }

func (f *fakeLocal) Serve(ctx context.Context) error {
	<-ctx.Done()
	f.served = true
	return nil
}

func (f *fakeLocal) Close() error {
	f.closed = f.served // not before Serve has ended
	return nil
}

func TestAgentLocal(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.answers(func(id string) any { return protocol.FinalOK(id, payloads("from here")) })
	server := &fakeLocal{url: w.gateway.URL}
	var cfg localConfig
	w.app.openLocal = func(_ context.Context, c localConfig) (localServer, error) {
		cfg = c
		return server, nil
	}
	work := t.TempDir()
	w.runs(0, "agent", "--local", "-m", "hi", "--json", "--workspace", work)
	if !server.closed {
		t.Error("the edition was not closed after it was served")
	}
	if cfg.Workspace != work || cfg.Token == "" || cfg.Token == "secret" || !strings.HasPrefix(cfg.Listen, "127.0.0.1:") || !cfg.Quiet {
		t.Errorf("config %+v", cfg)
	}
	var result protocol.Result
	if err := json.Unmarshal([]byte(w.out.String()), &result); err != nil || result.Payloads[0].Text != "from here" {
		t.Errorf("%s, %v", w.out, err)
	}
	w.runs(1, "agent", "--local", "-m", "hi", "--url", "ws://127.0.0.1:1")
	w.app.openLocal = func(context.Context, localConfig) (localServer, error) { return nil, errors.New("in use") }
	w.runs(1, "agent", "--local", "-m", "hi")
	contains(t, "stderr", w.err.String(), "in use")
}
