package client

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/protocol"
	"laneway/test/fakegateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t *testing.T, cfg Config) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestConnectSendsWhatAGatewayNeeds(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	c := dial(t, Config{URL: g.URL, Token: "secret", Caps: []string{"tool-events"}, Platform: "linux", Family: "Linux"})
	if c.Hello().Server.ConnID != "conn-1" || len(c.Hello().Raw) == 0 {
		t.Errorf("hello: %+v", c.Hello())
	}
	p, err := protocol.Decode[protocol.ConnectParams]("connect", g.Await("connect").Params)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Speaks() || p.Secret() != "secret" || p.Role != "operator" || p.Device != nil || len(p.Scopes) != 2 || p.Caps[0] != "tool-events" {
		t.Errorf("connect: %+v", p)
	}
}

// The signature is checked here by the text of the wire's description, not by the
// code that made it.
func TestDeviceProofIsForm3(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	d, err := NewDevice()
	if err != nil {
		t.Fatal(err)
	}
	dial(t, Config{URL: g.URL, Token: "secret", Device: d, Platform: " Linux ", Family: "ÄPC", Scopes: []string{"operator.admin", "operator.read"}})
	p := fakegateway.Params[protocol.ConnectParams](t, g.Await("connect")).Device
	pub, err := base64.RawURLEncoding.DecodeString(p.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(pub)
	if p.ID != hex.EncodeToString(sum[:]) || p.Nonce != fakegateway.Nonce || p.SignedAt != fakegateway.TS {
		t.Errorf("proof: %+v", p)
	}
	sig, err := base64.RawURLEncoding.DecodeString(p.Signature)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("v3|%s|cli|cli|operator|operator.admin,operator.read|%d|secret|%s|linux|Äpc", p.ID, fakegateway.TS, fakegateway.Nonce)
	if !ed25519.Verify(pub, []byte(text), sig) {
		t.Error("the signature does not fit the text of form v3")
	}
}

func TestDeviceIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "device.key")
	a, err := LoadDevice(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadDevice(path)
	if err != nil || a.ID() != b.ID() {
		t.Errorf("the second time: %v, %v", b, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadDevice(path); err == nil {
		t.Error("a file without a key was taken")
	}
}

func TestCallFinalWaitsForTheSecondAnswer(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("agent", func(c *fakegateway.Conn, r protocol.Request) {
		c.Result(r, map[string]any{"status": "accepted", "runId": "r1"})
		c.Raw([]byte(`not json`))
		c.Raw([]byte(`{"message":"Internal server error","connectionId":"x"}`))
		c.Raw([]byte(`{"type":"res","id":` + fmt.Sprintf("%q", r.ID) + `,"ok":false,"error":{"code":"X"}}`)) // no message: no answer
		c.Event("agent", map[string]any{"n": 1})
		c.Result(r, map[string]any{"status": "accepted", "runId": "again"})
		c.Event("agent", map[string]any{"n": 2})
		c.Result(r, map[string]any{"status": "ok", "runId": "r1"})
	})
	var events []string
	c := dial(t, Config{URL: g.URL, OnEvent: func(e Event) { events = append(events, string(e.Payload)) }})
	var accepted []string
	raw, err := c.CallFinal(t.Context(), "agent", map[string]any{"message": "hi"}, func(p json.RawMessage) { accepted = append(accepted, string(p)) })
	if err != nil {
		t.Fatal(err)
	}
	if status(raw) != "ok" || len(accepted) != 1 || !strings.Contains(accepted[0], "r1") {
		t.Errorf("final %s, accepted %q", raw, accepted)
	}
	if want := `[{"n":1} {"n":2}]`; fmt.Sprint(events) != want { // before the answer that came after them
		t.Errorf("events %v, want %s", events, want)
	}
}

func TestCallReportsRefusals(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("agent", func(c *fakegateway.Conn, r protocol.Request) {
		c.Failure(r, map[string]any{"runId": "r1", "status": "error"}, protocol.Unavailable("the model failed"))
	})
	c := dial(t, Config{URL: g.URL})
	err := c.Call(t.Context(), "agent", nil, nil)
	refused, ok := errors.AsType[*CallError](err)
	if !ok || refused.Err.Code != protocol.CodeUnavailable || !strings.Contains(string(refused.Payload), "r1") {
		t.Errorf("got %v", err)
	}
	err = c.Call(t.Context(), "nonsense", nil, nil)
	if wire, ok := errors.AsType[*protocol.Error](err); !ok || wire.Code != protocol.CodeInvalidRequest {
		t.Errorf("got %v", err)
	}
}

func TestEndedContextHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("slow", func(*fakegateway.Conn, protocol.Request) {})
	g.On("echo", func(c *fakegateway.Conn, r protocol.Request) { c.Result(r, map[string]string{"v": "here"}) })
	c := dial(t, Config{URL: g.URL})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Call(ctx, "slow", nil, nil) }()
	g.Await("slow")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var out struct{ V string }
	if err := c.Call(t.Context(), "echo", nil, &out); err != nil || out.V != "here" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestClosedConnectionsEndCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*fakegateway.Conn)
		code int
	}{
		"with a code": {func(c *fakegateway.Conn) { c.Close(1012, "service restart") }, 1012},
		"dropped":     {func(c *fakegateway.Conn) { c.Drop() }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := fakegateway.New(t)
			g.On("agent", func(c *fakegateway.Conn, _ protocol.Request) { test.end(c) })
			c := dial(t, Config{URL: g.URL})
			_, err := c.CallFinal(t.Context(), "agent", nil, nil)
			if ce, ok := errors.AsType[*ClosedError](err); !ok || ce.Code != test.code {
				t.Errorf("got %v", err)
			}
			<-c.Done()
			if c.Err() == nil {
				t.Error("Err is nil")
			}
			if err := c.Call(t.Context(), "again", nil, nil); err == nil {
				t.Error("a call on the dead connection succeeded")
			}
		})
	}
}

func TestAnswerJustBeforeTheEndCounts(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("last", func(c *fakegateway.Conn, r protocol.Request) {
		c.Result(r, map[string]string{"status": "ok"})
		c.Close(1000, "")
	})
	for range 20 {
		c := dial(t, Config{URL: g.URL})
		if err := c.Call(t.Context(), "last", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloseEndsTheReaderAndWaitingCalls(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("slow", func(*fakegateway.Conn, protocol.Request) {})
	c := dial(t, Config{URL: g.URL})
	ended := make(chan error, 1)
	go func() { ended <- c.Call(t.Context(), "slow", nil, nil) }()
	g.Await("slow")
	c.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("the waiting call: %v", err)
	}
	c.Close()
	if err := c.Err(); err != nil {
		t.Errorf("after its own end: %v", err)
	}
}

func TestSubscriptionsEnd(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("emit", func(c *fakegateway.Conn, r protocol.Request) {
		c.Event("tick", map[string]int{"ts": 1})
		c.Result(r, struct{}{})
	})
	c := dial(t, Config{URL: g.URL})
	var a, b int
	stop := c.Subscribe(func(Event) { a++ })
	c.Subscribe(func(Event) { b++ })
	for range 2 {
		if err := c.Call(t.Context(), "emit", nil, nil); err != nil {
			t.Fatal(err)
		}
		stop()
	}
	if a != 1 || b != 2 {
		t.Errorf("first handler %d, second %d", a, b)
	}
}

func TestConnectRefused(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("connect", func(c *fakegateway.Conn, r protocol.Request) {
		c.Error(r, protocol.TokenMismatch())
		c.Close(1008, "unauthorized")
	})
	_, err := Dial(t.Context(), Config{URL: g.URL, Token: "wrong"})
	if wire, ok := errors.AsType[*protocol.Error](err); !ok || wire.Detail("code") != protocol.DetailTokenMismatch {
		t.Errorf("got %v", err)
	}
}

func TestStartingGatewayIsAskedAgain(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	tries := 0
	g.On("connect", func(c *fakegateway.Conn, r protocol.Request) {
		if tries++; tries < 3 {
			c.Error(r, protocol.Unavailable("gateway starting").With("reason", protocol.ReasonStarting).Retry(500*time.Millisecond))
			return
		}
		c.Result(r, struct{}{})
	})
	dial(t, Config{URL: g.URL, Clock: instant{}})
	if tries != 3 {
		t.Errorf("%d tries", tries)
	}
}

// instant is a clock on which every wait is over at once.
type instant struct{}

func (instant) Now() time.Time { return time.Unix(0, 0) }

func (instant) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- time.Unix(0, 0)
	return c
}

func TestHandshakeStepsAreNamed(t *testing.T) {
	t.Parallel()
	for step, script := range map[string]func(*fakegateway.Gateway){
		"challenge": func(g *fakegateway.Gateway) { g.On("open", func(*fakegateway.Conn, protocol.Request) {}) },
		"hello":     func(g *fakegateway.Gateway) { g.On("connect", func(*fakegateway.Conn, protocol.Request) {}) },
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			g := fakegateway.New(t)
			script(g)
			_, err := Dial(t.Context(), Config{URL: g.URL, Handshake: 50 * time.Millisecond})
			if he, ok := errors.AsType[*HandshakeError](err); !ok || he.Step != step {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("nonce", func(t *testing.T) {
		t.Parallel()
		g := fakegateway.New(t)
		g.On("open", func(c *fakegateway.Conn, _ protocol.Request) { c.Event("connect.challenge", map[string]int{"ts": 1}) })
		if _, err := Dial(t.Context(), Config{URL: g.URL}); !errors.Is(err, errNonce) {
			t.Errorf("got %v", err)
		}
	})
}

func TestUpgradeRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not for you", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	_, err := Dial(t.Context(), Config{URL: server.URL})
	if ue, ok := errors.AsType[*UpgradeError](err); !ok || ue.Status != 403 || ue.Body != "not for you" {
		t.Errorf("got %v", err)
	}
}

func TestPlainTextOnlyInPrivate(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"ws://127.0.0.1:1/x?a=b": "ws://127.0.0.1:1/x?a=b",
		"http://localhost:1":     "ws://localhost:1",
		"https://example.com/p":  "wss://example.com/p",
		"ws://10.1.2.3":          "ws://10.1.2.3",
		"ws://100.64.0.1":        "ws://100.64.0.1",
		"ws://[fd00::1]:5":       "ws://[fd00::1]:5",
		"ws://box.local":         "ws://box.local",
	} {
		if got, err := gatewayURL(raw, false); err != nil || got != want {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
	for _, raw := range []string{"ws://example.com", "http://8.8.8.8:80"} {
		if _, err := gatewayURL(raw, false); !errors.Is(err, ErrPlain) {
			t.Errorf("%s: %v", raw, err)
		}
		if _, err := gatewayURL(raw, true); err != nil {
			t.Errorf("%s, allowed: %v", raw, err)
		}
	}
	for _, raw := range []string{"", "localhost:1", "ftp://x", "ws://"} {
		if _, err := gatewayURL(raw, true); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if !Loopback("ws://[::1]:1") || !Loopback("ws://localhost") || Loopback("wss://example.com") {
		t.Error("Loopback")
	}
}
