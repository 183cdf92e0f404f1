package tool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"laneway/shared/model"
)

// Texts that the model reads when a call did not run or ran for nothing.
const (
	TextAborted = "Operation aborted"
	TextSkipped = "Skipped to process an incoming message."
	TextBlocked = "Tool execution was blocked before launch."
	TextNothing = "(no output)"
)

// Values of "status" in the details of a call that was not started.
const (
	StatusSkipped = "skipped"
	StatusBlocked = "blocked"
)

// Execute checks a call and runs its tool in the caller's goroutine. It always
// returns a result: an unknown tool, arguments that do not fit, an error and a
// panic of the tool become error results, and a context that has ended before the
// start becomes "Operation aborted" without a run. Progress that a tool reports
// after Execute returned is dropped. Whether the tool ended because the context
// did is the caller's to see in ctx.
func Execute(ctx context.Context, r *Registry, call Call) Result {
	accepted, err := r.Check(call)
	if err != nil {
		return refused(err)
	}
	if ctx.Err() != nil {
		return ErrorResult(TextAborted)
	}
	if accepted.Update != nil {
		gate := &updateGate{send: accepted.Update}
		defer gate.close()
		accepted.Update = gate.update
	}
	e, _ := r.find(accepted.Name)
	result, err := runGuarded(ctx, e.tool, accepted)
	return settle(ctx, result, err)
}

// Skipped is the result of a call that was not started because a message came in.
func Skipped() Result {
	r := ErrorResult(TextSkipped)
	r.Details = map[string]any{"status": StatusSkipped, "deniedReason": "steering"}
	return r
}

// Blocked is the result of a call that was refused before its start; an empty
// text means the standard one.
func Blocked(deniedReason, text string) Result {
	if text == "" {
		text = TextBlocked
	}
	r := ErrorResult(text)
	r.Details = map[string]any{"status": StatusBlocked, "deniedReason": deniedReason}
	return r
}

// refused is the result of a call that Check did not accept.
func refused(err error) Result {
	r := ErrorResult(err.Error())
	kind := "unknown-tool"
	if _, ok := errors.AsType[*ArgumentError](err); ok {
		kind = "argument-validation"
	}
	r.Details = map[string]any{"errorKind": kind}
	return r
}

// runGuarded turns a panic into an error. The value of the panic may hold parts of
// arguments, so only the place where it happened is logged.
func runGuarded(ctx context.Context, t Tool, call Call) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "tool panicked", "tool", call.Name, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			r, err = Result{}, fmt.Errorf("tool %s failed with an internal error", call.Name)
		}
	}()
	return t.Run(ctx, call)
}

// settle makes a sendable result of what a tool returned.
func settle(ctx context.Context, r Result, err error) Result {
	if err != nil {
		text := err.Error()
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			text = TextAborted
		}
		failed := ErrorResult(text)
		failed.Details, failed.Meta = r.Details, r.Meta
		return failed
	}
	if len(r.Content) == 0 {
		r.Content = []model.Block{{Type: model.Text, Text: TextNothing}}
	}
	return r
}

// updateGate lets progress through until the call is over.
type updateGate struct {
	mu   sync.Mutex
	send func(Result) // nil: closed
}

// update holds the lock while it sends, so that close returns only when no update
// is on its way any more.
func (g *updateGate) update(partial Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.send != nil {
		g.send(partial)
	}
}

func (g *updateGate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.send = nil
}
