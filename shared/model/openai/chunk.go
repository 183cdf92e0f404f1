package openai

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"laneway/shared/model"
)

// A chunk of the stream, or a whole answer of a server that does not stream. null
// leaves a field empty, as absence does; that is meant.
type (
	chunk struct {
		Choices []choice        `json:"choices"`
		Usage   *usage          `json:"usage"`
		Error   json.RawMessage `json:"error"`
		// Some servers send an error without the envelope.
		Object  string `json:"object"`
		Message string `json:"message"`
	}
	choice struct {
		Index        int    `json:"index"`
		Delta        delta  `json:"delta"`
		Message      *delta `json:"message"` // of an answer that is not streamed
		FinishReason string `json:"finish_reason"`
	}
	delta struct {
		Content          string      `json:"content"`
		Refusal          string      `json:"refusal"`
		ReasoningContent string      `json:"reasoning_content"`
		Reasoning        string      `json:"reasoning"`
		ToolCalls        []callDelta `json:"tool_calls"`
	}
	callDelta struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name string `json:"name"`
			// A string by the book, an object from some servers.
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	usage struct {
		PromptTokens        int64 `json:"prompt_tokens"`
		CompletionTokens    int64 `json:"completion_tokens"`
		TotalTokens         int64 `json:"total_tokens"`
		PromptTokensDetails struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
)

// parse decodes a chunk. A field of an unexpected type counts as absent; only
// text that is no JSON is an error.
func parse(data []byte) (chunk, error) {
	var c chunk
	err := json.Unmarshal(data, &c)
	if err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = nil
		}
	}
	return c, err
}

// counts makes our usage of theirs: there input includes what came from a cache.
func (u *usage) counts() model.Usage {
	cached := u.PromptTokensDetails.CachedTokens
	out := model.Usage{
		Input: max(0, u.PromptTokens-cached), Output: u.CompletionTokens, CacheRead: cached, Total: u.TotalTokens,
	}
	if out.Total == 0 {
		out.Total = u.PromptTokens + u.CompletionTokens
	}
	return out
}

// wireError is what servers say inside "error", or without that envelope.
type wireError struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a word, or a status as OpenRouter and vLLM have it
}

// describe takes an error object apart: a code, and the HTTP status if that is
// what the code is.
func describe(raw json.RawMessage) (code, text string, status int) {
	var e wireError
	if json.Unmarshal(raw, &e) != nil {
		return "", string(raw), 0
	}
	word := strings.Trim(string(e.Code), `"`)
	if n, err := strconv.Atoi(word); err == nil {
		if n >= 400 && n < 600 {
			status = n
		}
		word = ""
	}
	if word == "" || word == "null" {
		word = e.Type
	}
	return word, e.Type + " " + e.Message, status
}

// errorCode finds the code in an error body; empty if there is none.
func errorCode(body []byte) string {
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return ""
	}
	if len(envelope.Error) == 0 {
		envelope.Error = body
	}
	code, _, _ := describe(envelope.Error)
	return code
}
