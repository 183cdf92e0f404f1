package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"laneway/shared/id"
	"laneway/shared/model"
	"laneway/shared/model/claude"
)

// The request's wire form.
type (
	request struct {
		Model        string        `json:"model"`
		MaxTokens    int           `json:"max_tokens"`
		Stream       bool          `json:"stream"`
		System       []block       `json:"system,omitempty"`
		Messages     []message     `json:"messages"`
		Tools        []tool        `json:"tools,omitempty"`
		ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
		Thinking     *thinking     `json:"thinking,omitempty"`
		OutputConfig *outputConfig `json:"output_config,omitempty"`
		Metadata     *metadata     `json:"metadata,omitempty"`
		ServiceTier  string        `json:"service_tier,omitempty"`
	}
	message struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}
	// block is any content block; Type says which fields are set.
	block struct {
		Type string `json:"type"`
		Text string `json:"text,omitempty"`
		// A signed thinking block may be empty and must still have the field.
		Thinking  *string         `json:"thinking,omitempty"`
		Signature string          `json:"signature,omitempty"`
		Data      string          `json:"data,omitempty"`
		Source    *source         `json:"source,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		Content   []block         `json:"content,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
		Cache     *cache          `json:"cache_control,omitempty"`
	}
	source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"` // base64 on the wire
	}
	cache struct {
		Type string `json:"type"`
	}
	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
		Cache       *cache          `json:"cache_control,omitempty"`
	}
	toolChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	thinking struct {
		Type    string `json:"type"`
		Budget  int    `json:"budget_tokens,omitempty"`
		Display string `json:"display,omitempty"`
	}
	outputConfig struct {
		Effort string `json:"effort"`
	}
	metadata struct {
		UserID string `json:"user_id"`
	}
)

// here marks a place up to which the provider shall keep the prompt.
func here() *cache { return &cache{Type: "ephemeral"} }

func (p *Provider) encode(r model.Request) ([]byte, error) {
	w := request{Model: r.Model, MaxTokens: r.MaxOutputTokens, Stream: true, Messages: messages(r.Messages)}
	if w.MaxTokens <= 0 {
		w.MaxTokens = p.maxTokens
	}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		w.Tools = append(w.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	// Tools come before the system prompt in what is kept, so one mark serves both.
	if r.System != "" {
		w.System = []block{{Type: "text", Text: r.System, Cache: here()}}
	} else if n := len(w.Tools); n > 0 {
		w.Tools[n-1].Cache = here()
	}
	if p.official {
		w.ServiceTier = tier(r.Fast)
	}
	if r.ToolChoice != "" {
		w.ToolChoice = &toolChoice{"tool", r.ToolChoice} // which thinking excludes
	} else {
		w.think(r.Thinking)
	}
	if r.SessionKey != "" {
		// The API asks for an opaque id; session keys name people and rooms.
		w.Metadata = &metadata{id.Hash("prompt-cache", r.SessionKey)}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(w); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return buf.Bytes(), nil
}

// think asks for a thinking level.
func (w *request) think(level string) {
	t := claude.Think(w.Model, level)
	w.MaxTokens = t.MaxTokens(w.MaxTokens)
	switch {
	case t.Budget > 0:
		w.Thinking = &thinking{Type: "enabled", Budget: t.Budget}
	case t.Effort != "" || t.Adaptive:
		w.Thinking = &thinking{Type: "adaptive", Display: "summarized"}
		if t.Effort != "" {
			w.OutputConfig = &outputConfig{t.Effort}
		}
	}
}

// tier is Anthropic's word for how much a fast answer is worth.
func tier(fast string) string {
	switch fast {
	case model.FastOn:
		return "auto"
	case model.FastOff:
		return "standard_only"
	}
	return ""
}

// messages puts the conversation into the API's form: user and assistant take
// turns, the user first, and the results of tools are a user's blocks. The last
// two user messages are marked to be kept, so that the next call finds the prompt
// of this one.
func messages(in []model.Message) []message {
	var out []message
	add := func(role string, blocks []block) {
		if len(blocks) == 0 {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		if len(out) == 0 && role == "assistant" {
			out = append(out, message{"user", []block{{Type: "text", Text: "(The conversation goes on.)"}}})
		}
		out = append(out, message{role, blocks})
	}
	for _, m := range in {
		switch m.Role {
		case model.User:
			add("user", said(m.Content))
		case model.Assistant:
			add("assistant", answered(m.Content))
		case model.ToolResult:
			add("user", []block{{
				Type: "tool_result", ToolUseID: model.PlainCallID(m.ToolCallID), Content: said(m.Content), IsError: m.IsError,
			}})
		}
	}
	marks := 2
	for i := len(out) - 1; i >= 0 && marks > 0; i-- {
		if out[i].Role == "user" {
			out[i].Content[len(out[i].Content)-1].Cache = here()
			marks--
		}
	}
	return out
}

// said gives text and images; the API refuses empty text.
func said(blocks []model.Block) []block {
	var out []block
	for _, b := range blocks {
		switch b.Type {
		case model.Text:
			if b.Text != "" {
				out = append(out, block{Type: "text", Text: b.Text})
			}
		case model.Image:
			out = append(out, block{Type: "image", Source: &source{"base64", b.MimeType, b.Data}})
		case model.Thinking, model.ToolCall:
		}
	}
	return out
}

// redacted begins the signature of a thinking block that came encrypted.
const redacted = "redacted:"

// answered gives an assistant's blocks back. Thinking without a signature is left
// out: the API takes only what it can verify.
func answered(blocks []model.Block) []block {
	var out []block
	for _, b := range blocks {
		switch b.Type {
		case model.Text:
			if b.Text != "" {
				out = append(out, block{Type: "text", Text: b.Text})
			}
		case model.Thinking:
			if data, ok := strings.CutPrefix(b.Signature, redacted); ok {
				out = append(out, block{Type: "redacted_thinking", Data: data})
			} else if b.Signature != "" {
				out = append(out, block{Type: "thinking", Thinking: &b.Thinking, Signature: b.Signature})
			}
		case model.ToolCall:
			out = append(out, block{Type: "tool_use", ID: model.PlainCallID(b.ID), Name: b.Name, Input: model.ArgsObject(b.Arguments)})
		case model.Image:
		}
	}
	return out
}
