package protocol

import (
	"context"
	"errors"
	"maps"
	"time"
)

// Error codes of the wire. There are no others.
const (
	CodeInvalidRequest   = "INVALID_REQUEST"
	CodeUnavailable      = "UNAVAILABLE"
	CodeForbidden        = "FORBIDDEN"
	CodeNotPaired        = "NOT_PAIRED"
	CodeApprovalNotFound = "APPROVAL_NOT_FOUND"
)

// Values of details.code and details.reason that clients branch on.
const (
	DetailMissingScope      = "MISSING_SCOPE"
	DetailTokenMissing      = "AUTH_TOKEN_MISSING"  //nolint:gosec // a code; terminal: a client stops reconnecting
	DetailTokenMismatch     = "AUTH_TOKEN_MISMATCH" //nolint:gosec // a code
	DetailRateLimited       = "AUTH_RATE_LIMITED"
	DetailDeviceRequired    = "DEVICE_IDENTITY_REQUIRED"
	DetailDeviceInvalid     = "DEVICE_AUTH_INVALID"
	DetailProtocolMismatch  = "PROTOCOL_MISMATCH"
	ReasonStarting          = "startup-sidecars" // the only reason on which connect is tried again
	ReasonAgentConflict     = "agent-request-conflict"
	ReasonChatConflict      = "chat-request-conflict"
	ReasonSettingsChanged   = "session-settings-changed"
	ReasonRoutingChanged    = "session-routing-changed"
	ReasonActiveLeafChanged = "active-leaf-changed"
	ReasonSessionBusy       = "session-busy"
	ReasonQueueFull         = "queue-full"
)

// Error is an error as it goes over the wire. Message is for a person and holds
// nothing that the caller may not see.
type Error struct {
	Code         string         `json:"code"`
	Message      string         `json:"message"`
	Retryable    bool           `json:"retryable,omitempty"`
	RetryAfterMs int64          `json:"retryAfterMs,omitempty"`
	Details      map[string]any `json:"details,omitempty"`
}

// Error is the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Detail is a text member of the details, "" if there is none of that name.
func (e *Error) Detail(name string) string {
	s, _ := e.Details[name].(string)
	return s
}

// With is a copy of the error with one more detail.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Details = make(map[string]any, len(e.Details)+1)
	maps.Copy(c.Details, e.Details)
	c.Details[name] = value
	return &c
}

// Retry is a copy of the error that says: the same request may succeed later.
func (e *Error) Retry(after time.Duration) *Error {
	c := *e
	c.Retryable, c.RetryAfterMs = true, max(0, after.Milliseconds())
	return &c
}

// Invalid refuses a request for what is in it.
func Invalid(message string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: message}
}

// InvalidParams refuses the params of a method.
func InvalidParams(method, reason string) *Error {
	return Invalid("invalid " + shorten(method, maxNameRunes) + " params: " + reason)
}

// UnknownMethod refuses a method that does not exist.
func UnknownMethod(method string) *Error {
	return Invalid("unknown method: " + shorten(method, 2*maxNameRunes))
}

// MissingScope refuses a caller who lacks a scope.
func MissingScope(scope string) *Error {
	return &Error{
		Code: CodeForbidden, Message: "missing scope: " + scope,
		Details: map[string]any{"code": DetailMissingScope, "missingScope": scope, "requiredScopes": []string{scope}},
	}
}

// Unavailable is a failure that is not the request's fault. Say Retry where trying
// again is safe and useful.
func Unavailable(message string) *Error {
	return &Error{Code: CodeUnavailable, Message: message}
}

// SessionBusy says that another writer holds the session.
func SessionBusy() *Error {
	return Unavailable("session busy").With("reason", ReasonSessionBusy).Retry(time.Second)
}

// QueueFull says that a session has as many pending runs as it may have.
func QueueFull() *Error {
	return Unavailable("too many messages are waiting in this session").With("reason", ReasonQueueFull).Retry(time.Second)
}

// Internal is all that a caller learns about a failure inside.
func Internal() *Error { return Unavailable("internal error") }

// AgentConflict refuses an idempotency key that belongs to another agent request.
func AgentConflict() *Error {
	return Invalid("idempotencyKey was used for another request").With("reason", ReasonAgentConflict)
}

// ChatConflict refuses an idempotency key that belongs to another chat request.
func ChatConflict() *Error {
	return Invalid("idempotencyKey was used for another request").With("reason", ReasonChatConflict)
}

// UnknownAgent refuses an agent id that is not configured.
func UnknownAgent(method, agentID string) *Error {
	return InvalidParams(method, `unknown agent id "`+shorten(agentID, maxNameRunes)+`"`)
}

// NoSession refuses a session that does not exist.
func NoSession(key string) *Error {
	return Invalid("No session found: " + shorten(key, 4*maxNameRunes))
}

// ConnectFirst refuses any other request before connect.
func ConnectFirst() *Error {
	return Invalid("invalid handshake: first request must be connect")
}

// ConnectOnce refuses a second connect.
func ConnectOnce() *Error { return Invalid("connect is only valid as the first request") }

// InvalidRole refuses a role that is not served.
func InvalidRole() *Error { return Invalid("invalid role") }

// VersionMismatch refuses a client whose versions do not include Version.
func VersionMismatch(clientMin, clientMax int64) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "protocol mismatch", Details: map[string]any{
		"code": DetailProtocolMismatch, "clientMinProtocol": clientMin, "clientMaxProtocol": clientMax,
		"expectedProtocol": Version, "minimumProbeProtocol": MinProbeVersion,
	}}
}

// TokenMismatch refuses a wrong token or password.
func TokenMismatch() *Error {
	return &Error{Code: CodeInvalidRequest, Message: "unauthorized: gateway token mismatch", Details: map[string]any{
		"code": DetailTokenMismatch, "authReason": "token_mismatch",
		"canRetryWithDeviceToken": false, "recommendedNextStep": "update_auth_credentials",
	}}
}

// TokenMissing refuses a connect without any credential.
func TokenMissing() *Error {
	return &Error{Code: CodeInvalidRequest, Message: "unauthorized: gateway token missing", Details: map[string]any{
		"code": DetailTokenMissing, "authReason": "token_missing",
		"canRetryWithDeviceToken": false, "recommendedNextStep": "update_auth_configuration",
	}}
}

// AsError turns any error into one for the wire: an *Error in its chain as it is,
// an ended context as something to try again, everything else as Internal, so that
// no inner text leaves.
func AsError(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unavailable("the request took too long").Retry(time.Second)
	}
	return Internal()
}
