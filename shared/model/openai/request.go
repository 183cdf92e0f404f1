package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"laneway/shared/id"
	"laneway/shared/model"
)

// The request's wire form. Only fields that every known copy of the API takes
// are sent to servers other than OpenAI.
type (
	request struct {
		Model               string         `json:"model"`
		Messages            []message      `json:"messages"`
		Stream              bool           `json:"stream"`
		StreamOptions       *streamOptions `json:"stream_options,omitempty"`
		Tools               []tool         `json:"tools,omitempty"`
		ToolChoice          *toolChoice    `json:"tool_choice,omitempty"`
		MaxTokens           int            `json:"max_tokens,omitempty"`
		MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
		ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
		PromptCacheKey      string         `json:"prompt_cache_key,omitempty"`
	}
	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	message struct {
		Role string `json:"role"`
		// Content is a string or []part, never nil: null and absent content make
		// some servers fail.
		Content    any        `json:"content"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	part struct {
		Type     string    `json:"type"`
		Text     string    `json:"text,omitempty"`
		ImageURL *imageURL `json:"image_url,omitempty"`
	}
	imageURL struct {
		URL string `json:"url"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function callFunc `json:"function"`
	}
	callFunc struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	tool struct {
		Type     string   `json:"type"`
		Function toolFunc `json:"function"`
	}
	toolFunc struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	toolChoice struct {
		Type     string         `json:"type"`
		Function toolChoiceFunc `json:"function"`
	}
	toolChoiceFunc struct {
		Name string `json:"name"`
	}
)

func (p *Provider) encode(r model.Request) ([]byte, error) {
	w := request{Model: r.Model, Messages: messages(r), Stream: true}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		w.Tools = append(w.Tools, tool{"function", toolFunc{t.Name, t.Description, schema}})
	}
	if r.ToolChoice != "" {
		w.ToolChoice = &toolChoice{"function", toolChoiceFunc{r.ToolChoice}}
	}
	if p.usage {
		w.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if p.official {
		w.MaxCompletionTokens = r.MaxOutputTokens
		w.ReasoningEffort = effort(r.Model, r.Thinking)
		if r.SessionKey != "" {
			// Keys name people and rooms; the hash does as well as a hint.
			w.PromptCacheKey = id.Hash("prompt-cache", r.SessionKey)
		}
	} else {
		w.MaxTokens = r.MaxOutputTokens
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(w); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return buf.Bytes(), nil
}

// effort is OpenAI's word for a thinking level; empty for models that do not
// reason, which refuse the field, and when no level is asked for.
func effort(name, level string) string {
	five := strings.HasPrefix(name, "gpt-5") || strings.HasPrefix(name, "gpt-6")
	oSeries := len(name) > 1 && name[0] == 'o' && name[1] >= '0' && name[1] <= '9'
	if level == "" || (!five && !oSeries) || strings.Contains(name, "chat") {
		return ""
	}
	lowest := "low"
	switch {
	case name == "gpt-5" || strings.HasPrefix(name, "gpt-5-"):
		lowest = "minimal"
	case five:
		lowest = "none"
	}
	switch level {
	case "off":
		return lowest
	case "minimal":
		if lowest == "minimal" {
			return "minimal"
		}
		return "low"
	case "low", "medium", "high":
		return level
	}
	return ""
}

// noOutput stands for an empty tool result, which some servers refuse.
const noOutput = "(no output)"

func messages(r model.Request) []message {
	out := make([]message, 0, len(r.Messages)+1)
	if r.System != "" {
		out = append(out, message{Role: "system", Content: r.System})
	}
	// A tool message carries text only. Images of results go into a user message
	// behind the last result, since results must follow their calls directly.
	var images []part
	flush := func() {
		if len(images) > 0 {
			out = append(out, message{Role: "user", Content: images})
			images = nil
		}
	}
	for _, m := range r.Messages {
		if m.Role != model.ToolResult {
			flush()
		}
		switch m.Role {
		case model.User:
			out = append(out, message{Role: "user", Content: userContent(m.Content)})
		case model.Assistant:
			if a, ok := assistant(m.Content); ok {
				out = append(out, a)
			}
		case model.ToolResult:
			text := joined(m.Content, "\n")
			pictures := imageParts(m.Content)
			if len(pictures) > 0 {
				images = append(append(images, part{Type: "text", Text: "Images of the result of " + m.ToolName + ":"}), pictures...)
				if text == "" {
					text = "(the images follow)"
				}
			}
			if text == "" {
				text = noOutput
			}
			out = append(out, message{Role: "tool", Content: text, ToolCallID: m.ToolCallID})
		}
	}
	flush()
	return out
}

func userContent(blocks []model.Block) any {
	pictures := imageParts(blocks)
	text := joined(blocks, "\n")
	if len(pictures) == 0 {
		return text
	}
	if text == "" {
		return pictures
	}
	return append([]part{{Type: "text", Text: text}}, pictures...)
}

// assistant is false for a message in which nothing was said or called, as after
// an early abort: some servers refuse it. Thinking is not given back; the API has
// no place for it.
func assistant(blocks []model.Block) (message, bool) {
	m := message{Role: "assistant", Content: joined(blocks, "")}
	for _, b := range blocks {
		if b.Type == model.ToolCall {
			m.ToolCalls = append(m.ToolCalls, toolCall{b.ID, "function", callFunc{b.Name, model.ArgsText(b.Arguments)}})
		}
	}
	return m, m.Content != "" || len(m.ToolCalls) > 0
}

func joined(blocks []model.Block, sep string) string {
	var (
		sb    strings.Builder
		first = true
	)
	for _, b := range blocks {
		if b.Type != model.Text || b.Text == "" {
			continue
		}
		if !first {
			sb.WriteString(sep)
		}
		first = false
		sb.WriteString(b.Text)
	}
	return sb.String()
}

func imageParts(blocks []model.Block) []part {
	var out []part
	for _, b := range blocks {
		if b.Type == model.Image {
			out = append(out, part{Type: "image_url", ImageURL: &imageURL{
				"data:" + b.MimeType + ";base64," + base64.StdEncoding.EncodeToString(b.Data),
			}})
		}
	}
	return out
}
