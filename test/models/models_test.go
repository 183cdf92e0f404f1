// Package models uses configured providers, fallbacks and directives as users do: a
// gateway as a process, a client over its WebSocket, models over HTTP.
package models

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

// bench is a gateway over two providers, with a client.
type bench struct {
	t        *testing.T
	gw       *serving.Gateway
	one, two *mockmodel.Server
	conn     *client.Conn

	mu     sync.Mutex
	events []client.Event
}

// configuration is a models.json; $ONE and $TWO stand for the providers' addresses.
const configuration = `{
  "providers": {
    "one": {"api": "openai-completions", "baseUrl": "$ONE", "apiKey": {"secret": "one"}, "headers": {"x-team": "blue"},
      "models": [{"id": "big", "alias": "b", "contextWindow": 9000, "maxTokens": 777, "reasoning": true, "cost": {"input": 1000000, "output": 0}}, {"id": "plain", "reasoning": false}]},
    "two": {"api": "openai-completions", "baseUrl": "$TWO", "models": [{"id": "small"}]}
  },
  "auth": {"profiles": {"two:a": {"provider": "two", "key": "${TWO_A}"}, "two:gone": {"provider": "two", "key": "${TWO_GONE}"}}},
  "defaults": {"model": {"primary": "one/big", "fallbacks": ["two/small"]}}
}`

// start serves the configuration with changes: a text, and what takes its place.
func start(t *testing.T, change ...string) *bench {
	t.Helper()
	b := &bench{t: t, one: mockmodel.New(t), two: mockmodel.New(t)}
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(data, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("$ONE", b.one.URL, "$TWO", b.two.URL).Replace(strings.NewReplacer(change...).Replace(configuration))
	for name, content := range map[string]string{"models.json": text, "secrets/one": "key-of-one\n"} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.gw = serving.Start(t, serving.Options{Data: data, Env: []string{"TWO_A=key-of-two"}})
	var err error
	b.conn, err = client.Dial(t.Context(), client.Config{
		URL: b.gw.URL, Token: serving.Token, Scopes: []string{protocol.ScopeAdmin, protocol.ScopeRead, protocol.ScopeWrite},
		OnEvent: func(e client.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.conn.Close)
	return b
}

const key = "agent:main:models"

// agent sends a message and gives the texts of its answer.
func (b *bench) agent(message string) []string {
	b.t.Helper()
	raw, err := b.conn.CallFinal(b.t.Context(), "agent", protocol.AgentParams{Message: message, SessionKey: key, IdempotencyKey: id.UUID()}, nil)
	if err != nil {
		b.t.Fatalf("%s: %v", message, err)
	}
	var f protocol.Final
	if err := json.Unmarshal(raw, &f); err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, p := range f.Result.Payloads {
		out = append(out, p.Text)
	}
	return out
}

// says sends a message of nothing but directives and wants an answer that contains a text.
func (b *bench) says(message, want string) {
	b.t.Helper()
	if got := strings.Join(b.agent(message), "\n"); !strings.Contains(got, want) {
		b.t.Errorf("%s: %q, want %q", message, got, want)
	}
}

// chat sends a message through chat.send and gives the text of its final event.
func (b *bench) chat(message string) string {
	b.t.Helper()
	run := id.UUID()
	b.call("chat.send", protocol.ChatSendParams{SessionKey: key, Message: message, IdempotencyKey: run}, nil)
	for end := time.After(20 * time.Second); ; {
		b.mu.Lock()
		for _, e := range b.events {
			var p struct {
				RunID, State string
				Message      struct {
					Content []struct{ Text string }
				}
			}
			if e.Name == protocol.EventChat && json.Unmarshal(e.Payload, &p) == nil && p.RunID == run && p.State == protocol.ChatStateFinal {
				b.mu.Unlock()
				if len(p.Message.Content) == 0 {
					return ""
				}
				return p.Message.Content[0].Text
			}
		}
		b.mu.Unlock()
		select {
		case <-end:
			b.t.Fatalf("%s: no final", message)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (b *bench) call(method string, params, out any) {
	b.t.Helper()
	if err := b.conn.Call(b.t.Context(), method, params, out); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// last is the last request to a provider as it was on the wire.
func last(t *testing.T, m *mockmodel.Server) map[string]any {
	t.Helper()
	all := m.Requests()
	if len(all) == 0 {
		t.Fatal("the provider was not asked")
	}
	var body map[string]any
	if err := json.Unmarshal(all[len(all)-1].Raw, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestConfiguredModel_IsAskedAsConfigured(t *testing.T) {
	t.Parallel()
	b := start(t)
	if got := b.agent("hello"); len(got) != 1 || got[0] != "You said: hello" {
		t.Fatalf("%q", got)
	}
	body := last(t, b.one)
	if body["model"] != "big" || body["max_tokens"] != 777.0 || body["reasoning_effort"] != nil {
		t.Errorf("%v", body)
	}
	var cost protocol.RunCost
	var list struct{ Sessions []struct{ LastRunID string } }
	b.call("sessions.list", struct{}{}, &list)
	b.call("runs.cost", protocol.RunsCostParams{RunID: list.Sessions[0].LastRunID}, &cost)
	if cost.Items["tokens"] != 10 { // ten tokens in, at 1 USD each
		t.Errorf("%+v", cost)
	}
}

// Loop 8, row by row: inline for one message, alone for the session, the effect on the
// wire.
func TestDirectives_8_Thinking(t *testing.T) {
	t.Parallel()
	b := start(t)
	effort := func(want any) {
		t.Helper()
		if got := last(t, b.one)["reasoning_effort"]; got != want {
			t.Errorf("reasoning_effort %v, want %v", got, want)
		}
	}
	b.agent("/think high one")
	effort("high")
	if u := b.one.Requests()[0].LastUser(); u != "one" {
		t.Errorf("the model was told %q", u)
	}
	b.agent("two") // it held for one message
	effort(nil)
	b.says("/think low", "Thinking level set to low.")
	b.agent("three")
	effort("low")
	b.agent("four /t:medium")
	effort("medium")
	b.agent("five")
	effort("low")
	b.says("/think", "Current thinking level: low.")
	b.says("/think banana", `Unrecognized thinking level "banana". Valid levels: off, minimal, low, medium, high.`)
	b.says("/think max", `Thinking level "max" is not supported for one/big. Valid levels: off, minimal, low, medium, high.`)
	b.agent("six") // neither changed anything
	effort("low")
	b.says("/think off", "Thinking disabled.")
	b.says("/think", "Current thinking level: off.")
	b.says("/think default", "Thinking level reset to the default.")
	b.says("/think", "Current thinking level: default.")
	if n := len(b.one.Requests()); n != 6 {
		t.Errorf("%d model calls for 6 messages", n)
	}
	if got := b.chat("/think medium"); got != "Thinking level set to medium." {
		t.Errorf("chat.send: %q", got)
	}
	b.chat("seven")
	effort("medium")
	b.chat("/think high eight")
	effort("high")
}

func TestDirectives_8_OthersAndPatch(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.says("/verbose on", "Verbose logging enabled.")
	b.says("/verbose full", "Verbose logging set to full.")
	b.says("/v off", "Verbose logging disabled.")
	b.says("/v loud", `Unrecognized verbose level "loud". Valid levels: on, full, off.`)
	b.says("/reasoning stream", "Reasoning stream enabled.")
	b.says("/reasoning", "Current reasoning level: stream.")
	b.says("/fast auto", "Fast mode set to auto.")
	b.says("/fast on /think low", "Fast mode enabled.\nThinking level set to low.")
	b.says("/fast default", "Fast mode reset to the default.")
	b.says("/help", "/commands")
	b.says("/commands", "/think <text>")
	b.says("/status", "🧠 Model: one/big")
	b.says("/status", "Think: low")
	b.says("/usage", "tokens in")
	if n := len(b.one.Requests()); n != 0 {
		t.Errorf("%d model calls", n)
	}
	b.one.Script(mockmodel.Reply{Thinking: []string{"hm, ", "well"}, Text: []string{"done"}})
	if got := b.agent("think aloud /reasoning on"); len(got) != 2 || got[0] != "Thinking\n\nhm, well" || got[1] != "done" {
		t.Errorf("%q", got)
	}
	for _, p := range []map[string]any{{"thinkingLevel": "max"}, {"verboseLevel": "loud"}, {"reasoningLevel": "low"}} {
		p["key"] = key
		if err := b.conn.Call(t.Context(), "sessions.patch", p, nil); err == nil || !strings.Contains(err.Error(), "must be one of") {
			t.Errorf("%v: %v", p, err)
		}
	}
	b.call("sessions.patch", map[string]any{"key": key, "thinkingLevel": "HIGH", "verboseLevel": "full", "reasoningLevel": "on"}, nil)
	b.says("/think", "Current thinking level: high.")
	b.says("/verbose", "Current verbose level: full.")
	b.call("sessions.patch", map[string]any{"key": key, "thinkingLevel": nil}, nil)
	b.says("/think", "Current thinking level: default.")
	var cmds protocol.CommandsList
	b.call("commands.list", struct{}{}, &cmds)
	have := map[string]bool{}
	for _, c := range cmds.Commands {
		have[c.Name] = true
	}
	for _, name := range []string{"think", "verbose", "reasoning", "fast", "model", "status", "usage", "help", "commands", "stop", "new", "reset", "queue"} {
		if !have[name] {
			t.Errorf("commands.list lacks %s", name)
		}
	}
}

func TestModelDirective_8(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.says("/model", "Current: one/big\nDefault: one/big\nFallbacks: two/small")
	b.says("/model list", "- one/big (b)")
	b.says("/model two/small", "Model set to two/small.")
	b.agent("hello")
	if last(t, b.two)["model"] != "small" || len(b.one.Requests()) != 0 {
		t.Error("the model of the session was not asked")
	}
	// A choice of the user is strict: nobody else answers.
	b.two.Script(mockmodel.Reply{Match: "fails", Status: 402, Times: -1})
	_, err := b.conn.CallFinal(t.Context(), "agent", protocol.AgentParams{Message: "fails", SessionKey: key, IdempotencyKey: id.UUID()}, nil)
	if err == nil || len(b.one.Requests()) != 0 {
		t.Errorf("%v, %d calls", err, len(b.one.Requests()))
	}
	b.says("/model nobody/x", `Unknown model "nobody/x".`)
	b.says("/model two/small@two:a", "Model set to two/small with the credential two:a.")
	b.says("/model one/big@two:a", "The credential two:a is not one of one.")
	var changed struct {
		Entry struct{ AuthProfileOverride, AuthProfileOverrideSource, ModelOverrideSource string }
	}
	b.call("sessions.patch", map[string]any{"key": key, "label": "x"}, &changed)
	if e := changed.Entry; e.AuthProfileOverride != "two:a" || e.AuthProfileOverrideSource != "user" || e.ModelOverrideSource != "user" {
		t.Errorf("%+v", e)
	}
	var agents protocol.AgentsList
	b.call("agents.list", struct{}{}, &agents)
	if m := agents.Agents[0].Model; m == nil || m.Primary != "one/big" || len(m.Fallbacks) != 1 || m.Fallbacks[0] != "two/small" {
		t.Errorf("%+v", m)
	}
	b.says("/model default", "Model reset to default (one/big).")
	b.agent("again /model B") // kept although it is inline
	b.says("/model", "Current: one/big")
	b.says("/model plain", "Model set to one/plain.")
	b.says("/think high", "Valid levels: off.")
	b.agent("/think high anyway") // a level that the model does not know is not sent
	if body := last(t, b.one); body["model"] != "plain" || body["reasoning_effort"] != nil {
		t.Errorf("%v", body)
	}
}

// Runtime 7.5 and 7.4 over the wire: another model answers, people are told once, and
// the credential that failed is left alone and said to be.
func TestFallback_7_5(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.one.Script(mockmodel.Reply{Status: 402, Times: -1})
	if got := b.agent("hello"); len(got) != 2 || got[0] != "↪️ Model Fallback: two/small (selected one/big; billing)" || got[1] != "You said: hello" {
		t.Fatalf("%q", got)
	}
	if got := b.agent("more"); len(got) != 1 || got[0] != "You said: more" {
		t.Errorf("told twice: %q", got)
	}
	b.says("/model", "Answering now: two/small (billing)")
	var models protocol.ModelsList
	b.call("models.list", protocol.ModelsListParams{Provider: "one"}, &models)
	if r := models.Models[0]; r.ID != "big" || *r.Available || r.UnavailableReason != "cooldown" || r.UnavailableUntil == 0 || !*r.Reasoning || r.ContextWindow != 9000 {
		t.Errorf("%+v", r)
	}
	var auth protocol.AuthStatus
	b.call("models.authStatus", struct{}{}, &auth)
	got := map[string]protocol.AuthProfile{}
	for _, p := range auth.Providers {
		for _, f := range p.Profiles {
			got[f.ProfileID] = f
		}
	}
	if p := got["one:default"]; p.Status != protocol.AuthStatic || p.UnavailableReason != "cooldown" || p.ErrorCount != 1 {
		t.Errorf("%+v", p)
	}
	if got["two:a"].Status != protocol.AuthStatic || got["two:gone"].Status != protocol.AuthMissing {
		t.Errorf("%+v", got)
	}
	if log := b.gw.Log(); strings.Contains(log, "key-of-") {
		t.Error("a key is in the log")
	}
}

// F25 with a fallback: a model that stalls beyond the run's limit ends it as timed out,
// whoever else could have answered.
func TestF25_ATimeoutIsNoSuccess(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.agent("before")
	b.one.Script(mockmodel.Reply{Match: "stall", Text: []string{"half "}, Stall: true, Times: -1})
	run, two := id.UUID(), int64(2)
	if _, err := b.conn.CallFinal(t.Context(), "agent", protocol.AgentParams{Message: "stall", SessionKey: key, IdempotencyKey: run, Timeout: &two}, nil); err != nil {
		t.Fatal(err)
	}
	var snap map[string]any
	b.call("agent.wait", protocol.AgentWaitParams{RunID: run}, &snap)
	if snap["status"] != "timeout" {
		t.Errorf("%v", snap)
	}
	if n := len(b.two.Requests()); n != 0 {
		t.Errorf("a run that is over asked another model %d times", n)
	}
}

func TestServe_RefusesAWrongConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(path, []byte(`{"providers": {"x": {"api": "openai-completions", "models": [{"id": "a"}, {"id": "b"}, {"id": "c", "contextWindow": "big"}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), serving.Binary(t), "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--models", path)
	cmd.Env = []string{"HOME=" + t.TempDir(), "OPENCLAW_GATEWAY_TOKEN=x"}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "providers.x.models[2].contextWindow: must be a whole number") {
		t.Errorf("%v: %s", err, out)
	}
}
