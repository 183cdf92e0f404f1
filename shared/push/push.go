// Package push is the port for messages to a client's connection.
//
// Guarantees: a Post that returned nil was handed to the connection's transport
// once; posts of one connection are in order only when the caller waits for each
// before the next. Nothing is retried here. The adapters are apigw (API Gateway's
// @connections, signed with SigV4) and local; pushtest is the judge.
package push

import (
	"context"
	"errors"
)

// MaxFrame is the largest message in bytes that may be posted on every adapter.
const MaxFrame = 128 << 10

// Errors that callers branch on.
var (
	ErrGone      = errors.New("push: connection is gone") // 410: forget it
	ErrThrottled = errors.New("push: throttled")          // 429: later
	ErrTooLarge  = errors.New("push: message too large")  // 413
	ErrFailed    = errors.New("push: not delivered")      // 5xx, time-out: later
)

// Target is a connection. Callback is the management endpoint it is reached
// under (empty on one machine); it comes from the connection's own request.
type Target struct{ ConnectionID, Callback string }

// Poster posts to connections.
type Poster interface {
	Post(ctx context.Context, to Target, message []byte) error
	// Close ends a connection; of one that is gone: no error.
	Close(ctx context.Context, to Target) error
}
