package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/fakegateway"
)

// installed is the directory that scripts/conformance.sh has filled.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LANEWAY_CONFORMANCE")
	if dir == "" {
		t.Skip("needs programs from npm: make conformance")
	}
	return dir
}

func schema(t *testing.T) *Schema {
	t.Helper()
	s, err := LoadSchema(filepath.Join(installed(t), "node_modules", "@openclaw", "gateway-protocol", "protocol.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A judge that finds nothing is worth nothing: each of these frames is wrong.
func TestJudgeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := schema(t)
	ask := func(method string) Message {
		return Message{Conn: 1, Data: []byte(`{"type":"req","id":"r","method":"` + method + `"}`)}
	}
	for name, c := range map[string]struct{ method, frame, want string }{
		"not JSON":              {"health", `{`, "not JSON"},
		"unknown member":        {"health", `{"type":"res","id":"r","ok":true,"payload":{"ok":true,"ts":1},"extra":1}`, "GatewayFrame"},
		"error without message": {"health", `{"type":"res","id":"r","ok":false,"error":{"code":"X"}}`, "message"},
		"negative retry":        {"health", `{"type":"res","id":"r","ok":false,"error":{"code":"X","message":"m","retryAfterMs":-1}}`, "retryAfterMs"},
		"nobody asked":          {"health", `{"type":"res","id":"other","ok":true}`, "answer to no request"},
		"hello without policy":  {"connect", `{"type":"res","id":"r","ok":true,"payload":{"type":"hello-ok","protocol":4}}`, "HelloOk"},
		"chat with more":        {"health", `{"type":"event","event":"chat","payload":{"runId":"r","sessionKey":"k","seq":1,"state":"delta","deltaText":"","more":1}}`, "ChatEvent"},
		"chat without seq":      {"health", `{"type":"event","event":"chat","payload":{"runId":"r","sessionKey":"k","state":"final"}}`, "ChatEvent"},
		"agent without ts":      {"health", `{"type":"event","event":"agent","payload":{"runId":"r","seq":1,"stream":"x","data":{}}}`, "AgentEvent"},
		"tick without ts":       {"health", `{"type":"event","event":"tick","payload":{}}`, "TickEvent"},
		"agents without list":   {"agents.list", `{"type":"res","id":"r","ok":true,"payload":{"defaultId":"main","mainKey":"main","scope":"per-sender"}}`, "AgentsListResult"},
		"accepted without time": {"agent", `{"type":"res","id":"r","ok":true,"payload":{"runId":"a","sessionKey":"k","agentId":"m","status":"accepted"}}`, "acceptedAt"},
		"accepted at a text":    {"agent", `{"type":"res","id":"r","ok":true,"payload":{"runId":"a","sessionKey":"k","agentId":"m","status":"accepted","acceptedAt":"x"}}`, "is no int"},
		"final without summary": {"agent", `{"type":"res","id":"r","ok":true,"payload":{"runId":"a","status":"ok"}}`, "summary"},
		"row without a role":    {"chat.history", `{"type":"res","id":"r","ok":true,"payload":{"sessionKey":"k","hasMore":false,"messages":[{"content":""}]}}`, "role"},
		"unknown method":        {"brand.new", `{"type":"res","id":"r","ok":true,"payload":{}}`, "nothing is known"},
		"unknown event":         {"health", `{"type":"event","event":"brand.new","payload":{}}`, "nothing is known"},
		"a request":             {"health", `{"type":"req","id":"r","method":"health"}`, "from the gateway"},
	} {
		checked, findings := s.Judge([]Message{ask(c.method), {Conn: 1, FromServer: true, Data: []byte(c.frame)}})
		if checked != 1 || len(findings) != 1 || !strings.Contains(findings[0].Err.Error(), c.want) {
			t.Errorf("%s: %d checked, %v", name, checked, findings)
		}
	}
	_, findings := s.Judge([]Message{
		ask("agent"),
		{Conn: 1, FromServer: true, Data: []byte(`{"type":"res","id":"r","ok":true,"payload":{"runId":"a","sessionKey":"k","agentId":"m","status":"accepted","acceptedAt":1}}`)},
		{Conn: 1, FromServer: true, Data: []byte(`{"type":"event","event":"agent","payload":{"runId":"r","seq":1,"stream":"x","ts":1,"data":{},"sessionKey":"k","agentId":"m"}}`)},
		{Conn: 1, FromServer: true, Data: []byte(`{"type":"res","id":"r","ok":false,"payload":{"runId":"a","status":"error","summary":"s"},"error":{"code":"UNAVAILABLE","message":"s"}}`)},
	})
	if len(findings) != 0 {
		t.Errorf("good frames: %v", findings)
	}
}

func TestProxyPassesAndRecords(t *testing.T) {
	t.Parallel()
	g := fakegateway.New(t)
	g.On("end", func(c *fakegateway.Conn, _ protocol.Request) { c.Close(1012, "service restart") })
	p := StartProxy(g.URL)
	t.Cleanup(p.Close)
	c, err := client.Dial(t.Context(), client.Config{URL: p.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if ce, ok := errors.AsType[*client.ClosedError](c.Call(t.Context(), "end", nil, nil)); !ok || ce.Code != int(websocket.StatusServiceRestart) {
		t.Errorf("the end came as %v", ce)
	}
	var directions []bool
	for _, m := range p.Messages() {
		directions = append(directions, m.FromServer)
	}
	if len(directions) != 4 || !directions[0] || directions[1] || !directions[2] || directions[3] {
		t.Errorf("recorded %v", directions)
	}
}
