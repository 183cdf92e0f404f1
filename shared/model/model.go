// Package model is the port to language models: one streaming call, with typed
// parts and typed errors.
//
// Guarantees: a Stream gives its parts in the order the provider sent them; text
// and thinking parts are never empty; a tool call is given whole, once, after its
// arguments are complete, with an id that is unique in the message; Done comes
// last and once, and only after the provider said that the message ended: a
// stream that is cut ends with an *Error of class timeout, never with Done. After
// an error nothing follows. Cancelling the context closes the connection to the
// provider at once. Adapters never retry: retries are the caller's.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Role of a message.
type Role string

// The roles. A tool result is a message of its own, as in the transcript.
const (
	User       Role = "user"
	Assistant  Role = "assistant"
	ToolResult Role = "toolResult"
)

// Message is one entry of the conversation as the model sees it.
type Message struct {
	Role    Role
	Content []Block
	// Assistant: why it stopped ("stop", "toolUse", "length", "aborted", "error").
	StopReason string
	// ToolResult: which call it answers.
	ToolCallID string
	ToolName   string
	IsError    bool
}

// BlockType says which fields of a Block are set.
type BlockType string

// The block types.
const (
	Text     BlockType = "text"
	Thinking BlockType = "thinking"
	ToolCall BlockType = "toolCall"
	Image    BlockType = "image"
)

// Block is a piece of a message's content.
type Block struct {
	Type      BlockType       `json:"type"`
	Text      string          `json:"text,omitempty"`      // Text
	Thinking  string          `json:"thinking,omitempty"`  // Thinking
	Signature string          `json:"signature,omitempty"` // Thinking: the provider's proof, given back as it came
	ID        string          `json:"id,omitempty"`        // ToolCall
	Name      string          `json:"name,omitempty"`      // ToolCall
	Arguments json.RawMessage `json:"arguments,omitempty"` // ToolCall: valid JSON, a string if the model wrote none (see Args)
	MimeType  string          `json:"mimeType,omitempty"`  // Image
	Data      []byte          `json:"data,omitempty"`      // Image
}

// Tool is what the model is told about a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, an object
}

// Request is one model call.
type Request struct {
	Model    string // the provider's own id
	System   string
	Messages []Message
	Tools    []Tool
	// ToolChoice names the tool that must be called; empty: the model chooses.
	ToolChoice      string
	MaxOutputTokens int    // 0: the provider's default
	Thinking        string // a level of package thinking that the model knows; empty: default
	// Reasons says that the configuration calls the model one that takes levels: the
	// adapter knows only the ids of those that everybody knows.
	Reasons    bool
	Fast       string // FastOn, FastOff; empty: the provider's default
	SessionKey string // a hint for provider-side caching, never content
}

// What Request.Fast may be.
const (
	FastOn  = "on"
	FastOff = "off"
)

// Part is one piece of a streamed answer; exactly one field is set.
type Part struct {
	Text     string
	Thinking string
	// ThinkingDone closes a thinking block that carries a signature.
	ThinkingDone *Block
	ToolCall     *Block
	Usage        *Usage // may come more than once; the last one counts
	Done         *Done
}

// Done is the end of a message.
type Done struct {
	StopReason string // stop, toolUse, length, refusal
	Raw        string // the provider's word for it
}

// Usage counts tokens of one call. Zero means not told.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Total      int64 `json:"total"`
}

// Add sums usages of several calls.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Total + v.Total}
}

// Provider is a source of answers. Stream returns a sequence that makes the call
// when it is ranged over; leaving the range early closes the connection. An error
// is always an *Error and ends the sequence.
type Provider interface {
	Stream(ctx context.Context, r Request) iter.Seq2[Part, error]
}

// Endpoint classes decide the idle window (spec: runtime 5.2).
type Endpoint string

// The endpoint classes.
const (
	Cloud      Endpoint = "cloud"
	SelfHosted Endpoint = "self-hosted"
	Local      Endpoint = "local"
)

// Selected is a provider with the model that a run uses.
type Selected struct {
	Provider Provider
	Name     string // provider id: openai, anthropic, bedrock, demo
	Model    string // the provider's own model id
	Endpoint Endpoint
	// ContextWindow in tokens; 0: unknown.
	ContextWindow int
	// MaxTokens of an answer; 0: the provider's default.
	MaxTokens int
	// Timeout of the provider's silence that was configured; 0: by its class.
	Timeout time.Duration
	Price   *Price // as it was configured; nil: not
	// API is how it is spoken to, as a configuration calls it; empty: not told.
	API string
	// Reasons says that it was configured to take thinking levels, Plain that it was
	// configured to take none; neither: known by its id, or not at all.
	Reasons, Plain bool
}

// Info is a line of models.list.
type Info struct {
	ID, Name, Provider string
	ContextWindow      int
	MaxTokens          int
	API                string
	Alias              string
	Reasons, Plain     bool // as in Selected
	Images             bool // it was configured to see images
	Price              *Price
}

// Price is in USD for a million tokens.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}
