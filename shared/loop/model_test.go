package loop_test

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"laneway/shared/model"
)

// fakeModel answers by script: each call takes the next answer, or the last one
// again.
type fakeModel struct {
	mu       sync.Mutex
	script   []answerFunc
	choose   func(model.Request) answerFunc // instead of the script
	requests []model.Request
	asked    chan struct{}
	over     chan struct{}
	once     sync.Once
}

type answerFunc func(ctx context.Context, r model.Request, yield func(model.Part, error) bool)

func newFakeModel() *fakeModel {
	return &fakeModel{asked: make(chan struct{}, 1000), over: make(chan struct{})}
}

func (m *fakeModel) on(script ...answerFunc) { m.mu.Lock(); defer m.mu.Unlock(); m.script = script }

// by answers by what is asked.
func (m *fakeModel) by(f func(model.Request) answerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.choose = f
}

func (m *fakeModel) release() { m.once.Do(func() { close(m.over) }) }

func (m *fakeModel) calls() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]model.Request(nil), m.requests...)
}

func (m *fakeModel) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, r)
		var f answerFunc
		if m.choose != nil {
			f = m.choose(r)
		} else {
			f = m.script[min(n, len(m.script)-1)]
		}
		m.mu.Unlock()
		if why := invalid(r.Messages); why != "" {
			yield(model.Part{}, &model.Error{Class: model.Format, Message: why})
			return
		}
		m.asked <- struct{}{}
		f(ctx, r, yield)
	}
}

func done(stop string) model.Part { return model.Part{Done: &model.Done{StopReason: stop}} }

func say(deltas ...string) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		for _, d := range deltas {
			if !yield(model.Part{Text: d}, nil) {
				return
			}
		}
		yield(done("stop"), nil)
	}
}

func callTools(calls ...model.Block) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		for _, c := range calls {
			c.Type = model.ToolCall
			if !yield(model.Part{ToolCall: &c}, nil) {
				return
			}
		}
		yield(done("toolUse"), nil)
	}
}

func fail(class model.Class) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{}, &model.Error{Class: class, Message: "scripted " + string(class)})
	}
}

// hold says some text, then waits for the gate (or the end of the call), then the rest.
func hold(gate <-chan struct{}, before, after string) answerFunc {
	return func(ctx context.Context, _ model.Request, yield func(model.Part, error) bool) {
		if before != "" && !yield(model.Part{Text: before}, nil) {
			return
		}
		select {
		case <-gate:
		case <-ctx.Done():
			yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "cancelled", Err: ctx.Err()})
			return
		}
		if after != "" && !yield(model.Part{Text: after}, nil) {
			return
		}
		yield(done("stop"), nil)
	}
}

// invalid says what a provider would refuse in a conversation: each call has exactly
// one result, directly behind its message (F23).
func invalid(messages []model.Message) string {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role != model.ToolResult {
			if len(open) > 0 {
				return fmt.Sprintf("message %d comes before the results of %v", i, open)
			}
		} else if !open[m.ToolCallID] {
			return fmt.Sprintf("message %d is a result without a call", i)
		}
		delete(open, m.ToolCallID)
		for _, b := range m.Content {
			if b.Type == model.ToolCall {
				open[b.ID] = true
			}
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls without a result: %v", open)
	}
	return ""
}
