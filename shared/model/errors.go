package model

import (
	"errors"
	"fmt"
	"time"
)

// Class is the reason of a failed call (spec: runtime 7.1).
type Class string

// The classes.
const (
	Auth            Class = "auth"
	AuthPermanent   Class = "auth_permanent"
	Format          Class = "format"
	RateLimit       Class = "rate_limit"
	Overloaded      Class = "overloaded"
	Billing         Class = "billing"
	ServerError     Class = "server_error"
	Timeout         Class = "timeout"
	TLSCertificate  Class = "tls_certificate"
	ContextOverflow Class = "context_overflow"
	ModelNotFound   Class = "model_not_found"
	SessionExpired  Class = "session_expired"
	EmptyResponse   Class = "empty_response"
	NoErrorDetails  Class = "no_error_details"
	Unclassified    Class = "unclassified"
	Unknown         Class = "unknown"
	Aborted         Class = "aborted" // the caller cancelled; never retried
)

// Error is a failed call. Message is safe to show to a user: it never holds a key
// or a prompt.
type Error struct {
	Class      Class
	Status     int // HTTP status, 0: none came
	Message    string
	RetryAfter time.Duration // 0: not told
	Provider   string
	Model      string
	Err        error
}

func (e *Error) Error() string {
	if e.Status > 0 {
		return fmt.Sprintf("%s (HTTP %d): %s", e.Class, e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Class, e.Message)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf is the class of an error in err's chain; Unknown for any other error.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Unknown
}
