package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The rows of runtime 7.1, each with the texts that providers are known to send.
func TestClassify(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		status int
		text   string
		want   Class
	}{
		{"401: auth", 401, `{"error":{"code":"invalid_api_key"}}`, Auth},
		{"401: billing text wins", 401, `Insufficient credits`, Billing},
		{"403: auth", 403, `forbidden`, Auth},
		{"403: auth_permanent for a revoked key", 403, `This API key has been revoked`, AuthPermanent},
		{"403: auth_permanent for a disabled organisation", 403, `Your organization has been disabled.`, AuthPermanent},
		{"403: billing text", 403, `{"type":"billing_error"}`, Billing},
		{"402: billing", 402, `Payment Required`, Billing},
		{"402: billing without text", 402, ``, Billing},
		{"402: rate_limit for a usage window", 402, `You have hit your usage limit, try again at 5pm`, RateLimit},
		{"402: rate_limit for a spend limit", 402, `weekly spend limit`, RateLimit},
		{"404: model_not_found", 404, `{"error":{"code":"model_not_found"}}`, ModelNotFound},
		{"404: model_not_found without text", 404, ``, ModelNotFound},
		{"404: overflow in the body", 404, `maximum context length is 8192`, ContextOverflow},
		{"404: session in the body", 404, `session not found`, SessionExpired},
		{"404: billing in the body", 404, `credit balance is too low`, Billing},
		{"404: auth in the body", 404, `Invalid API key`, Auth},
		{"404: format in the body", 404, `invalid_request_error: unknown field`, Format},
		{"408: timeout", 408, ``, Timeout},
		{"499: timeout", 499, ``, Timeout},
		{"504: timeout", 504, `overloaded`, Timeout},
		{"522: timeout", 522, ``, Timeout},
		{"524: timeout", 524, ``, Timeout},
		{"410: session_expired", 410, ``, SessionExpired},
		{"413: context_overflow", 413, `{"type":"request_too_large"}`, ContextOverflow},
		{"400: format", 400, `{"error":{"type":"invalid_request_error","message":"messages: at least one"}}`, Format},
		{"400: format without text", 400, ``, Format},
		{"422: format", 422, `Extra inputs are not permitted`, Format},
		{"400: overflow text of OpenAI", 400, `This model's maximum context length is 128000 tokens.`, ContextOverflow},
		{"400: overflow text of Anthropic", 400, `prompt is too long: 210000 tokens > 200000 maximum`, ContextOverflow},
		{"400: overflow text of Bedrock", 400, `ValidationException: Input is too long for requested model.`, ContextOverflow},
		{"400: overflow text of llama.cpp", 400, `the request exceeds the available context size (4096 tokens)`, ContextOverflow},
		{"400: overflow text of llama-cpp-python", 400, `Requested tokens (5018) exceed context window of 4096`, ContextOverflow},
		{"400: overflow text of vLLM", 400, "However, you requested 9000 tokens.\n Please reduce   the length of the messages", ContextOverflow},
		{"400: billing text of Anthropic", 400, `Your credit balance is too low to access the API.`, Billing},
		{"400: throttle of Bedrock", 400, `ThrottlingException Too many tokens per day`, RateLimit},
		{"400: a request that speaks of quota is still a format error", 400, `field quota is unknown`, Format},
		{"429: rate_limit", 429, ``, RateLimit},
		{"429: rate_limit, quota", 429, `You exceeded your current quota, please check your plan and billing details. insufficient_quota`, RateLimit},
		{"429: rate_limit, tokens per minute is no overflow", 429, `Request too large for gpt-4o on tokens per min (TPM): Limit 30000`, RateLimit},
		{"429: provider not ready is overloaded", 429, `ModelNotReadyException`, Overloaded},
		{"429: provider busy is overloaded", 429, `engine_overloaded`, Overloaded},
		{"529: overloaded", 529, ``, Overloaded},
		{"503: overloaded when it says so", 503, `{"error":{"message":"Loading model"}}`, Overloaded},
		{"500: overloaded when it says so", 500, `Overloaded`, Overloaded},
		{"500: overflow text", 500, `context size exceeded`, ContextOverflow},
		{"500: server_error", 500, ``, ServerError},
		{"502: server_error", 502, `<html>Bad Gateway</html>`, ServerError},
		{"503: server_error", 503, `Service Unavailable`, ServerError},
		{"520: server_error", 520, ``, ServerError},
		{"in stream: overloaded", 0, `overloaded_error Overloaded`, Overloaded},
		{"in stream: rate_limit", 0, `rate_limit_error`, RateLimit},
		{"in stream: throttling", 0, `Request was throttled`, RateLimit},
		{"in stream: quota", 200, `quota exceeded`, RateLimit},
		{"in stream: resource exhausted", 200, `RESOURCE_EXHAUSTED`, RateLimit},
		{"in stream: auth", 0, `authentication_error`, Auth},
		{"in stream: revoked", 0, `key revoked`, AuthPermanent},
		{"in stream: billing", 0, `billing_error`, Billing},
		{"in stream: timeout", 0, `timeout_error`, Timeout},
		{"in stream: not found", 0, `not_found_error`, ModelNotFound},
		{"in stream: session", 0, `previous_response_not_found`, SessionExpired},
		{"in stream: server", 0, `api_error Internal server error`, ServerError},
		{"in stream: format", 0, `invalid_request_error`, Format},
		{"in stream: overflow before format", 0, `invalid_request_error prompt is too long`, ContextOverflow},
		{"in stream: nothing known", 0, `it did not work`, Unclassified},
		{"in stream: no text", 0, ``, NoErrorDetails},
		{"other 4xx by text", 424, `ModelErrorException`, ServerError},
		{"other 4xx without text", 409, ``, NoErrorDetails},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := Classify(row.status, row.text, nil); got != row.want {
				t.Errorf("class = %s, want %s", got, row.want)
			}
		})
	}
}

func TestClassifyTransportErrors(t *testing.T) {
	t.Parallel()
	inClient := func(err error) error { return &url.Error{Op: "Post", URL: "https://h/", Err: err} }
	for _, row := range []struct {
		name string
		err  error
		want Class
	}{
		{"abort", context.Canceled, Aborted},
		{"abort inside the client's error", inClient(context.Canceled), Aborted},
		{"deadline", fmt.Errorf("x: %w", context.DeadlineExceeded), Timeout},
		{"idle timeout", fmt.Errorf("x: %w", ErrIdle), Timeout},
		{"idle timeout beats the cancel that it caused", errors.Join(context.Canceled, ErrIdle), Timeout},
		{"certificate: unknown authority", inClient(x509.UnknownAuthorityError{}), TLSCertificate},
		{"certificate: other host", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, TLSCertificate},
		{"certificate: expired", x509.CertificateInvalidError{Reason: x509.Expired}, TLSCertificate},
		{"certificate: not verified", inClient(&tls.CertificateVerificationError{Err: errors.New("x")}), TLSCertificate},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, Timeout},
		{"connection refused", inClient(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), Timeout},
		{"connection reset", syscall.ECONNRESET, Timeout},
		{"broken pipe", syscall.EPIPE, Timeout},
		{"connection closed", net.ErrClosed, Timeout},
		{"cut", io.ErrUnexpectedEOF, Timeout},
		{"end before headers", inClient(io.EOF), Timeout},
		{"the client's failures without a type", inClient(errors.New("http2: client connection lost")), Timeout},
		{"http server behind https does not heal", inClient(http.ErrSchemeMismatch), Unknown},
		{"anything else", errors.New("x"), Unknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := Classify(0, "", row.err); got != row.want {
				t.Errorf("class = %s, want %s", got, row.want)
			}
		})
	}
}

func TestClassifyRealConnections(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // the refused handshake is what we want
	srv.StartTLS()
	defer srv.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, row := range []struct {
		name, url string
		want      Class
	}{
		{"certificate that nobody signed", srv.URL, TLSCertificate},
		{"nobody listens", gone.URL, Timeout},
		{"https to an http port", strings.Replace(httpOnly(t), "http://", "https://", 1), Unknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, row.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
			if err == nil {
				_ = res.Body.Close()
				t.Fatal("it worked")
			}
			if got := Classify(0, "", err); got != row.want {
				t.Errorf("%v: class = %s, want %s", err, got, row.want)
			}
		})
	}
}

func httpOnly(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestFinishReasonsThatAreFailures(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]Class{
		"error": ServerError, "abort": Timeout, "network_error": Timeout, "malformed_response": Timeout,
		"stop": "", "length": "", "": "",
	} {
		if got := FromFinishReason(reason); got != want {
			t.Errorf("%q: class = %q, want %q", reason, got, want)
		}
	}
}

func TestRuntime71_StatusOfEveryClass(t *testing.T) {
	t.Parallel()
	for class, want := range map[Class]int{
		Billing: 402, RateLimit: 429, Overloaded: 503, Auth: 401, AuthPermanent: 403, Timeout: 408, TLSCertificate: 502,
		ContextOverflow: 413, Format: 400, ModelNotFound: 404, SessionExpired: 410, ServerError: 500,
		EmptyResponse: 0, NoErrorDetails: 0, Unclassified: 0, Unknown: 0, Aborted: 0, Class("new"): 0,
	} {
		if got := (&Error{Class: class}).HTTPStatus(); got != want {
			t.Errorf("%s: status = %d, want %d", class, got, want)
		}
	}
	if got := (&Error{Class: RateLimit, Status: 503}).HTTPStatus(); got != 503 {
		t.Errorf("what the provider sent became %d", got)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		name, ms, after string
		want            time.Duration
	}{
		{"none", "", "", 0},
		{"seconds", "", "45", 45 * time.Second},
		{"fraction of a second", "", "1.5", 1500 * time.Millisecond},
		{"milliseconds win", "250", "45", 250 * time.Millisecond},
		{"milliseconds that are no number", "x", "45", 45 * time.Second},
		{"date", "", "Fri, 02 Jan 2026 03:04:35 GMT", 30 * time.Second},
		{"date in the past", "", "Fri, 02 Jan 2026 03:04:00 GMT", 0},
		{"negative", "", "-3", 0},
		{"not a number", "", "NaN", 0},
		{"nonsense", "", "soon", 0},
		{"infinite is a year", "", "1e300", maxRetryAfter},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			if row.ms != "" {
				h.Set("Retry-After-Ms", row.ms)
			}
			if row.after != "" {
				h.Set("Retry-After", row.after)
			}
			if got := RetryAfter(h, now); got != row.want {
				t.Errorf("= %s, want %s", got, row.want)
			}
		})
	}
	if got := RetryAfter(http.Header{"Retry-After": {"Fri, 02 Jan 2026 03:04:35 GMT"}}, time.Time{}); got != 0 {
		t.Errorf("a date without a clock = %s", got)
	}
	if got := RetryAfter(nil, now); got != 0 {
		t.Errorf("no header at all = %s", got)
	}
}

func TestClassifiedErrorIsSafeAndComplete(t *testing.T) {
	t.Parallel()
	e := Failure{
		Provider: "p", Model: "m", Status: 429, Code: "rate_limit_error", Text: "sk-secret: daily limit for sk-secret",
		Header: http.Header{"Retry-After": {"3"}},
		Err:    nil,
	}.Classified()
	if e.Class != RateLimit || !e.LongWindow || e.RetryAfter != 3*time.Second || e.Provider != "p" || e.Model != "m" {
		t.Errorf("err = %+v", *e)
	}
	if want := "rate_limit (HTTP 429): the model provider's rate limit is reached (rate_limit_error)"; e.Error() != want {
		t.Errorf("text = %q, want %q", e.Error(), want)
	}
	for _, code := range []string{"sk-secret", "key1234", "two words", strings.Repeat("x", 49), "a\nb"} {
		if e := (Failure{Code: code}).Classified(); strings.Contains(e.Message, code) {
			t.Errorf("code %q is shown: %s", code, e.Message)
		}
	}
	e = Failure{Err: &url.Error{Op: "Post", URL: "https://user:hunter2@h/?key=hunter2", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}}.Classified()
	for err := error(e); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%T shows the address: %v", err, err)
		}
	}
	if !errors.Is(e, syscall.ECONNREFUSED) {
		t.Error("the cause is lost")
	}
}

// Runtime 7.1, row 413: a provider's ceiling for the size of requests is no overflow of
// the model's context.
func TestRuntime71_RequestSizeCeiling(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		status int
		code   string
		text   string
		want   bool
	}{
		{"Anthropic", 413, "request_too_large", "Request exceeds the maximum size", true},
		{"a proxy", 413, "", "<html>413 Request Entity Too Large</html>", true},
		{"a body too large for a gateway", 413, "", `{"message":"payload too large"}`, true},
		{"tokens", 413, "", "prompt is too long: 210000 tokens > 200000 maximum", false},
		{"no text", 413, "", "", false},
		{"overflow with another status", 400, "context_length_exceeded", "", false},
		{"another class", 500, "", "payload too large", false},
	} {
		e := Failure{Status: row.status, Code: row.code, Text: row.text}.Classified()
		if e.Oversize != row.want || row.status == 413 && e.Class != ContextOverflow {
			t.Errorf("%s: %+v", row.name, e)
		}
	}
}

func TestEveryClassHasASentence(t *testing.T) {
	t.Parallel()
	for _, c := range []Class{
		Auth, AuthPermanent, Format, RateLimit, Overloaded, Billing, ServerError, Timeout, TLSCertificate, ContextOverflow,
		ModelNotFound, SessionExpired, EmptyResponse, NoErrorDetails, Aborted,
	} {
		if sentence(c) == sentence(Unknown) {
			t.Errorf("%s has none of its own", c)
		}
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	if got := ClassOf(fmt.Errorf("x: %w", &Error{Class: Billing})); got != Billing {
		t.Errorf("wrapped: %s", got)
	}
	if got := ClassOf(errors.New("x")); got != Unknown {
		t.Errorf("foreign: %s", got)
	}
}

func TestBoundedText(t *testing.T) {
	t.Parallel()
	if got := Classify(400, strings.Repeat("x ", maxWords)+"prompt is too long", nil); got != Format {
		t.Errorf("text behind the bound was looked at: %s", got)
	}
}
