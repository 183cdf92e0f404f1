package bedrock

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/id"
	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

// Numbers must arrive as they were written, which a comparison of decoded JSON does
// not see.
func TestLargeNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	r := ask("hi")
	r.Messages = append(r.Messages, model.Message{Role: model.Assistant, Content: []model.Block{call("a", "ls", `{"n":9007199254740993}`)}},
		model.Message{Role: model.ToolResult, ToolCallID: "a"})
	p, srv := setup(t, events(begin, text("a"), stop("end_turn"), meta))
	modeltest.Collect(t, p.Stream(t.Context(), r))
	if body := string(srv.Calls()[0].Body); !strings.Contains(body, `{"n":9007199254740993}`) {
		t.Error(body)
	}
}

// sent is the body that the server got for a request.
func sent(t *testing.T, r model.Request) map[string]any {
	t.Helper()
	p, srv := setup(t, events(begin, text("a"), stop("end_turn"), meta))
	if turn := modeltest.Collect(t, p.Stream(t.Context(), r)); turn.Err != nil {
		t.Fatal(turn.Err)
	}
	return object(t, string(srv.Calls()[0].Body))
}

func object(t *testing.T, s string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func txt(s string) model.Block { return model.Block{Type: model.Text, Text: s} }

func TestRequest(t *testing.T) {
	t.Parallel()
	img := model.Block{Type: model.Image, MimeType: "image/jpg", Data: []byte{1, 2, 3}}
	r := model.Request{
		Model: "eu.anthropic.claude-sonnet-4-5-v1:0", System: "be brief", MaxOutputTokens: 100, Thinking: "high", ToolChoice: "ls",
		Tools: []model.Tool{
			{Name: "ls", Description: "lists", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993,"multipleOf":0.5}}}`)},
			{Name: "now"},
		},
		Messages: []model.Message{
			{Role: model.Assistant, Content: []model.Block{txt("from before")}},
			{Role: model.User, Content: []model.Block{txt("a"), txt(" ")}},
			{Role: model.User, Content: []model.Block{img}},
			{Role: model.Assistant, Content: []model.Block{
				{Type: model.Thinking, Thinking: "hm", Signature: "Eo=="},
				{Type: model.Thinking, Thinking: "unsigned"},
				{Type: model.Thinking, Signature: "redacted:AP8="},
				txt("I look"),
				{Type: model.ToolCall, ID: "call_w1", Name: "ls", Arguments: json.RawMessage(`{"n":9007199254740993}`)},
				{Type: model.ToolCall, ID: "x|y", Name: "now", Arguments: json.RawMessage(`"half {"`)},
			}},
			{Role: model.ToolResult, ToolCallID: "call_w1", ToolName: "ls", Content: []model.Block{txt("README"), img}},
			{Role: model.ToolResult, ToolCallID: "x|y", ToolName: "now", IsError: true},
			{Role: model.User, Content: []model.Block{txt("go on")}},
		},
	}
	xy := "call_" + id.Hash("tool-call", "x|y")
	const mark = `{"cachePoint":{"type":"default"}}`
	want := object(t, `{
	  "inferenceConfig":{"maxTokens":100},
	  "system":[{"text":"be brief"},`+mark+`],
	  "toolConfig":{"toolChoice":{"tool":{"name":"ls"}},"tools":[
	    {"toolSpec":{"name":"ls","description":"lists","inputSchema":{"json":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993,"multipleOf":0.5}}}}}},
	    {"toolSpec":{"name":"now","inputSchema":{"json":{"type":"object","properties":{}}}}}]},
	  "messages":[
	    {"role":"user","content":[{"text":"(The conversation goes on.)"}]},
	    {"role":"assistant","content":[{"text":"from before"}]},
	    {"role":"user","content":[{"text":"a"},{"image":{"format":"jpeg","source":{"bytes":"AQID"}}},`+mark+`]},
	    {"role":"assistant","content":[
	      {"reasoningContent":{"reasoningText":{"text":"hm","signature":"Eo=="}}},
	      {"reasoningContent":{"redactedContent":"AP8="}},
	      {"text":"I look"},
	      {"toolUse":{"toolUseId":"call_w1","name":"ls","input":{"n":9007199254740993}}},
	      {"toolUse":{"toolUseId":"`+xy+`","name":"now","input":{"arguments":"half {"}}}]},
	    {"role":"user","content":[
	      {"toolResult":{"toolUseId":"call_w1","status":"success","content":[{"text":"README"},{"image":{"format":"jpeg","source":{"bytes":"AQID"}}}]}},
	      {"toolResult":{"toolUseId":"`+xy+`","status":"error","content":[{"text":"(no output)"}]}},
	      {"text":"go on"},`+mark+`]}]}`)
	if diff := cmp.Diff(want, sent(t, r)); diff != "" {
		t.Error(diff)
	}
}

func TestRequestByModel(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ model, level, want string }{
		{"amazon.nova-pro-v1:0", "high", `{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"text":"hi"}]}]}`},
		{"anthropic.claude-3-haiku-20240307-v1:0", "", `{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"text":"hi"}]}]}`},
		{"anthropic.claude-sonnet-4-5-v1:0", "low", `{"inferenceConfig":{"maxTokens":6144},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2048}},
		  "system":[{"text":"s"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{"type":"default"}}]}]}`},
		{"anthropic.claude-opus-5-5", "low", `{"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}},
		  "system":[{"text":"s"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{"type":"default"}}]}]}`},
	} {
		t.Run(row.model, func(t *testing.T) {
			t.Parallel()
			r := ask("hi")
			r.Model, r.Thinking, r.System = row.model, row.level, "s"
			if diff := cmp.Diff(object(t, row.want), sent(t, r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestToolsThatWereCalledAreNamedThoughNoneIsOffered(t *testing.T) {
	t.Parallel()
	r := ask("hi")
	r.Model = "amazon.nova-pro-v1:0"
	r.Messages = append(r.Messages,
		model.Message{Role: model.Assistant, Content: []model.Block{call("a", "ls", "{}"), call("b", "ls", "{}")}},
		model.Message{Role: model.ToolResult, ToolCallID: "a", Content: []model.Block{txt("x")}},
		model.Message{Role: model.ToolResult, ToolCallID: "b", Content: []model.Block{txt("y")}})
	want := object(t, `{"tools":[{"toolSpec":{"name":"ls","inputSchema":{"json":{"type":"object","properties":{}}}}}]}`)
	if diff := cmp.Diff(any(want), sent(t, r)["toolConfig"]); diff != "" {
		t.Error(diff)
	}
}

func TestBadSchemaIsAnErrorOfTheRequest(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, events())
	r := ask("hi")
	r.Tools = []model.Tool{{Name: "x", Schema: json.RawMessage(`{`)}}
	if turn := modeltest.Collect(t, p.Stream(t.Context(), r)); turn.Err == nil || turn.Err.Class != model.Format || len(srv.Calls()) != 0 {
		t.Errorf("err = %v", turn.Err)
	}
}
