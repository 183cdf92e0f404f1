package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/id"
	"laneway/shared/model"
)

func body(t *testing.T, r model.Request) map[string]any {
	t.Helper()
	p, err := New(Config{APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(b))
}

func object(t *testing.T, s string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRequest(t *testing.T) {
	t.Parallel()
	txt := func(s string) model.Block { return model.Block{Type: model.Text, Text: s} }
	img := model.Block{Type: model.Image, MimeType: "image/png", Data: []byte{1, 2, 3}}
	r := model.Request{
		Model: "claude-x", System: "be <brief>", MaxOutputTokens: 100, SessionKey: "agent:main:tel:+49", ToolChoice: "ls", Thinking: "high",
		Tools: []model.Tool{{Name: "ls", Description: "lists", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "now"}},
		Messages: []model.Message{
			{Role: model.Assistant, Content: []model.Block{txt("from before")}},
			{Role: model.User, Content: []model.Block{txt("a"), txt("")}},
			{Role: model.User, Content: []model.Block{img}},
			{Role: model.Assistant, StopReason: "toolUse", Content: []model.Block{
				{Type: model.Thinking, Thinking: "hm", Signature: "Eo=="},
				{Type: model.Thinking, Thinking: "unsigned"},
				{Type: model.Thinking, Signature: "hidden=="},
				{Type: model.Thinking, Signature: "redacted:xyz"},
				txt("I look"),
				{Type: model.ToolCall, ID: "call_w1", Name: "ls", Arguments: json.RawMessage(`{"path":"."}`)},
				{Type: model.ToolCall, ID: "x|y", Name: "read", Arguments: json.RawMessage(`"half {"`)},
			}},
			{Role: model.ToolResult, ToolCallID: "call_w1", ToolName: "ls", Content: []model.Block{txt("README"), img}},
			{Role: model.ToolResult, ToolCallID: "x|y", ToolName: "read", IsError: true},
			{Role: model.User, Content: []model.Block{txt("and then?")}},
			{Role: model.Assistant, StopReason: "aborted"},
			{Role: model.User, Content: []model.Block{txt("go on")}},
		},
	}
	xy := "call_" + id.Hash("tool-call", "x|y")
	want := object(t, `{
	  "model":"claude-x","max_tokens":100,"stream":true,
	  "metadata":{"user_id":"`+id.Hash("prompt-cache", "agent:main:tel:+49")+`"},
	  "system":[{"type":"text","text":"be <brief>","cache_control":{"type":"ephemeral"}}],
	  "tool_choice":{"type":"tool","name":"ls"},
	  "tools":[{"name":"ls","description":"lists","input_schema":{"type":"object"}},{"name":"now","input_schema":{"type":"object","properties":{}}}],
	  "messages":[
	    {"role":"user","content":[{"type":"text","text":"(The conversation goes on.)"}]},
	    {"role":"assistant","content":[{"type":"text","text":"from before"}]},
	    {"role":"user","content":[{"type":"text","text":"a"},
	      {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"},"cache_control":{"type":"ephemeral"}}]},
	    {"role":"assistant","content":[
	      {"type":"thinking","thinking":"hm","signature":"Eo=="},
	      {"type":"thinking","thinking":"","signature":"hidden=="},
	      {"type":"redacted_thinking","data":"xyz"},
	      {"type":"text","text":"I look"},
	      {"type":"tool_use","id":"call_w1","name":"ls","input":{"path":"."}},
	      {"type":"tool_use","id":"`+xy+`","name":"read","input":{"arguments":"half {"}}]},
	    {"role":"user","content":[
	      {"type":"tool_result","tool_use_id":"call_w1","content":[{"type":"text","text":"README"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}}]},
	      {"type":"tool_result","tool_use_id":"`+xy+`","is_error":true},
	      {"type":"text","text":"and then?"},
	      {"type":"text","text":"go on","cache_control":{"type":"ephemeral"}}]}]}`)
	if diff := cmp.Diff(want, body(t, r)); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutASystemPromptTheToolsAreKept(t *testing.T) {
	t.Parallel()
	r := ask("hi")
	r.Tools = []model.Tool{{Name: "a"}, {Name: "b"}}
	tools, ok := body(t, r)["tools"].([]any)
	if !ok || len(tools) != 2 {
		t.Fatalf("tools = %v", tools)
	}
	for i, want := range []bool{false, true} {
		if _, got := tools[i].(map[string]any)["cache_control"]; got != want {
			t.Errorf("tool %d is marked: %v", i, got)
		}
	}
}

func TestThinkingByModel(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		model, level string
		max          int
		want         string
	}{
		{"claude-sonnet-4-5", "", 0, `{"max_tokens":16384}`},
		{"claude-sonnet-4-5", "high", 0, `{"max_tokens":20480,"thinking":{"type":"enabled","budget_tokens":16384}}`},
		{"claude-sonnet-4-5", "low", 500, `{"max_tokens":6144,"thinking":{"type":"enabled","budget_tokens":2048}}`},
		{"claude-sonnet-5-5", "minimal", 0, `{"max_tokens":16384,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}`},
		{"claude-sonnet-5-5", "off", 0, `{"max_tokens":16384}`},
		{"claude-sonnet-5-5", "max", 0, `{"max_tokens":16384,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}}`},
		{"claude-sonnet-5-5", "adaptive", 0, `{"max_tokens":16384,"thinking":{"type":"adaptive","display":"summarized"}}`},
		{"claude-sonnet-4-5", "xhigh", 0, `{"max_tokens":36864,"thinking":{"type":"enabled","budget_tokens":32768}}`},
	} {
		r := ask("hi")
		r.Model, r.Thinking, r.MaxOutputTokens = row.model, row.level, row.max
		got := body(t, r)
		for _, field := range []string{"model", "stream", "messages"} {
			delete(got, field)
		}
		if diff := cmp.Diff(object(t, row.want), got); diff != "" {
			t.Errorf("%s, %s: %s", row.model, row.level, diff)
		}
	}
}

func TestBadSchemaIsAnErrorOfTheRequest(t *testing.T) {
	t.Parallel()
	p, err := New(Config{APIKey: "k", BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	r := ask("hi")
	r.Tools = []model.Tool{{Name: "x", Schema: json.RawMessage(`{`)}}
	for _, err := range p.Stream(t.Context(), r) {
		if model.ClassOf(err) != model.Format {
			t.Errorf("err = %v", err)
		}
	}
}

// Fast answers are a service tier at Anthropic itself, and nothing anywhere else.
func TestFastByServer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		base, fast string
		want       any
	}{
		{"", model.FastOn, "auto"},
		{"", model.FastOff, "standard_only"},
		{"", "", nil},
		{"http://127.0.0.1:1", model.FastOn, nil},
	} {
		p, err := New(Config{APIKey: "k", BaseURL: row.base})
		if err != nil {
			t.Fatal(err)
		}
		r := ask("hi")
		r.Fast = row.fast
		b, err := p.encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := object(t, string(b))["service_tier"]; got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}
