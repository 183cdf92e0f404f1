package conformance

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

// bench is a gateway with a scripted model behind it and a proxy before it. All that
// the gateway sends is judged when the test ends.
type bench struct {
	model   *mockmodel.Server
	gateway *serving.Gateway
	proxy   *Proxy
	dir     string
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: installed(t), model: mockmodel.New(t)}
	judge := schema(t)
	b.gateway = serving.Start(t, serving.Options{Env: []string{
		"LANEWAY_MODEL=openai/" + mockmodel.Model, "OPENAI_BASE_URL=" + b.model.URL, "OPENAI_API_KEY=x",
	}})
	b.proxy = StartProxy(b.gateway.URL)
	t.Cleanup(func() {
		b.proxy.Close()
		checked, findings := judge.Judge(b.proxy.Messages())
		t.Logf("%d frames of the gateway were judged", checked)
		if checked == 0 {
			t.Error("no frame was judged")
		}
		for _, f := range findings {
			t.Error(f)
		}
	})
	return b
}

func (b *bench) stock(t *testing.T) Stock {
	t.Helper()
	return Stock{Dir: b.dir, Home: t.TempDir(), URL: b.proxy.URL, Token: serving.Token}
}

// run runs the stock command line to its end.
func run(t *testing.T, s Stock, args ...string) Result {
	t.Helper()
	r, err := s.Start(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// runs checks the exit code, and that the output has some parts.
func runs(t *testing.T, s Stock, code int, parts []string, args ...string) {
	t.Helper()
	res := run(t, s, args...)
	if res.Code != code {
		t.Errorf("openclaw %q: want exit code %d, got %v", args, code, res)
	}
	for _, part := range parts {
		if !strings.Contains(res.Stdout+res.Stderr, part) {
			t.Errorf("openclaw %q: no %q in %v", args, part, res)
		}
	}
}

func TestStockCommandLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	t.Run("agent prints the reply", func(t *testing.T) {
		res := run(t, b.stock(t), "agent", "--agent", "main", "--message", "hi")
		if res.Code != 0 || strings.TrimSpace(res.Stdout) != "You said: hi" {
			t.Error(res)
		}
	})
	t.Run("agent without a selector asks for the default agent", func(t *testing.T) {
		runs(t, b.stock(t), 0, []string{"You said: whoever"}, "agent", "--message", "whoever")
	})
	t.Run("agent with a session key and JSON", func(t *testing.T) {
		res := run(t, b.stock(t), "agent", "--session-key", "agent:main:json", "--message", "as json", "--json")
		var out struct {
			Status string `json:"status"`
			Result struct {
				Payloads []protocol.Payload `json:"payloads"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(res.Stdout), &out); err != nil || res.Code != 0 || out.Status != "ok" || out.Result.Payloads[0].Text != "You said: as json" {
			t.Error(err, res)
		}
	})
	t.Run("agent with a tool", func(t *testing.T) {
		b.model.Script(
			mockmodel.Reply{Match: "look around", Calls: []mockmodel.Call{{ID: "call_1", Name: "ls", Arguments: `{"path":"."}`}}},
			mockmodel.Reply{Match: "look around", After: true, Text: []string{"All ", "seen."}},
		)
		runs(t, b.stock(t), 0, []string{"All seen."}, "agent", "--session-key", "agent:main:tool", "--message", "look around")
	})
	t.Run("agent whose model fails", func(t *testing.T) {
		b.model.Script(mockmodel.Reply{Match: "please fail", Status: 401, Body: `{"error":{"message":"bad key","code":"invalid_api_key"}}`, Times: -1})
		runs(t, b.stock(t), 1, nil, "agent", "--session-key", "agent:main:fail", "--message", "please fail")
	})
	t.Run("gateway call health", func(t *testing.T) {
		runs(t, b.stock(t), 0, []string{`"ok": true`}, "gateway", "call", "health")
	})
	t.Run("gateway call agent and agent.wait", func(t *testing.T) {
		runs(t, b.stock(t), 0, []string{`"status": "accepted"`, `"runId": "stock-1"`},
			"gateway", "call", "agent", "--params", `{"message":"call","sessionKey":"agent:main:call","idempotencyKey":"stock-1"}`)
		runs(t, b.stock(t), 0, []string{`"status": "ok"`, "You said: call"},
			"gateway", "call", "agent.wait", "--params", `{"runId":"stock-1","timeoutMs":8000}`)
	})
	t.Run("gateway call agent with the final", func(t *testing.T) {
		runs(t, b.stock(t), 0, []string{`"status": "ok"`, "You said: final"},
			"gateway", "call", "agent", "--expect-final", "--timeout", "30000", "--params", `{"message":"final","agentId":"main","idempotencyKey":"stock-2"}`)
	})
	t.Run("unknown method", func(t *testing.T) {
		runs(t, b.stock(t), 1, []string{"unknown method: no.such.method"}, "gateway", "call", "no.such.method")
	})
	t.Run("bad params name the field", func(t *testing.T) {
		runs(t, b.stock(t), 1, []string{"idempotencyKey"}, "gateway", "call", "agent", "--params", `{"message":"x"}`)
	})
	t.Run("wrong token", func(t *testing.T) {
		s := b.stock(t)
		s.Token = "wrong"
		runs(t, s, 1, []string{"unauthorized"}, "agent", "--agent", "main", "--message", "hi")
	})
}

func TestStockInterruptAborts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.model.Script(mockmodel.Reply{Match: "for ever", Text: []string{"it ", "begins"}, Stall: true, Times: -1})
	for name, c := range map[string]struct {
		signal os.Signal
		code   int
	}{"interrupt": {os.Interrupt, 130}, "terminate": {syscall.SIGTERM, 143}} {
		t.Run(name, func(t *testing.T) {
			b.proxy.Reset()
			n := len(b.model.Requests())
			r, err := b.stock(t).Start(t.Context(), "agent", "--session-key", "agent:main:"+name, "--message", "for ever")
			if err != nil {
				t.Fatal(err)
			}
			b.model.AwaitRequests(t, n+1)
			if err := r.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			res, err := r.Wait()
			if err != nil || res.Code != c.code {
				t.Error(err, res)
			}
			abort, err := b.proxy.Await(t.Context(), func(m Message) bool {
				return m.FromServer && strings.Contains(string(m.Data), `"aborted":true`) && strings.Contains(string(m.Data), `"runIds"`)
			})
			if err != nil {
				t.Errorf("no answer to chat.abort: %v", err)
			}
			t.Logf("answered: %s", abort.Data)
		})
	}
}
