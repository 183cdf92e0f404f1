package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"laneway/shared/clock"
	"laneway/shared/protocol"
	"laneway/test/fakegateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the outside of an app under test.
type world struct {
	t        *testing.T
	app      *app
	gateway  *fakegateway.Gateway
	env      map[string]string
	out, err *output
	signals  chan os.Signal
	home     string
}

// output is a buffer that a test may read while a command writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// setup gives an app whose gateway is a fake that answers "agent" with reply.
func setup(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, gateway: fakegateway.New(t), env: map[string]string{}, out: &output{}, err: &output{},
		signals: make(chan os.Signal, 2), home: t.TempDir(),
	}
	w.env["HOME"] = w.home
	w.env["OPENCLAW_GATEWAY_URL"] = w.gateway.URL
	w.env["OPENCLAW_GATEWAY_TOKEN"] = "secret"
	w.app = &app{
		stdin: strings.NewReader(""), stdout: w.out, stderr: w.err,
		env: func(name string) string { return w.env[name] }, clock: clock.System{}, signals: w.signals,
		openLocal: func(context.Context, localConfig) (localServer, error) {
			t.Error("the local edition was opened")
			return nil, io.ErrUnexpectedEOF
		},
	}
	return w
}

// run runs a command line and returns its exit code.
func (w *world) run(args ...string) int {
	w.t.Helper()
	return w.app.run(w.t.Context(), args)
}

// runs checks a command line's exit code.
func (w *world) runs(want int, args ...string) {
	w.t.Helper()
	if got := w.run(args...); got != want {
		w.t.Errorf("%q: exit code %d, want %d; stderr: %s", args, got, want, w.err)
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q: %q", what, part, text)
		}
	}
}

// accept answers the first time, as a gateway does.
func accept(c *fakegateway.Conn, r protocol.Request, p protocol.AgentParams) {
	c.Result(r, protocol.NewAccepted(p.IdempotencyKey, "agent:main:main", "main", 1))
}

func payloads(texts ...string) protocol.Result {
	var r protocol.Result
	for _, text := range texts {
		r.Payloads = append(r.Payloads, protocol.Payload{Text: text})
	}
	return r
}

// answers makes the gateway accept a run and end it with what end gives.
func (w *world) answers(end func(runID string) any) {
	w.gateway.On("agent", func(c *fakegateway.Conn, r protocol.Request) {
		p := fakegateway.Params[protocol.AgentParams](w.t, r)
		accept(c, r, p)
		c.Result(r, end(p.IdempotencyKey))
	})
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.runs(0)
	contains(t, "help", w.out.String(), "agent", "serve", "sessions list")
	w = setup(t)
	w.runs(0, "--version")
	if strings.TrimSpace(w.out.String()) == "" {
		t.Error("no version")
	}
	w = setup(t)
	w.runs(1, "nonsense")
	contains(t, "stderr", w.err.String(), "nonsense", "--help")
	if w.out.String() != "" {
		t.Errorf("stdout: %q", w.out)
	}
	w = setup(t)
	w.runs(1, "cron", "add", "--nonsense")
	contains(t, "stderr", w.err.String(), "nonsense", `"laneway cron add --help"`)
}

func TestColoursOnlyOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		terminal bool
		noColor  string
		want     bool
	}{{false, "", false}, {true, "", true}, {true, "1", false}} {
		w := setup(t)
		w.app.stderrTerminal = c.terminal
		w.env["NO_COLOR"] = c.noColor
		w.runs(1, "nonsense")
		if got := strings.Contains(w.err.String(), "\x1b["); got != c.want {
			t.Errorf("%+v: %q", c, w.err)
		}
	}
}

func TestCredentialsComeFromTheNearestPlace(t *testing.T) {
	t.Parallel()
	store := func(w *world) {
		path := filepath.Join(w.home, "data", tokenFile)
		if _, err := makeToken(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want func(w *world) protocol.ConnectAuth
	}{
		"flag":     {[]string{"--token", "flag"}, nil, func(*world) protocol.ConnectAuth { return protocol.ConnectAuth{Token: "flag"} }},
		"env":      {nil, nil, func(*world) protocol.ConnectAuth { return protocol.ConnectAuth{Token: "secret"} }},
		"password": {nil, map[string]string{"OPENCLAW_GATEWAY_TOKEN": "", "OPENCLAW_GATEWAY_PASSWORD": "pw"}, func(*world) protocol.ConnectAuth { return protocol.ConnectAuth{Password: "pw"} }},
		"stored": {nil, map[string]string{"OPENCLAW_GATEWAY_TOKEN": ""}, func(w *world) protocol.ConnectAuth {
			token, err := storedToken(filepath.Join(w.home, "data", tokenFile))
			if err != nil || len(token) != 48 {
				t.Errorf("stored token %q, %v", token, err)
			}
			return protocol.ConnectAuth{Token: token}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			store(w)
			maps.Copy(w.env, c.env)
			w.gateway.On("agent.wait", func(c *fakegateway.Conn, r protocol.Request) {
				c.Result(r, protocol.Wait{RunID: "r", Status: protocol.StatusOK})
			})
			w.runs(0, append([]string{"wait", "r", "--data", filepath.Join(w.home, "data")}, c.args...)...)
			p := fakegateway.Params[protocol.ConnectParams](t, w.gateway.Await("connect"))
			if p.Auth == nil || *p.Auth != c.want(w) {
				t.Errorf("auth %+v", p.Auth)
			}
			if p.Device != nil {
				t.Error("a device proof on loopback")
			}
		})
	}
}

// The token of this machine's gateway must never be sent to another machine.
func TestStoredTokenStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.env["OPENCLAW_GATEWAY_TOKEN"] = ""
	dir, err := w.app.dataDir("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := makeToken(filepath.Join(dir, tokenFile)); err != nil {
		t.Fatal(err)
	}
	got, err := gatewayFlags{URL: "wss://gateway.example.com"}.target(w.app)
	if err == nil || got.token != "" {
		t.Errorf("target %+v, %v", got, err)
	}
	got, err = gatewayFlags{URL: "wss://gateway.example.com", Token: "given"}.target(w.app)
	if err != nil || got.token != "given" || got.device == nil {
		t.Errorf("target %+v, %v", got, err)
	}
}

func TestDataDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the places are those of Linux")
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"home":         {map[string]string{"HOME": "/h"}, "/h/.local/share/laneway"},
		"xdg":          {map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/laneway"},
		"relative xdg": {map[string]string{"HOME": "/h", "XDG_DATA_HOME": "x"}, "/h/.local/share/laneway"},
	} {
		a := &app{env: func(n string) string { return c.env[n] }}
		if got, err := a.dataDir(""); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	a := &app{env: func(string) string { return "" }}
	if _, err := a.dataDir(""); err == nil {
		t.Error("no home, and no error")
	}
}
