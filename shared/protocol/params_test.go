package protocol

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// decodeBy decodes as the table says and gives the text of the refusal, "" for none.
func decodeBy(t *testing.T, method, raw string) string {
	t.Helper()
	e := DecodeAny(method, json.RawMessage(raw))
	if e == nil {
		return ""
	}
	if e.Code != CodeInvalidRequest {
		t.Errorf("%s %s: code %s", method, raw, e.Code)
	}
	mustBeFrame(t, AppendError(nil, "r", e))
	return strings.TrimPrefix(e.Message, "invalid "+method+" params: ")
}

func TestSchemas_AllCompile(t *testing.T) {
	t.Parallel()
	for _, m := range Methods() {
		if _, err := schemaOf(m.params); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func TestDecode_RefusalsNameTheMember(t *testing.T) {
	t.Parallel()
	const chat = `"sessionKey":"agent:main:c","message":"x","idempotencyKey":"k"`
	const agent = `"message":"hi","idempotencyKey":"k"`
	const job = `"name":"n","schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"agentTurn","message":"m"}`
	long := strings.Repeat("x", 513)
	for _, c := range []struct{ method, params, want string }{
		{"agent", ``, "must have required property 'message'; must have required property 'idempotencyKey'"},
		{"agent", `null`, "must have required property 'message'; must have required property 'idempotencyKey'"},
		{"agent", `{"message":"hi"}`, "must have required property 'idempotencyKey'"},
		{"agent", `[]`, "must be object"},
		{"agent", `"x"`, "must be object"},
		{"agent", `{` + agent, "not JSON"},
		{"agent", `nul`, "not JSON"},
		{"agent", `{` + agent + `} x`, "not JSON"},
		{"agent", `{` + agent + `,"foo":1}`, "at root: unexpected property 'foo'"},
		{"agent", `{` + agent + `,"message":"b"}`, "at root: repeated property 'message'"},
		{"agent", `{` + agent + `,"AgentId":"b"}`, "at root: unexpected property 'AgentId'"},
		{"agent", `{"message":"","idempotencyKey":"k"}`, "at /message: must not have fewer than 1 characters"},
		{"agent", `{"message":7,"idempotencyKey":"k"}`, "at /message: must be string"},
		{"agent", `{"message":null,"idempotencyKey":"k"}`, "at /message: must be string"},
		{"agent", `{"message":"hi","idempotencyKey":""}`, "at /idempotencyKey: must not have fewer than 1 characters"},
		{"agent", `{"message":"hi","idempotencyKey":"` + long + `"}`, "at /idempotencyKey: must not have more than 512 bytes"},
		{"agent", `{"message":"hi","idempotencyKey":"a\u0000"}`, "at /idempotencyKey: must not have control characters"},
		{"agent", `{"message":"hi","idempotencyKey":"cron:j:1"}`, "at /idempotencyKey: must not begin with 'cron:', which is reserved for the gateway's own runs"},
		{"agent", `{"message":"hi","idempotencyKey":"followup-1"}`, "at /idempotencyKey: must not begin with 'followup-', which is reserved for the gateway's own runs"},
		{"agent", `{"message":"hi","idempotencyKey":"spawn:1"}`, "at /idempotencyKey: must not begin with 'spawn:', which is reserved for the gateway's own runs"},
		{"agent", `{` + agent + `,"sessionKey":"` + long + `"}`, "at /sessionKey: must not have more than 512 bytes"},
		{"agent", `{` + agent + `,"timeout":-1}`, "at /timeout: must be >= 0"},
		{"agent", `{` + agent + `,"timeout":1.5}`, "at /timeout: must be integer"},
		{"agent", `{` + agent + `,"timeout":"1"}`, "at /timeout: must be integer"},
		{"agent", `{` + agent + `,"timeout":1e400}`, "at /timeout: must be integer"},
		{"agent", `{` + agent + `,"timeout":9007199254740993}`, "at /timeout: must be integer"},
		{"agent", `{` + agent + `,"deliver":1}`, "at /deliver: must be boolean"},
		{"agent", `{` + agent + `,"deliver":true}`, "at /channel: is required with deliver"},
		{"agent", `{` + agent + `,"attachments":{}}`, "at /attachments: must be array"},
		{"agent", `{` + agent + `,"attachments":[{"fileName":"a"},3]}`, "at /attachments/1: must be object"},
		{"agent", `{` + agent + `,"attachments":[{"uploadId":""}]}`, "at /attachments/0/uploadId: must not have fewer than 1 characters"},
		{"agent", `{` + agent + `,"promptMode":"loud"}`, "at /promptMode: must be equal to one of the allowed values: full, minimal, none"},
		{"agent", `{` + agent + `,"promptMode":"none"}`, "at /promptMode: none is allowed with modelRun only"},
		{"agent", `{` + agent + `,"cwd":"work"}`, "at /cwd: must be an absolute path"},
		{"agent", `{` + agent + `,"cwd":"C:work"}`, "at /cwd: must be an absolute path"},
		{"agent", `{` + agent + `,"label":"` + long + `"}`, "at /label: must not have more than 512 characters"},
		{"agent", `{` + agent + `,"internalEvents":[]}`, "at /internalEvents: is not accepted from callers"},
		{"agent", `{` + agent + `,"sessionEffects":"internal"}`, "at /sessionEffects: is not accepted from callers"},
		{"agent", `{` + agent + `,"expectedExistingSessionId":"s"}`, "at /expectedExistingSessionId: needs sessionKey"},
		{"agent", `{` + agent + `,"expectedExistingSessionId":"s","sessionKey":"k","sessionId":"t"}`, "at /expectedExistingSessionId: must not differ from sessionId"},
		{"agent", `{"foo":1,"timeout":"x","idempotencyKey":"k"}`, "must have required property 'message'; at root: unexpected property 'foo'; at /timeout: must be integer"},

		{"agent.wait", `{"timeoutMs":1}`, "must have required property 'runId'"},
		{"agent.wait", `{"runId":"x","timeoutMs":-1}`, "at /timeoutMs: must be >= 0"},
		{"agent.wait", `{"runId":"x","timeoutMs":0,"flavour":1}`, "at root: unexpected property 'flavour'"},
		{"agent.wait", `{"runId":""}`, "at /runId: must not have fewer than 1 characters"},

		{"chat.send", `{"sessionKey":"s","message":"x"}`, "must have required property 'idempotencyKey'"},
		{"chat.send", `{"message":"x","idempotencyKey":"k"}`, "must have required property 'sessionKey'"},
		{"chat.send", `{` + chat + `,"queueMode":"teleport"}`, "at /queueMode: must be equal to one of the allowed values: steer, followup, collect, interrupt"},
		{"chat.send", `{"sessionKey":"s","message":"a\u0000b","idempotencyKey":"k"}`, "at /message: must not contain null bytes"},
		{"chat.send", `{"sessionKey":"s","message":"","idempotencyKey":"k"}`, "message or attachment required"},
		{"chat.send", `{"sessionKey":"s","message":" \u0007 ","idempotencyKey":"k"}`, "message or attachment required"},
		{"chat.send", `{` + chat + `,"fastMode":"yes"}`, "at /fastMode: must be boolean or 'auto'"},
		{"chat.send", `{` + chat + `,"fastAutoOnSeconds":0}`, "at /fastAutoOnSeconds: must be >= 1"},
		{"chat.send", `{` + chat + `,"toolBindings":[]}`, "at /toolBindings: must be object"},
		{"chat.send", `{` + chat + `,"mentions":{}}`, "at /mentions: must be array"},
		{"chat.send", `{` + chat + `,"expectedLeafEntryId":7}`, "at /expectedLeafEntryId: must be string or null"},
		{"chat.send", `{` + chat + `,"systemInputProvenance":{}}`, "at /systemInputProvenance: is not accepted from callers"},
		{"chat.abort", `{"runId":"x"}`, "must have required property 'sessionKey'"},
		{"chat.history", `{"sessionKey":"s","limit":0}`, "at /limit: must be >= 1"},
		{"chat.history", `{"sessionKey":"s","limit":1001}`, "at /limit: must be <= 1000"},
		{"chat.history", `{"sessionKey":"s","maxBytes":1}`, "at /maxBytes: must be >= 1024"},
		{"chat.history", `{"sessionKey":"s","inputRunIds":[]}`, "at /inputRunIds: must not have fewer than 1 items"},
		{"chat.history", `{"sessionKey":"s","inputRunIds":["a",""]}`, "at /inputRunIds/1: must not have fewer than 1 characters"},
		{"chat.inject", `{"sessionKey":"s"}`, "must have required property 'message'"},
		{"chat.inject", `{"sessionKey":"s","message":"\u0001"}`, "at /message: must not have fewer than 1 characters"},
		{"chat.inject", `{"sessionKey":"s","message":"x","label":"` + strings.Repeat("ü", 101) + `"}`, "at /label: must not have more than 100 characters"},
		{"chat.startup", `{}`, "must have required property 'sessionKey'"},
		{"chat.startup", `{"shortId":"s"}`, "must have required property 'agentId'"},
		{"chat.startup", `{"shortId":"s","sessionKey":"k"}`, "must have required property 'agentId'; at /shortId: must not come with sessionKey"},

		{"sessions.list", `{"bogus":1}`, "at root: unexpected property 'bogus'"},
		{"sessions.list", `{"archived":"some"}`, "at /archived: must be boolean or 'all'"},
		{"sessions.resolve", `{}`, "must have one of key, sessionId, label, shortId"},
		{"sessions.abort", `{}`, "must have one of key, runId"},
		{"sessions.preview", `{"keys":[]}`, "at /keys: must not have fewer than 1 items"},
		{"sessions.patch", `{"key":"k","thinkingLevel":""}`, "at /thinkingLevel: must not have fewer than 1 characters"},
		{"sessions.patch", `{"key":"k","fastMode":3}`, "at /fastMode: must be boolean or 'auto'"},
		{"sessions.patch", `{"key":"k","queueCap":0}`, "at /queueCap: must be >= 1"},
		{"sessions.patch", `{"key":"k","queueCap":"9"}`, "at /queueCap: must be integer or null"},
		{"sessions.send", `{"key":"k","message":""}`, "message or attachment required"},
		{"sessions.create", `{"cwd":"x"}`, "at /cwd: must be an absolute path"},
		{"agents.list", `{"limit":1}`, "at root: unexpected property 'limit'"},
		{"commands.list", `{"limit":1}`, "at root: unexpected property 'limit'"},

		{"cron.add", `{` + job + `,"sessionTarget":"moon"}`, "at /sessionTarget: must be equal to one of the allowed values: main, isolated, current, session:<id>"},
		{"cron.add", `{"name":"n","schedule":{"kind":"cron"},"payload":{"kind":"systemEvent","text":"t"}}`, "at /schedule: must have required property 'expr'"},
		{"cron.add", `{"name":"n","schedule":{"kind":"every","everyMs":1,"tz":"UTC"},"payload":{"kind":"systemEvent","text":"t"}}`, "at /schedule/tz: does not belong to kind 'every'"},
		{"cron.add", `{"name":"n","schedule":{"kind":"sundial"},"payload":{"kind":"systemEvent","text":"t"}}`, "at /schedule/kind: must be equal to one of the allowed values: at, every, cron"},
		{"cron.add", `{"name":"n","schedule":{"kind":"at","at":"x"},"payload":{"kind":"agentTurn"}}`, "at /payload: must have required property 'message'"},
		{"cron.add", `{` + job + `,"delivery":{"mode":"webhook","to":"ftp://x"}}`, "at /delivery/to: must be an http or https URL with mode 'webhook'"},
		{"cron.add", `{` + job + `,"failureAlert":true}`, "at /failureAlert: must be false or object"},
		{"cron.add", `{` + job + `,"failureAlert":{"after":0}}`, "at /failureAlert: at /after: must be >= 1"},
		{"cron.update", `{"patch":{}}`, "must have required property 'id'"},
		{"cron.update", `{"id":"a","jobId":"b","patch":{}}`, "at /jobId: must not differ from id"},
		{"cron.run", `{"id":"a","mode":"later"}`, "at /mode: must be equal to one of the allowed values: due, force, if-enabled"},
		{"wake", `{"mode":"now"}`, "must have required property 'text'"},
		{"uploads.create", `{"sizeBytes":1,"sha256":"` + strings.Repeat("G", 64) + `"}`, "at /sha256: must be 64 lowercase hexadecimal digits"},

		{"connect", `{}`, "must have required property 'minProtocol'; must have required property 'maxProtocol'; must have required property 'client'"},
		{"connect", `{"minProtocol":4,"maxProtocol":4,"client":{"id":"cli"}}`, "at /client: must have required property 'version'; at /client: must have required property 'platform'; at /client: must have required property 'mode'"},
		{"connect", `{"minProtocol":4,"maxProtocol":4,"Auth":{},"client":{"id":"c","version":"1","platform":"l","mode":"cli"}}`, "at root: unexpected property 'Auth'"},
		{"no.such", `{}`, "unknown method: no.such"},
	} {
		if got := decodeBy(t, c.method, c.params); got != c.want {
			t.Errorf("%s %.120s\n got %s\nwant %s", c.method, c.params, got, c.want)
		}
	}
}

func TestDecode_AcceptsWhatClientsSend(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"connect", `{"minProtocol":3,"maxProtocol":5,"future":[1],"client":{"id":"new-client","version":"1","platform":"l","mode":"cli","x":1}}`},
		{"agent", `{"message":" ","idempotencyKey":"k","sessionKey":"","sessionId":""}`},
		{"agent", `{"message":"m","idempotencyKey":"k","timeout":6e2,"cwd":"C:\\work","promptMode":"none","modelRun":true}`},
		{"agent", `{"message":"m","idempotencyKey":"k","deliver":true,"channel":"x"}`},
		{"chat.send", `{"sessionKey":"s","message":"","idempotencyKey":"k","attachments":[{"content":{"any":1},"width":2}]}`},
		{"chat.abort", `{"sessionKey":"s","preserveSideRuns":true}`},
		{"chat.startup", `{"shortId":"x","agentId":"main"}`},
		{"sessions.subscribe", `{}`},
		{"sessions.messages.subscribe", `{"key":"k","includeApprovals":true}`},
		{"sessions.delete", `{"key":"k","deleteTranscript":true}`},
		{"sessions.patch", `{"key":"k","label":null,"model":"a/b","fastMode":"auto","permissionMode":"guarded"}`},
		{"sessions.list", `{"limit":1,"agentId":"main","archived":"all"}`},
		{"commands.list", `{"agentId":"main","scope":"text","includeArgs":false}`},
		{"health", ``},
		{"health", `{"probe":true}`},
		{"status", ``},
		{"question.list", `{}`},
		{"cron.get", `{"jobId":"j"}`},
		{"cron.add", `{"name":"n","enabled":true,"sessionTarget":"session:x","wakeMode":"now","schedule":{"kind":"cron","expr":"0 9 * * *","tz":"Europe/Berlin"},"payload":{"kind":"agentTurn","message":"m","timeoutSeconds":1.5},"delivery":{"mode":"none","threadId":7},"failureAlert":false}`},
		{"cron.update", `{"id":"j","patch":{"payload":{"kind":"agentTurn","model":null},"failureAlert":null}}`},
	} {
		if got := decodeBy(t, c[0], c[1]); got != "" {
			t.Errorf("%s %s: refused: %s", c[0], c[1], got)
		}
	}
}

func TestDecode_Values(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/agent.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := DecodeRequest(raw)
	if err != nil {
		t.Fatal(err)
	}
	a, e := Decode[AgentParams](r.Method, r.Params)
	if e != nil || a.Message != "Grüße 👋 \"you\"\n" || *a.Timeout != 600 || a.SessionKey != "agent:main:t1" {
		t.Errorf("agent: %+v, %v", a, e)
	}
	p, e := Decode[SessionsPatchParams]("sessions.patch", json.RawMessage(`{"key":"k","label":null,"model":"a/b","queueCap":5}`))
	if e != nil || !p.Label.Set || !p.Label.Null || p.Model != Some("a/b") || p.Color.Set || p.QueueCap.Value != 5 {
		t.Errorf("patch: %+v, %v", p, e)
	}
	c, e := Decode[CronRunParams]("cron.run", json.RawMessage(`{"jobId":"j"}`))
	if e != nil || c.ID != "j" {
		t.Errorf("cron.run: %+v, %v", c, e)
	}
	h, e := Decode[ConnectParams]("connect", json.RawMessage(`{"minProtocol":4,"maxProtocol":4,"scopes":[],"client":{"id":"c","version":"1","platform":"l","mode":"cli"}}`))
	if e != nil || h.Scopes == nil || len(h.Scopes) != 0 {
		t.Errorf("connect: an empty list of scopes is not absent: %+v, %v", h, e)
	}
	if _, e := Decode[ChatSendParams]("chat.send", json.RawMessage(`{"sessionKey":"s"}`)); e == nil {
		t.Error("chat.send without a message")
	}
}

func TestDecode_ResultOfARefusalIsZero(t *testing.T) {
	t.Parallel()
	p, e := Decode[AgentWaitParams]("agent.wait", json.RawMessage(`{"runId":"x","foo":1}`))
	if e == nil || p.RunID != "" {
		t.Errorf("got %+v, %v", p, e)
	}
}

func TestParams_EncodeToWhatDecodeTakes(t *testing.T) {
	t.Parallel()
	ten := int64(10)
	raw, err := Marshal(CronAddParams{
		Name: "n", Schedule: CronSchedule{Kind: "every", EveryMs: &ten}, Payload: CronPayload{Kind: "agentTurn", Message: "m"},
		FailureAlert: &CronFailureAlert{After: &ten, To: "x"}, SessionKey: Optional[string]{Set: true, Null: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, e := Decode[CronAddParams]("cron.add", raw)
	if e != nil || *p.FailureAlert.After != 10 || p.FailureAlert.To != "x" || !p.SessionKey.Null {
		t.Errorf("%s: %+v, %v", raw, p, e)
	}
	for method, v := range map[string]any{
		"agent":          AgentParams{Message: "m", IdempotencyKey: "k"},
		"chat.send":      ChatSendParams{SessionKey: "s", Message: "m", IdempotencyKey: "k", FastMode: &FastMode{Auto: true}},
		"sessions.patch": SessionsPatchParams{Key: "k", FastMode: Some(FastMode{On: true}), Label: Optional[string]{Set: true, Null: true}},
		"sessions.list":  SessionsListParams{Archived: &ArchivedFilter{All: true}},
		"agent.wait":     AgentWaitParams{RunID: "r"},
	} {
		raw, err := Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := decodeBy(t, method, string(raw)); got != "" {
			t.Errorf("%s %s: %s", method, raw, got)
		}
	}
}

func TestAgentWait_Window(t *testing.T) {
	t.Parallel()
	zero, huge := int64(0), int64(1)<<52
	for _, c := range []struct {
		ms   *int64
		want time.Duration
	}{{nil, 30 * time.Second}, {&zero, 0}, {&huge, MaxWait}} {
		if got := (&AgentWaitParams{TimeoutMs: c.ms}).Window(); got != c.want {
			t.Errorf("got %v want %v", got, c.want)
		}
	}
}

func TestCleanChatText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"cafe\u0301 \u0007bell\tTAB\nline\r\n": "caf\u00e9 bell\tTAB\nline\r\n",
		"a\u007fb\u0085c":                      "abc",
		"e\u0001\u0301":                        "\u00e9",
		"👩\u200d👧 \u2028":                      "👩\u200d👧 \u2028",
	} {
		if got, err := CleanChatText(in); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := CleanChatText("a\x00"); err == nil {
		t.Error("NUL was taken")
	}
}
