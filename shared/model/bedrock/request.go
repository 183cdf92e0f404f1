package bedrock

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"laneway/shared/model"
	"laneway/shared/model/claude"
)

// input makes the request.
func input(r model.Request) (*bedrockruntime.ConverseStreamInput, error) {
	keep := claude.KeepsPrompts(r.Model)
	in := &bedrockruntime.ConverseStreamInput{ModelId: aws.String(r.Model)}
	messages, err := messages(r.Messages, keep)
	if err != nil {
		return nil, err
	}
	in.Messages = messages
	if r.System != "" {
		in.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: r.System}}
		if keep {
			in.System = append(in.System, &types.SystemContentBlockMemberCachePoint{Value: here()})
		}
	}
	if in.ToolConfig, err = tools(r); err != nil {
		return nil, err
	}
	limit := r.MaxOutputTokens
	if r.ToolChoice == "" && claude.Is(r.Model) { // a forced tool excludes thinking
		t := claude.Think(r.Model, r.Thinking)
		limit = t.MaxTokens(limit)
		switch {
		case t.Budget > 0:
			in.AdditionalModelRequestFields = document.NewLazyDocument(map[string]any{
				"thinking": map[string]any{"type": "enabled", "budget_tokens": t.Budget},
			})
		case t.Adaptive:
			in.AdditionalModelRequestFields = document.NewLazyDocument(map[string]any{
				"thinking": map[string]any{"type": "adaptive", "display": "summarized"},
			})
		case t.Effort != "":
			in.AdditionalModelRequestFields = document.NewLazyDocument(map[string]any{
				"thinking":      map[string]any{"type": "adaptive", "display": "summarized"},
				"output_config": map[string]any{"effort": t.Effort},
			})
		}
	}
	if limit > 0 {
		in.InferenceConfig = &types.InferenceConfiguration{MaxTokens: aws.Int32(int32(min(limit, 1<<30)))}
	}
	return in, nil
}

// here marks a place up to which the provider shall keep the prompt.
func here() types.CachePointBlock { return types.CachePointBlock{Type: types.CachePointTypeDefault} }

// tools tells the tools. A conversation in which tools were called must name them
// even when none is offered any more.
func tools(r model.Request) (*types.ToolConfiguration, error) {
	offered := r.Tools
	if len(offered) == 0 {
		offered = used(r.Messages)
	}
	if len(offered) == 0 {
		return nil, nil //nolint:nilnil // no tools is no error
	}
	out := &types.ToolConfiguration{}
	for _, t := range offered {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		doc, err := lazy(schema)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		spec := types.ToolSpecification{Name: aws.String(t.Name), InputSchema: &types.ToolInputSchemaMemberJson{Value: doc}}
		if t.Description != "" {
			spec.Description = aws.String(t.Description)
		}
		out.Tools = append(out.Tools, &types.ToolMemberToolSpec{Value: spec})
	}
	if r.ToolChoice != "" {
		out.ToolChoice = &types.ToolChoiceMemberTool{Value: types.SpecificToolChoice{Name: aws.String(r.ToolChoice)}}
	}
	return out, nil
}

func used(messages []model.Message) []model.Tool {
	var out []model.Tool
	seen := make(map[string]bool)
	for _, m := range messages {
		for _, b := range m.Content {
			if b.Type == model.ToolCall && !seen[b.Name] {
				seen[b.Name] = true
				out = append(out, model.Tool{Name: b.Name})
			}
		}
	}
	return out
}

// lazy makes a document of JSON, numbers as they are written.
func lazy(raw json.RawMessage) (document.Interface, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return document.NewLazyDocument(plain(v)), nil
}

// plain replaces json.Number, which documents do not know, by numbers.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	}
	return v
}

// messages puts the conversation into the API's form: user and assistant take
// turns, the user first, and the results of tools are a user's blocks.
func messages(in []model.Message, keep bool) ([]types.Message, error) {
	var out []types.Message
	add := func(role types.ConversationRole, blocks []types.ContentBlock) {
		if len(blocks) == 0 {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		if len(out) == 0 && role == types.ConversationRoleAssistant {
			out = append(out, types.Message{Role: types.ConversationRoleUser, Content: []types.ContentBlock{
				&types.ContentBlockMemberText{Value: "(The conversation goes on.)"},
			}})
		}
		out = append(out, types.Message{Role: role, Content: blocks})
	}
	for _, m := range in {
		switch m.Role {
		case model.User:
			add(types.ConversationRoleUser, said(m.Content))
		case model.Assistant:
			blocks, err := answered(m.Content)
			if err != nil {
				return nil, err
			}
			add(types.ConversationRoleAssistant, blocks)
		case model.ToolResult:
			add(types.ConversationRoleUser, []types.ContentBlock{result(m)})
		}
	}
	if keep {
		mark(out)
	}
	return out, nil
}

// mark lets the provider keep the prompt up to the last two user messages, so that
// the next call finds that of this one.
func mark(messages []types.Message) {
	marks := 2
	for i := len(messages) - 1; i >= 0 && marks > 0; i-- {
		if messages[i].Role == types.ConversationRoleUser {
			messages[i].Content = append(messages[i].Content, &types.ContentBlockMemberCachePoint{Value: here()})
			marks--
		}
	}
}

// blank says that the API would refuse a text.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

func said(blocks []model.Block) []types.ContentBlock {
	var out []types.ContentBlock
	for _, b := range blocks {
		switch b.Type {
		case model.Text:
			if !blank(b.Text) {
				out = append(out, &types.ContentBlockMemberText{Value: b.Text})
			}
		case model.Image:
			out = append(out, &types.ContentBlockMemberImage{Value: image(b)})
		case model.Thinking, model.ToolCall:
		}
	}
	return out
}

func image(b model.Block) types.ImageBlock {
	_, kind, _ := strings.Cut(b.MimeType, "/")
	if kind == "jpg" {
		kind = "jpeg"
	}
	return types.ImageBlock{Format: types.ImageFormat(kind), Source: &types.ImageSourceMemberBytes{Value: b.Data}}
}

func result(m model.Message) types.ContentBlock {
	r := types.ToolResultBlock{ToolUseId: aws.String(model.PlainCallID(m.ToolCallID)), Status: types.ToolResultStatusSuccess}
	if m.IsError {
		r.Status = types.ToolResultStatusError
	}
	for _, b := range m.Content {
		switch b.Type {
		case model.Text:
			if !blank(b.Text) {
				r.Content = append(r.Content, &types.ToolResultContentBlockMemberText{Value: b.Text})
			}
		case model.Image:
			r.Content = append(r.Content, &types.ToolResultContentBlockMemberImage{Value: image(b)})
		case model.Thinking, model.ToolCall:
		}
	}
	if len(r.Content) == 0 { // which the API refuses
		r.Content = []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: "(no output)"}}
	}
	return &types.ContentBlockMemberToolResult{Value: r}
}

// redacted begins the signature of a thinking block that came encrypted; base64 follows.
const redacted = "redacted:"

// answered gives an assistant's blocks back. Thinking without a signature is left
// out: the API takes only what it can verify.
func answered(blocks []model.Block) ([]types.ContentBlock, error) {
	var out []types.ContentBlock
	for _, b := range blocks {
		switch b.Type {
		case model.Text:
			if !blank(b.Text) {
				out = append(out, &types.ContentBlockMemberText{Value: b.Text})
			}
		case model.Thinking:
			if data, ok := strings.CutPrefix(b.Signature, redacted); ok {
				raw, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					return nil, fmt.Errorf("encrypted thinking: %w", err)
				}
				out = append(out, &types.ContentBlockMemberReasoningContent{
					Value: &types.ReasoningContentBlockMemberRedactedContent{Value: raw},
				})
			} else if b.Signature != "" {
				out = append(out, &types.ContentBlockMemberReasoningContent{
					Value: &types.ReasoningContentBlockMemberReasoningText{
						Value: types.ReasoningTextBlock{Text: aws.String(b.Thinking), Signature: aws.String(b.Signature)},
					},
				})
			}
		case model.ToolCall:
			doc, err := lazy(model.ArgsObject(b.Arguments))
			if err != nil {
				return nil, fmt.Errorf("arguments of %s: %w", b.Name, err)
			}
			out = append(out, &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
				ToolUseId: aws.String(model.PlainCallID(b.ID)), Name: aws.String(b.Name), Input: doc,
			}})
		case model.Image:
		}
	}
	return out, nil
}
