package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"laneway/shared/id"
	"laneway/shared/model"
)

// conversation has every kind of message.
func conversation() model.Request {
	txt := func(s string) model.Block { return model.Block{Type: model.Text, Text: s} }
	img := model.Block{Type: model.Image, MimeType: "image/png", Data: []byte{1, 2, 3}}
	return model.Request{
		Model: "m-1", System: "be <brief>", MaxOutputTokens: 100, SessionKey: "agent:main:tel:+49",
		Messages: []model.Message{
			{Role: model.User, Content: []model.Block{txt("a"), txt("b")}},
			{Role: model.User, Content: []model.Block{txt("see"), img}},
			{Role: model.Assistant, StopReason: "toolUse", Content: []model.Block{
				{Type: model.Thinking, Thinking: "hm", Signature: "s"},
				{Type: model.ToolCall, ID: "call_w1", Name: "ls", Arguments: json.RawMessage(`{"path":"."}`)},
				{Type: model.ToolCall, ID: "x|y", Name: "read", Arguments: json.RawMessage(`"half {"`)},
			}},
			{Role: model.ToolResult, ToolCallID: "call_w1", ToolName: "ls", Content: []model.Block{img}},
			{Role: model.ToolResult, ToolCallID: "x|y", ToolName: "read", IsError: true},
			{Role: model.Assistant, StopReason: "aborted"},
			{Role: model.Assistant, Content: []model.Block{txt("An"), txt("swer")}},
			{Role: model.User, Content: []model.Block{txt("go on")}},
		},
		Tools: []model.Tool{
			{Name: "ls", Description: "lists", Schema: json.RawMessage(`{"type":"object"}`)},
			{Name: "now"},
		},
		ToolChoice: "ls",
	}
}

func body(t *testing.T, p *Provider, r model.Request) map[string]any {
	t.Helper()
	b, err := p.encode(r)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func provider(t *testing.T, base string) *Provider {
	t.Helper()
	p, err := New(Config{BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRequestForACompatibleServer(t *testing.T) {
	t.Parallel()
	const want = `{
	  "model":"m-1","stream":true,"max_tokens":100,
	  "tool_choice":{"type":"function","function":{"name":"ls"}},
	  "tools":[
	    {"type":"function","function":{"name":"ls","description":"lists","parameters":{"type":"object"}}},
	    {"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],
	  "messages":[
	    {"role":"system","content":"be <brief>"},
	    {"role":"user","content":"a\nb"},
	    {"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]},
	    {"role":"assistant","content":"","tool_calls":[
	      {"id":"call_w1","type":"function","function":{"name":"ls","arguments":"{\"path\":\".\"}"}},
	      {"id":"x|y","type":"function","function":{"name":"read","arguments":"half {"}}]},
	    {"role":"tool","tool_call_id":"call_w1","content":"(the images follow)"},
	    {"role":"tool","tool_call_id":"x|y","content":"(no output)"},
	    {"role":"user","content":[{"type":"text","text":"Images of the result of ls:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]},
	    {"role":"assistant","content":"Answer"},
	    {"role":"user","content":"go on"}]}`
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	r := conversation()
	r.Thinking = "high"
	if diff := cmp.Diff(wanted, body(t, provider(t, "http://127.0.0.1:5110/v1"), r)); diff != "" {
		t.Error(diff)
	}
}

// Whatever is in a text, the request is JSON and carries it.
func TestAnyTextFitsIntoARequest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// What is no UTF-8 becomes the replacement character, as everywhere in JSON.
		said := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.Just("\"\\\n\x00\xff\u2028</script>")), 1, 3).Draw(t, "texts")
		r := model.Request{Model: "m"}
		for _, role := range []model.Role{model.User, model.Assistant, model.ToolResult} {
			m := model.Message{Role: role, ToolCallID: said[0], ToolName: said[0]}
			for _, s := range said {
				m.Content = append(m.Content, model.Block{Type: model.Text, Text: "x" + s})
			}
			r.Messages = append(r.Messages, m)
		}
		b, err := (&Provider{}).encode(r)
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Messages []struct {
				Content string `json:"content"`
				ID      string `json:"tool_call_id"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		for i, sep := range []string{"\n", "", "\n"} {
			want := strings.ToValidUTF8("x"+strings.Join(said, sep+"x"), "\ufffd")
			if got := out.Messages[i].Content; got != want {
				t.Fatalf("message %d: %q, want %q", i, got, want)
			}
		}
		if want := strings.ToValidUTF8(said[0], "\ufffd"); out.Messages[2].ID != want {
			t.Fatalf("call id %q, want %q", out.Messages[2].ID, want)
		}
	})
}

func TestRequestForOpenAIItself(t *testing.T) {
	t.Parallel()
	r := conversation()
	r.Model, r.Thinking = "gpt-5.1", "off"
	got := body(t, provider(t, ""), r)
	for field, want := range map[string]any{
		"max_completion_tokens": 100.0,
		"max_tokens":            nil,
		"reasoning_effort":      "none",
		"prompt_cache_key":      id.Hash("prompt-cache", "agent:main:tel:+49"),
		"stream_options":        map[string]any{"include_usage": true},
	} {
		if diff := cmp.Diff(want, got[field]); diff != "" {
			t.Errorf("%s: %s", field, diff)
		}
	}
	if m, ok := got["messages"].([]any)[0].(map[string]any); !ok || m["role"] != "system" {
		t.Errorf("first message = %v", m)
	}
}

func TestReasoningEffortByModel(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ model, level, want string }{
		{"gpt-4o", "high", ""},
		{"gpt-5", "", ""},
		{"gpt-5", "off", "minimal"},
		{"gpt-5-mini", "minimal", "minimal"},
		{"gpt-5.2", "off", "none"},
		{"gpt-5.2", "minimal", "low"},
		{"gpt-6-sol", "off", "none"},
		{"gpt-5-chat-latest", "high", ""},
		{"o3", "off", "low"},
		{"o4-mini", "medium", "medium"},
		{"omni", "high", ""},
		{"gpt-5", "bogus", ""},
	} {
		if got := effort(model.Request{Model: row.model, Thinking: row.level}); got != row.want {
			t.Errorf("effort(%s, %s) = %q, want %q", row.model, row.level, got, row.want)
		}
	}
}

func TestUsageIsAskedForOnlyWhereItIsKnownToBeTaken(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]bool{
		"": true, "https://openrouter.ai/api/v1": true, "https://x.openai.azure.com/openai/v1": true,
		"http://127.0.0.1:11434/v1": false, "https://api.example.com/v1": false, "https://evil-api.openai.com.example/v1": false,
	} {
		if _, got := body(t, provider(t, base), ask("hi"))["stream_options"]; got != want {
			t.Errorf("%s: stream_options sent: %v", base, got)
		}
	}
	p, err := New(Config{BaseURL: "http://127.0.0.1:1/v1", StreamUsage: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, got := body(t, p, ask("hi"))["stream_options"]; !got {
		t.Error("StreamUsage is ignored")
	}
}

func TestBadSchemaIsAnErrorOfTheRequest(t *testing.T) {
	t.Parallel()
	r := ask("hi")
	r.Tools = []model.Tool{{Name: "x", Schema: json.RawMessage(`{`)}}
	for _, err := range provider(t, "http://127.0.0.1:1/v1").Stream(t.Context(), r) {
		if model.ClassOf(err) != model.Format {
			t.Errorf("err = %v", err)
		}
	}
}

// What a configuration says: a model that takes levels where its id tells nothing, fast
// answers where they are known, headers.
func TestRequestAsConfigured(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		base, id, level, fast string
		reasons               bool
		effort, tier          any
	}{
		{"http://127.0.0.1:1/v1", "mine", "high", model.FastOn, true, "high", nil},
		{"http://127.0.0.1:1/v1", "mine", "off", "", true, nil, nil},
		{"http://127.0.0.1:1/v1", "mine", "max", "", true, "high", nil},
		{"http://127.0.0.1:1/v1", "mine", "adaptive", "", true, nil, nil},
		{"http://127.0.0.1:1/v1", "mine", "high", "", false, nil, nil},
		{"", "gpt-5.4", "xhigh", model.FastOn, false, "xhigh", "priority"},
		{"", "gpt-5.4", "", model.FastOff, false, nil, nil},
	} {
		r := conversation()
		r.Model, r.Thinking, r.Fast, r.Reasons = row.id, row.level, row.fast, row.reasons
		got := body(t, provider(t, row.base), r)
		if got["reasoning_effort"] != row.effort || got["service_tier"] != row.tier {
			t.Errorf("%+v: %v, %v", row, got["reasoning_effort"], got["service_tier"])
		}
	}
}
