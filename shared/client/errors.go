package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"laneway/shared/protocol"

	"github.com/coder/websocket"
)

// ErrClosed ends calls on a connection that was closed by its own side.
var ErrClosed = errors.New("the connection is closed")

// ErrPlain refuses to send a credential in plain text over a network that others
// can read.
var ErrPlain = errors.New("refusing an unencrypted connection to a public address: use wss://")

// ErrURL is in the chain of the error about an address that cannot be used.
var ErrURL = errors.New("not a gateway address")

var errNonce = errors.New("the challenge has no nonce")

// CallError is the gateway's refusal of a request. Err has the code; Payload is what
// came beside it, as for a run that failed.
type CallError struct {
	Method  string
	Err     *protocol.Error
	Payload json.RawMessage
}

func (e *CallError) Error() string { return e.Err.Message }

// Unwrap gives the *protocol.Error.
func (e *CallError) Unwrap() error { return e.Err }

// ClosedError says that the connection ended while it was in use.
type ClosedError struct {
	Code   int // the close code, -1 if the connection broke without one
	Reason string
	Err    error
}

func (e *ClosedError) Error() string {
	switch {
	case e.Code < 0:
		return "the connection to the gateway broke"
	case e.Reason == "":
		return fmt.Sprintf("the gateway closed the connection (%d)", e.Code)
	}
	return fmt.Sprintf("the gateway closed the connection (%d): %s", e.Code, e.Reason)
}

// Unwrap gives the cause.
func (e *ClosedError) Unwrap() error { return e.Err }

func closed(err error) *ClosedError {
	if ce, ok := errors.AsType[websocket.CloseError](err); ok {
		return &ClosedError{Code: int(ce.Code), Reason: ce.Reason, Err: err}
	}
	return &ClosedError{Code: -1, Err: err}
}

// HandshakeError says which step of connecting did not come: "challenge" or "hello".
type HandshakeError struct {
	Step string
	Err  error
}

func (e *HandshakeError) Error() string {
	return fmt.Sprintf("the gateway sent no %s: %v", e.Step, e.Err)
}

// Unwrap gives the cause.
func (e *HandshakeError) Unwrap() error { return e.Err }

// UpgradeError says that the address answered, but not as a gateway.
type UpgradeError struct {
	Status int // HTTP
	Body   string
}

func (e *UpgradeError) Error() string {
	s := fmt.Sprintf("the gateway refused the WebSocket upgrade (HTTP %d)", e.Status)
	if e.Body != "" {
		s += ": " + e.Body
	}
	return s
}

const maxBody = 2 << 10

// readBody is the beginning of a refusal, for the person who reads the error.
func readBody(res *http.Response) string {
	if res.Body == nil {
		return ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil && len(b) == 0 {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), ""))
}
