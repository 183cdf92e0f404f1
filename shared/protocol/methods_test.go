package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestScopeSatisfied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		granted  []string
		required string
		want     bool
	}{
		{nil, "", true},
		{nil, ScopeRead, false},
		{[]string{ScopeRead}, ScopeRead, true},
		{[]string{ScopeRead}, ScopeWrite, false},
		{[]string{ScopeWrite}, ScopeRead, true},
		{[]string{ScopeWrite}, ScopeTalk, true},
		{[]string{ScopeWrite}, ScopeApprovals, false},
		{[]string{ScopeWrite}, ScopeAdmin, false},
		{[]string{ScopeAdmin}, ScopeApprovals, true},
		{[]string{"operator"}, ScopeRead, false},
	} {
		if got := ScopeSatisfied(c.granted, c.required); got != c.want {
			t.Errorf("%v for %q: got %v", c.granted, c.required, got)
		}
	}
}

func TestMethods_NamesAreUniqueAndScopesKnown(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"": true, ScopeRead: true, ScopeWrite: true, ScopeAdmin: true, ScopeApprovals: true, ScopeQuestions: true}
	seen := map[string]bool{}
	for _, m := range Methods() {
		if seen[m.Name] || !known[m.Scope] {
			t.Errorf("%s, scope %q", m.Name, m.Scope)
		}
		seen[m.Name] = true
	}
	for name, scope := range map[string]string{
		"health": "", "agent": ScopeWrite, "agent.wait": ScopeWrite, "chat.history": ScopeRead, "chat.inject": ScopeAdmin, "sessions.reset": ScopeAdmin,
		"question.list": ScopeQuestions, "plugin.approval.list": ScopeApprovals, "runs.abort": ScopeWrite, "uploads.create": ScopeWrite,
	} {
		if m, ok := Lookup(name); !ok || m.Scope != scope {
			t.Errorf("%s: %+v, %v", name, m, ok)
		}
	}
	if _, ok := Lookup("no.such.method"); ok {
		t.Error("found a method that does not exist")
	}
}

func TestScopes_OfRequestsThatNeedMore(t *testing.T) {
	t.Parallel()
	if s := PatchScope(&SessionsPatchParams{Label: Some("x"), PermissionMode: Some("guarded")}); s != ScopeWrite {
		t.Errorf("label: %s", s)
	}
	for _, p := range []SessionsPatchParams{{PermissionMode: Some("full")}, {ExecHost: Some("h")}, {SendPolicy: Some("deny")}, {ElevatedLevel: Some("on")}} {
		if s := PatchScope(&p); s != ScopeAdmin {
			t.Errorf("%+v: %s", p, s)
		}
	}
	if CreateScope(&SessionsCreateParams{}) != ScopeWrite || CreateScope(&SessionsCreateParams{PermissionMode: "full"}) != ScopeAdmin {
		t.Error("create")
	}
	if DeleteScope(&SessionsDeleteParams{}) != ScopeAdmin || DeleteScope(&SessionsDeleteParams{ArchivedOnly: true}) != ScopeWrite {
		t.Error("delete")
	}
}

// samples are params that are right, and some that a schema can refuse.
var samples = []struct {
	method, params string
	valid          bool
}{
	{"agent", `{"message":"m","idempotencyKey":"k","timeout":5.0}`, true},
	{"agent", `{"message":"","idempotencyKey":"k"}`, false},
	{"agent", `{"message":"m","idempotencyKey":"k","swarmCollector":true}`, false},
	{"agent", `{"message":"m","idempotencyKey":"k","attachments":[{"x":1}]}`, true},
	{"agent.wait", `{"runId":"r","timeoutMs":-1}`, false},
	{"chat.send", `{"sessionKey":"s","message":"m","idempotencyKey":"k","fastMode":"auto","expectedLeafEntryId":null}`, true},
	{"chat.send", `{"sessionKey":"s","message":"m","idempotencyKey":"k","queueMode":"x"}`, false},
	{"chat.history", `{"sessionKey":"s","limit":1001}`, false},
	{"chat.history", `{"sessionKey":"s","inputRunIds":["a"]}`, true},
	{"sessions.patch", `{"key":"k","label":null,"queueCap":3}`, true},
	{"sessions.patch", `{"key":"k","label":""}`, false},
	{"sessions.list", `{"archived":"all"}`, true},
	{"sessions.list", `{"archived":"some"}`, false},
	{"connect", `{"minProtocol":4,"maxProtocol":4,"x":1,"client":{"id":"c","version":"1","platform":"l","mode":"cli"}}`, true},
	{"connect", `{"minProtocol":4}`, false},
	{"cron.add", `{"name":"n","schedule":{"kind":"every","everyMs":1},"payload":{"kind":"systemEvent","text":"t"},"failureAlert":{"after":2}}`, true},
	{"cron.add", `{"name":"n","schedule":{"kind":"never"},"payload":{"kind":"systemEvent","text":"t"}}`, false},
	{"agents.list", `{"x":1}`, false},
}

func TestParamsSchema_AgreesWithDecode(t *testing.T) {
	t.Parallel()
	compiled := map[string]*jsonschema.Schema{}
	for _, m := range Methods() {
		doc, ok := ParamsSchema(m.Name)
		if !ok {
			t.Fatalf("%s has no schema", m.Name)
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(m.Name+".json", value); err != nil {
			t.Fatal(err)
		}
		if compiled[m.Name], err = c.Compile(m.Name + ".json"); err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
	}
	for _, s := range samples {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(s.params))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled[s.method].Validate(value); (err == nil) != s.valid {
			t.Errorf("%s %s: schema says %v", s.method, s.params, err)
		}
		if e := DecodeAny(s.method, json.RawMessage(s.params)); (e == nil) != s.valid {
			t.Errorf("%s %s: Decode says %v", s.method, s.params, e)
		}
	}
	if _, ok := ParamsSchema("no.such"); ok {
		t.Error("schema of a method that does not exist")
	}
}
