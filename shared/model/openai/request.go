package openai

import (
	"fmt"
	"strconv"
	"strings"

	"laneway/shared/id"
	"laneway/shared/model"
)

// encode writes the request as JSON. It is written by hand: a long conversation goes
// over the wire whole with every step, and encoding/json takes five times as long and
// copies it three times. Only fields that every known copy of the API takes are sent to
// servers other than OpenAI.
func (p *Provider) encode(r model.Request) ([]byte, error) {
	w := writer{b: make([]byte, 0, estimate(r))}
	w.raw(`{"model":`)
	w.text(r.Model)
	w.raw(`,"messages":[`)
	w.messages(r)
	w.raw(`],"stream":true`)
	if p.usage {
		w.raw(`,"stream_options":{"include_usage":true}`)
	}
	if err := w.tools(r.Tools); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	if r.ToolChoice != "" {
		w.raw(`,"tool_choice":{"type":"function","function":{"name":`)
		w.text(r.ToolChoice)
		w.raw(`}}`)
	}
	limit := `,"max_tokens":`
	if p.official {
		limit = `,"max_completion_tokens":`
		w.optional(`,"reasoning_effort":`, effort(r.Model, r.Thinking))
		if r.SessionKey != "" {
			// Keys name people and rooms; the hash does as well as a hint.
			w.optional(`,"prompt_cache_key":`, id.Hash("prompt-cache", r.SessionKey))
		}
	}
	if r.MaxOutputTokens != 0 {
		w.raw(limit)
		w.b = strconv.AppendInt(w.b, int64(r.MaxOutputTokens), 10)
	}
	w.raw("}")
	return w.b, nil
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
