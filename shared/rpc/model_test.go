package rpc_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/tool"
)

// gate is a model that says back what it was told. A message that begins with
// "hold" is answered when the gate is opened, or never; one that begins with "hush"
// likewise, and nothing is said of it before.
type gate struct {
	mu    sync.Mutex
	asked []model.Request
	more  chan struct{} // closed and replaced with every request
	open  chan struct{} // closed: everything is answered
	once  sync.Once
	held  map[string]chan struct{} // by message
}

func newGate() *gate {
	return &gate{more: make(chan struct{}), open: make(chan struct{}), held: make(map[string]chan struct{})}
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// let answers one message that is held.
func (g *gate) let(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.held[text])
}

func (g *gate) Select(context.Context, run.Input, session.Entry) (model.Selected, error) {
	return model.Selected{Provider: g, Name: "fake", Model: "fake-1", Endpoint: model.Local}, nil
}

func (g *gate) Prompt(context.Context, loop.PromptInput) (string, error) { return "", nil }

func (g *gate) Tools(context.Context, *tool.Scope) (*tool.Registry, error) { return nil, nil }

func (g *gate) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		g.mu.Lock()
		g.asked = append(g.asked, r)
		close(g.more)
		g.more = make(chan struct{})
		text := lastText(r)
		held := make(chan struct{})
		g.held[text] = held
		g.mu.Unlock()
		mute := strings.HasPrefix(text, "hush")
		if !mute && !yield(model.Part{Text: "you said "}, nil) {
			return
		}
		if mute || strings.HasPrefix(text, "hold") {
			select {
			case <-g.open:
			case <-held:
			case <-ctx.Done():
				yield(model.Part{}, &model.Error{Class: model.Timeout, Message: "cancelled"})
				return
			}
		}
		if yield(model.Part{Text: text}, nil) {
			yield(model.Part{Done: &model.Done{StopReason: "stop"}}, nil)
		}
	}
}

func lastText(r model.Request) string {
	if len(r.Messages) == 0 {
		return ""
	}
	return textOf(r.Messages[len(r.Messages)-1])
}

func textOf(m model.Message) string {
	var s strings.Builder
	for _, b := range m.Content {
		s.WriteString(b.Text)
	}
	return s.String()
}

// texts is what the model was asked last, message by message.
func (g *gate) texts() (out []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) == 0 {
		return nil
	}
	for _, m := range g.asked[len(g.asked)-1].Messages {
		out = append(out, textOf(m))
	}
	return out
}

// waitFor waits until the model was asked about a message.
func (g *gate) waitFor(t *testing.T, text string) {
	t.Helper()
	end := time.After(within)
	for {
		g.mu.Lock()
		more := g.more
		for _, r := range g.asked {
			if lastText(r) == text {
				g.mu.Unlock()
				return
			}
		}
		g.mu.Unlock()
		select {
		case <-more:
		case <-end:
			t.Fatalf("the model was never asked about %q", text)
		}
	}
}

func (g *gate) count(text string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.asked {
		if lastText(r) == text {
			n++
		}
	}
	return n
}
