package openai

import (
	"fmt"
	"strconv"
	"strings"

	"laneway/shared/id"
	"laneway/shared/model"
	"laneway/shared/model/thinking"
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
	if p.official || r.Reasons {
		w.optional(`,"reasoning_effort":`, effort(r))
	}
	limit := `,"max_tokens":`
	if p.official {
		limit = `,"max_completion_tokens":`
		w.optional(`,"service_tier":`, tier(r.Fast))
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
func effort(r model.Request) string {
	name, level := r.Model, r.Thinking
	known := thinking.OpenAIReasons(name)
	if level == "" || !known && !r.Reasons {
		return ""
	}
	lowest := "low"
	switch {
	case name == "gpt-5" || strings.HasPrefix(name, "gpt-5-"):
		lowest = "minimal"
	case known && strings.HasPrefix(name, "gpt-"):
		lowest = "none"
	case !known:
		lowest = "" // a server that was configured: off says nothing
	}
	switch level {
	case thinking.Off:
		return lowest
	case thinking.Minimal:
		if lowest == "minimal" {
			return "minimal"
		}
		return "low"
	case thinking.Adaptive:
		return "" // the model decides
	case thinking.Max, thinking.Ultra:
		return "high"
	case thinking.Low, thinking.Medium, thinking.High, thinking.XHigh:
		return level
	}
	return ""
}

// tier is OpenAI's word for a fast answer.
func tier(fast string) string {
	if fast == model.FastOn {
		return "priority"
	}
	return ""
}
