// Package demo is the model that answers when no real one is configured, so that
// streaming and tools can be seen without a network or a key.
//
// Guarantees: every answer says that it comes from the built-in demo model; the
// same request gives the same parts; tools are really asked for, and what is said
// about a folder or the time comes from their results, never from here. It keeps
// the promises of package model, the cut on cancel included.
package demo

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/model"
)

// ID is the demo's provider id and its model id.
const ID = "demo"

// Intro begins every answer.
const Intro = "I am the built-in demo model, not a real one."

// advice ends the answers in which nothing was looked up.
const advice = "For a real model set ANTHROPIC_API_KEY, OPENAI_API_KEY or LANEWAY_MODEL."

// Config of a Provider.
type Config struct {
	// Pause between two words; 0: 15 ms, negative: none.
	Pause time.Duration
	// Clock; nil: the system's.
	Clock clock.Clock
}

// Provider is the demo model.
type Provider struct {
	pause time.Duration
	clock clock.Clock
}

// New makes the demo model.
func New(cfg Config) *Provider {
	p := &Provider{pause: cfg.Pause, clock: cfg.Clock}
	if p.pause == 0 {
		p.pause = 15 * time.Millisecond
	}
	if p.clock == nil {
		p.clock = clock.System{}
	}
	return p
}

// Info is the demo's line of models.list.
func Info() model.Info {
	return model.Info{ID: ID, Name: "Built-in demo (not a real model)", Provider: ID}
}

// Stream implements model.Provider.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		text, calls := reply(r)
		for i, word := range strings.SplitAfter(text, " ") {
			var err error
			if i > 0 && p.pause > 0 {
				err = clock.Sleep(ctx, p.clock, p.pause)
			} else {
				err = ctx.Err()
			}
			if err != nil {
				yield(model.Part{}, model.Failure{Provider: ID, Model: ID, Err: context.Cause(ctx)}.Classified())
				return
			}
			model.Progress(ctx)()
			if !yield(model.Part{Text: word}, nil) {
				return
			}
		}
		for i := range calls {
			if !yield(model.Part{ToolCall: &calls[i]}, nil) {
				return
			}
		}
		u := usage(r, text)
		if !yield(model.Part{Usage: &u}, nil) {
			return
		}
		done := model.Done{StopReason: "stop", Raw: "stop"}
		if len(calls) > 0 {
			done = model.Done{StopReason: "toolUse", Raw: "tool_calls"}
		}
		yield(model.Part{Done: &done}, nil)
	}
}

// usage counts words, which is all that this model knows of tokens.
func usage(r model.Request, text string) model.Usage {
	in := len(strings.Fields(r.System))
	for _, m := range r.Messages {
		in += len(strings.Fields(textOf(m)))
	}
	out := len(strings.Fields(text))
	return model.Usage{Input: int64(in), Output: int64(out), Total: int64(in + out)}
}

// reply decides what is said and which tools are called.
func reply(r model.Request) (string, []model.Block) {
	asked, results, before := turn(r.Messages)
	if r.ToolChoice != "" {
		return Intro + " I was told to call " + r.ToolChoice + ".", []model.Block{call(before, r.ToolChoice, "{}")}
	}
	if len(results) > 0 {
		return Intro + "\n\n" + report(results), nil
	}
	var (
		calls   []model.Block
		missing []string
	)
	for _, w := range wishes(asked) {
		if offers(r.Tools, w.tool) {
			calls = append(calls, call(before+len(calls), w.tool, w.args))
		} else {
			missing = append(missing, w.tool)
		}
	}
	switch {
	case len(calls) > 0:
		return Intro + " Let me look.", calls
	case len(missing) > 0:
		return Intro + " For that I would need a tool that I was not given: " + strings.Join(missing, ", ") + ". " + advice, nil
	case asked == "":
		return Intro + " There was no text to answer. " + advice, nil
	}
	return Intro + " I can only repeat: you said “" + short(asked, 400) + "”. Ask me for the time or for what is in the folder, and I call a tool. " + advice, nil
}

// turn gives the text of the last user message, the tool results that came after
// it, and how many tools were called in the conversation before.
func turn(messages []model.Message) (asked string, results []model.Message, before int) {
	for _, m := range messages {
		switch m.Role {
		case model.User:
			asked, results = strings.TrimSpace(textOf(m)), nil
		case model.ToolResult:
			results = append(results, m)
		case model.Assistant:
			for _, b := range m.Content {
				if b.Type == model.ToolCall {
					before++
				}
			}
		}
	}
	return asked, results, before
}

// call makes a tool call; n makes its id unique in the conversation.
func call(n int, tool, args string) model.Block {
	return model.Block{Type: model.ToolCall, ID: "demo_" + strconv.Itoa(n+1), Name: tool, Arguments: json.RawMessage(args)}
}

func offers(tools []model.Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
