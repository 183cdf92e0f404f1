// Package tool is what an agent can do: the registry of tools, checking of
// arguments, and the shape of results.
//
// Guarantees: a tool is run at most once for an accepted call; arguments that do
// not fit its schema, an unknown name and a panic become error results for the
// model, never an error of the run; results are cut to the caller's limit on rune
// boundaries with a notice; nothing of arguments or results reaches a log.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"laneway/shared/model"
	"laneway/shared/reply"
)

// Effect says what a repeated run of a tool does (rule L2).
type Effect int

// The effects. Unsafe is the zero value: a tool that says nothing is not repeated.
const (
	Unsafe     Effect = iota // may do something twice: outcome unknown after a crash
	Idempotent               // same key, same effect
	ReadOnly                 // changes nothing
)

// Tool is one thing an agent can do.
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, call Call) (Result, error)
}

// Limited is a tool whose calls can say how long they may take, so that a silent one
// is not taken for a stuck one before that. The arguments may not fit the schema.
type Limited interface {
	// Limit is the deadline that the arguments name; 0: none; negative: for ever.
	Limit(arguments json.RawMessage) time.Duration
}

// Spec describes a tool to the model and to the loop.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of an object
	Effect      Effect
	Sequential  bool // a batch with such a call runs one call after another
}

// Call is an accepted call. Key is stable over attempts (run, step, index): tools
// that can take an idempotency key get it.
type Call struct {
	ID        string // the model's id
	Name      string
	Arguments json.RawMessage // valid by the schema
	Key       string
	Scope     Scope
	Update    func(partial Result) // progress; may be nil
}

// Scope is for whom a tool runs.
type Scope struct {
	Tenant, AgentID, SessionKey, SessionID, RunID string
	Workspace                                     string
}

// Result is what the model and the clients see.
type Result struct {
	Content []model.Block
	Details map[string]any // for clients, never for the model
	IsError bool
	Meta    string // one-line label
	// Sent are the messages that the call has delivered to people: an answer of the model
	// that only repeats one is not shown. A call that failed has delivered none.
	Sent []reply.Sent
}

// TextResult is a result of one text block.
func TextResult(text string) Result {
	return Result{Content: []model.Block{{Type: model.Text, Text: text}}}
}

// ErrorResult is an error the model is told.
func ErrorResult(text string) Result {
	r := TextResult(text)
	r.IsError = true
	return r
}
