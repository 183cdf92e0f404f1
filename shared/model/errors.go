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

// ErrIdle is in the chain of the error of a call that was cut because the
// provider was silent for too long; its class is Timeout.
var ErrIdle = errors.New("model idle timeout")

// ErrRefusal is in the chain of the error of a call that the model answered with nothing
// but a refusal; its class is Format: no other model is asked.
var ErrRefusal = errors.New("model refusal")

// Error is a failed call. Message is safe to show to a user: it never holds a key
// or a prompt.
type Error struct {
	Class      Class
	Status     int // HTTP status, 0: none came
	Message    string
	RetryAfter time.Duration // 0: not told
	// LongWindow says of a RateLimit that a day's, week's or month's allowance is
	// used up, so that waiting some seconds is of no use.
	LongWindow bool
	// Oversize says of a ContextOverflow that the request has more bytes than this
	// provider takes, which another one may take.
	Oversize bool
	Provider string
	Model    string
	Err      error
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
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Unknown
}

// HTTPStatus is the status that the provider sent, else the one that stands for the
// class; 0 for a class without one.
func (e *Error) HTTPStatus() int {
	if e.Status > 0 {
		return e.Status
	}
	switch e.Class {
	case Billing:
		return 402
	case RateLimit:
		return 429
	case Overloaded:
		return 503
	case Auth:
		return 401
	case AuthPermanent:
		return 403
	case Timeout:
		return 408
	case TLSCertificate:
		return 502
	case ContextOverflow:
		return 413
	case Format:
		return 400
	case ModelNotFound:
		return 404
	case SessionExpired:
		return 410
	case ServerError:
		return 500
	case EmptyResponse, NoErrorDetails, Unclassified, Unknown, Aborted:
		return 0
	}
	return 0
}
