package model

import "context"

type progressKey struct{}

// WithProgress returns a context that makes adapters call f whenever the provider
// sends anything: headers, a keep-alive, a piece of a tool call that is not whole
// yet. A Part alone is no measure of life: a long tool call streams for minutes
// before it becomes one. f is called on the goroutine of the stream, often, and must
// not block.
func WithProgress(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Progress is the function that an adapter calls at each sign of life; never nil.
func Progress(ctx context.Context) func() {
	if f, ok := ctx.Value(progressKey{}).(func()); ok && f != nil {
		return f
	}
	return func() {}
}
