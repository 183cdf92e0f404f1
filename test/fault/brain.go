package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/tool"
)

// brain is the model and the agent of a process. What it answers follows from the
// conversation alone: the last user message names a plan, whose letters are its steps.
//
//	U a call of a tool that must not be repeated, I of an idempotent one, R of one that
//	only reads, L of one that takes 45 seconds and must not be repeated; B all three
//	side by side, Q two in a row; S a slow text; E an error that goes over; Z a limit
//	that is over in five minutes; F an error that stays; K the death of whoever asks, X
//	their panic.
//
// When the plan is over it says the end.
type brain struct{ p *proc }

// Select implements loop.Models.
func (b *brain) Select(context.Context, run.Input, session.Entry) (model.Selected, error) {
	return model.Selected{Provider: b, Name: "fake", Model: "fake-1", Endpoint: model.Local, ContextWindow: 100_000}, nil
}

// Prompt implements loop.Agents.
func (b *brain) Prompt(context.Context, loop.PromptInput) (string, error) { return "system", nil }

// Tools implements loop.Agents.
func (b *brain) Tools(context.Context, *tool.Scope) (*tool.Registry, error) {
	return tool.NewRegistry(
		&deed{b.p, tool.Spec{Name: "unsafe", Effect: tool.Unsafe}, 0},
		&deed{b.p, tool.Spec{Name: "twice", Effect: tool.Idempotent}, 0},
		&deed{b.p, tool.Spec{Name: "read", Effect: tool.ReadOnly}, 0},
		&deed{b.p, tool.Spec{Name: "inrow", Effect: tool.Unsafe, Sequential: true}, time.Second},
		&deed{b.p, tool.Spec{Name: "long", Effect: tool.Unsafe}, 45 * time.Second},
	)
}

// step reads from a conversation what is to come next: the run of the last user
// message, the letter, and how often the same was asked before.
func step(r model.Request) (runID string, letter byte, n int) {
	plan := ""
	for _, m := range r.Messages {
		switch m.Role {
		case model.User:
			text := userText(m)
			if i := strings.LastIndex(text, "say "); i >= 0 {
				words, _, _ := strings.Cut(text[i+4:], ";")
				runID, plan, _ = strings.Cut(words, " plan=")
				n = 0
			}
		case model.Assistant:
			n++
		case model.ToolResult:
		}
	}
	// A text of a plan's own is no step of the model's: E, Z, F and K are asked again.
	plan = strings.NewReplacer("S", "").Replace(plan)
	if n < len(plan) {
		return runID, plan[n], n
	}
	return runID, 0, n
}

func slowPlan(r model.Request) bool {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == model.User {
			return strings.Contains(userText(m), "S")
		}
	}
	return false
}

func userText(m model.Message) string {
	var b strings.Builder
	for _, c := range m.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// Stream implements model.Provider.
func (b *brain) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	s := b.p.s
	return func(yield func(model.Part, error) bool) {
		runID, letter, n := step(r)
		s.ghost.asksModel(b.p, runID, r)
		say := func(what string, part model.Part) bool {
			if b.p.park(ctx, call{what: "model says " + what, point: midStream}) != proceed {
				yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "cancelled", Err: context.Cause(ctx)})
				return false
			}
			return yield(part, nil)
		}
		fail := func(class model.Class, after time.Duration) {
			if b.p.park(ctx, call{what: "model fails: " + string(class), point: midStream}) == proceed {
				yield(model.Part{}, &model.Error{Class: class, Message: "scripted " + string(class), RetryAfter: after})
				return
			}
			yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "cancelled", Err: context.Cause(ctx)})
		}
		if slowPlan(r) {
			for i := range 3 {
				if !say("text", model.Part{Text: fmt.Sprintf("part %d of %s. ", i, runID)}) {
					return
				}
				if err := clock.Sleep(ctx, clockOf{b.p}, 2300*time.Millisecond); err != nil {
					yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "cancelled", Err: err})
					return
				}
			}
		}
		once := fmt.Sprintf("%s/%d", runID, n)
		switch letter {
		case 'E':
			if s.ghost.firstTime(once) {
				fail(model.Overloaded, 0)
				return
			}
		case 'Z':
			if s.ghost.firstTime(once) {
				fail(model.RateLimit, 5*time.Minute)
				return
			}
		case 'F':
			fail(model.Format, 0)
			return
		case 'X':
			panic(breakdown("a model that breaks its runner"))
		case 'K':
			s.ghost.poisoned(runID)
			if b.p.park(ctx, call{what: "model kills its runner"}) == proceed {
				s.doom(b.p)
				<-b.p.gone
			}
			yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "dead"})
			return
		}
		for i, name := range tools[letter] {
			if !say("calls "+name, model.Part{ToolCall: &model.Block{
				Type: model.ToolCall, ID: fmt.Sprintf("call%d", i+1), Name: name, Arguments: json.RawMessage(`{}`),
			}}) {
				return
			}
		}
		if letter != 0 && len(tools[letter]) > 0 {
			say("stop", model.Part{Done: &model.Done{StopReason: "toolUse"}})
			return
		}
		if say("text", model.Part{Text: "the end"}) && say("text", model.Part{Text: " of " + runID}) {
			say("stop", model.Part{Done: &model.Done{StopReason: "stop"}})
		}
	}
}

// breakdown is a panic that a scenario is about.
type breakdown string

var tools = map[byte][]string{
	'U': {"unsafe"}, 'I': {"twice"}, 'R': {"read"}, 'L': {"long"},
	'B': {"unsafe", "twice", "read"}, 'Q': {"inrow", "inrow"},
}

// deed is a tool that counts what it really does.
type deed struct {
	p    *proc
	spec tool.Spec
	took time.Duration
}

// Spec implements tool.Tool.
func (d *deed) Spec() tool.Spec {
	d.spec.Description, d.spec.Schema = d.spec.Name, json.RawMessage(`{"type":"object"}`)
	return d.spec
}

// Run implements tool.Tool.
func (d *deed) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	g := d.p.s.ghost
	g.begins(d.p, c)
	if d.p.park(ctx, call{what: "tool " + d.spec.Name + " " + c.Key + " begins"}) != proceed {
		return tool.Result{}, context.Cause(ctx)
	}
	g.effect(d.p, d.spec, c)
	if d.p.park(ctx, call{what: "tool " + d.spec.Name + " " + c.Key + " has done it", point: afterToolEffect}) != proceed {
		return tool.Result{}, context.Cause(ctx)
	}
	if d.took > 0 {
		if err := clock.Sleep(ctx, clockOf{d.p}, d.took); err != nil {
			return tool.Result{}, err
		}
	}
	return tool.TextResult("done " + c.Key), nil
}
