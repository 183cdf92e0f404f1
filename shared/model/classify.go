package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// Classify gives the class of a failed call from what is known of it: the HTTP
// status (0: none came), the provider's words (body, code, type; never kept) and
// the transport's error (nil: none). The rules, the first that holds wins:
//
//  1. The caller cancelled: aborted. Its deadline passed, or the watchdog cut a
//     silent stream: timeout.
//  2. A certificate was refused: tls_certificate. Any other transport failure
//     (DNS, refused, reset, cut): timeout.
//  3. By status:
//     400, 422 are context_overflow or billing by text, a quota or throttle by
//     the provider's code, else format.
//     401 is auth unless the text speaks of billing. 403 is billing or
//     auth_permanent (a key that was revoked) by text, else auth.
//     402 is billing unless the text speaks of a usage window: rate_limit.
//     404 is model_not_found unless the text says overflow, session, billing,
//     auth or format, in this order.
//     408, 499, 504, 522, 524 are timeout; 410 is session_expired; 413 is
//     context_overflow.
//     429 is rate_limit unless the text says that the provider is busy or not
//     ready: overloaded. 529 is overloaded.
//     Other 5xx are overloaded or context_overflow by text, else server_error.
//  4. Any other status, or none: by text alone; unclassified if nothing matches,
//     no_error_details if there is no text.
func Classify(status int, text string, err error) Class {
	if c := classifyTransport(err); c != "" {
		return c
	}
	t := normalise(text)
	switch {
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity:
		return t.first(Format, overflowText, billingText, throttleCode)
	case status == http.StatusUnauthorized:
		return t.first(Auth, billingText)
	case status == http.StatusForbidden:
		return t.first(Auth, billingText, revokedText)
	case status == http.StatusPaymentRequired:
		return t.first(Billing, usageWindowText)
	case status == http.StatusNotFound:
		return t.first(ModelNotFound, overflowText, sessionText, billingText, authText, formatText)
	case status == http.StatusRequestTimeout || status == 499 || status == http.StatusGatewayTimeout || status == 522 || status == 524:
		return Timeout
	case status == http.StatusGone:
		return SessionExpired
	case status == http.StatusRequestEntityTooLarge:
		return ContextOverflow
	case status == http.StatusTooManyRequests:
		return t.first(RateLimit, busyText)
	case status == 529:
		return Overloaded
	case status >= 500:
		return t.first(ServerError, busyText, overflowText)
	case t.text == "":
		if status == 0 && err == nil || status >= 300 {
			return NoErrorDetails
		}
		return Unknown
	}
	return t.first(Unclassified, overflowText, billingText, revokedText, authText, busyText, rateText,
		timeoutText, notFoundText, sessionText, serverText, formatText)
}

// classifyTransport gives the class of an error below HTTP, "" if it is none.
func classifyTransport(err error) Class {
	if u, ok := errors.AsType[*url.Error](err); ok {
		// The client wraps everything in it, and many failures of a connection
		// have no type of their own. A wrong scheme does not heal by itself.
		if c := classifyTransport(u.Err); c != "" {
			return c
		}
		if errors.Is(u.Err, http.ErrSchemeMismatch) {
			return ""
		}
		return Timeout
	}
	var (
		opErr     *net.OpError
		dnsErr    *net.DNSError
		verifyErr *tls.CertificateVerificationError
		unknownCA x509.UnknownAuthorityError
		hostErr   x509.HostnameError
		certErr   x509.CertificateInvalidError
		netErr    net.Error
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrIdle):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Aborted
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.As(err, &verifyErr), errors.As(err, &unknownCA), errors.As(err, &hostErr), errors.As(err, &certErr):
		return TLSCertificate
	case errors.As(err, &dnsErr), errors.As(err, &opErr), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE),
		errors.Is(err, net.ErrClosed), errors.As(err, &netErr):
		return Timeout
	}
	return ""
}

// FromFinishReason gives the class of a finish reason that is a failure, "" for
// one that is not: finish_reason error is server_error; abort, network_error and
// malformed_response are timeout.
func FromFinishReason(reason string) Class {
	switch reason {
	case "error":
		return ServerError
	case "abort", "network_error", "malformed_response":
		return Timeout
	}
	return ""
}
