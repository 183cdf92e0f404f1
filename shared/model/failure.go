package model

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Failure is all that an adapter knows of a call that failed. Its fields may hold
// keys and prompts (providers like to repeat both); the Error made of it does not.
type Failure struct {
	Provider string
	Model    string
	Status   int         // 0: none came
	Header   http.Header // for the time to wait; may be nil
	Code     string      // the provider's code or type, as "rate_limit_error"
	Text     string      // the body or message, only looked at
	Err      error       // the transport's error
	Now      time.Time   // for a Retry-After that is a date; zero: such a date counts as not told
}

// Classified makes the Error of a failure. The message is one of ours, with the
// provider's code behind it if that is a plain word: bodies are never quoted,
// because they repeat keys, prompts and arguments.
func (f Failure) Classified() *Error {
	text := f.Text
	if f.Code != "" {
		text = f.Code + " " + text
	}
	e := &Error{
		Class: Classify(f.Status, text, f.Err), Status: f.Status, Provider: f.Provider, Model: f.Model,
		RetryAfter: RetryAfter(f.Header, f.Now), Err: bare(f.Err),
	}
	e.LongWindow = e.Class == RateLimit && normalise(text).has(longWindowText)
	e.Oversize = e.Class == ContextOverflow && f.Status == http.StatusRequestEntityTooLarge && normalise(text).has(oversizeText)
	e.Message = sentence(e.Class)
	if isCode(f.Code) {
		e.Message += " (" + f.Code + ")"
	}
	return e
}

// Fail is the Error of a failure that the adapter has classified itself.
func (f Failure) Fail(c Class) *Error {
	e := f.Classified()
	e.Class, e.Message = c, sentence(c)
	return e
}

// Cut is the Error of a stream that broke: the caller's end, the watchdog or a
// deadline if ctx says so, else a timeout, since the provider had begun to answer.
func (f Failure) Cut(ctx context.Context, err error) *Error {
	if cause := context.Cause(ctx); cause != nil {
		f.Err = cause
		return f.Classified()
	}
	f.Err = err
	return f.Fail(Timeout)
}

// bare strips what names addresses, whose user part or query can hold a key.
func bare(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrIdle):
		return ErrIdle
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	c := classifyTransport(err)
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if c == "" {
		return nil
	}
	return err
}

// isCode accepts words like rate_limit_error and ThrottlingException. No digits
// and dashes: what has them may be a key.
func isCode(s string) bool {
	if s == "" || len(s) > 48 {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' {
			return false
		}
	}
	return true
}

// sentence is what a user is told of a class.
func sentence(c Class) string {
	switch c {
	case Auth:
		return "the model provider refused the credentials"
	case AuthPermanent:
		return "the model provider says that the credentials are revoked or disabled"
	case Format:
		return "the model provider refused the request as malformed"
	case RateLimit:
		return "the model provider's rate limit is reached"
	case Overloaded:
		return "the model provider is overloaded"
	case Billing:
		return "the model provider refused the call because of billing"
	case ServerError:
		return "the model provider failed"
	case Timeout:
		return "the model provider could not be reached, did not answer in time, or the connection was cut"
	case TLSCertificate:
		return "the certificate of the model provider could not be verified"
	case ContextOverflow:
		return "the conversation is longer than the model's context window"
	case ModelNotFound:
		return "the model provider does not know this model"
	case SessionExpired:
		return "the model provider's session has expired"
	case EmptyResponse:
		return "the model gave an empty response"
	case Aborted:
		return "the call was cancelled"
	case NoErrorDetails:
		return "the model provider failed without saying why"
	case Unclassified, Unknown:
		return "the call to the model failed"
	}
	return "the call to the model failed"
}

// RetryAfter is how long a provider asks to wait: retry-after-ms (milliseconds,
// maybe with a fraction), else Retry-After in seconds or as a date, which is
// measured from now. 0: not told, not understood or in the past.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	v := h.Get("Retry-After")
	if d, ok := number(v, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(strings.TrimSpace(v))
	if err != nil || now.IsZero() {
		return 0
	}
	return max(0, at.Sub(now))
}

// maxRetryAfter bounds what is believed: a year is longer than any run.
const maxRetryAfter = 365 * 24 * time.Hour

func number(v string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || f != f || f < 0 {
		return 0, false
	}
	if f > float64(maxRetryAfter/unit) {
		return maxRetryAfter, true
	}
	return time.Duration(f * float64(unit)), true
}
