package loop_test

import (
	"context"
	"iter"
	"sync"

	"laneway/shared/model"
)

// fakeModel answers by script: each call takes the next answer, or the last one
// again.
type fakeModel struct {
	mu       sync.Mutex
	script   []answerFunc
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
		f := m.script[min(n, len(m.script)-1)]
		m.mu.Unlock()
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
