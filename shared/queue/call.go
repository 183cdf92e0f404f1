package queue

import (
	"context"
	"fmt"
	"runtime/debug"
)

// PanicError is what Call makes of a handler's panic.
type PanicError struct {
	// Kind is the type of the value, or the text of a runtime error. The value
	// itself may hold anything, a secret too, so it is not kept.
	Kind  string
	Stack []byte
}

// Error names the kind of panic.
func (e *PanicError) Error() string { return "queue: handler panicked: " + e.Kind }

// Call runs a handler and makes a panic in it an error like any other: one bad
// message must not take the process and everybody else's work with it.
func Call(ctx context.Context, h Handler, m Message) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		kind := fmt.Sprintf("%T", p)
		if re, ok := p.(interface {
			error
			RuntimeError()
		}); ok {
			kind = re.Error()
		}
		err = &PanicError{Kind: kind, Stack: debug.Stack()}
	}()
	return h(ctx, m)
}

// Requests is how many billable requests a body of n bytes makes: one for every
// 64 KB begun.
func Requests(n int) float64 {
	const unit = 64 << 10
	return float64(max(1, (n+unit-1)/unit))
}
