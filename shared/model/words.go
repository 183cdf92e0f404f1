package model

import "strings"

// words are a provider's, in lower case, with the white space between them made
// single and bounded: a hostile body of megabytes is not searched over and over.
type words struct{ text string }

const maxWords = 8 << 10

func normalise(text string) words {
	if len(text) > maxWords {
		text = text[:maxWords]
	}
	return words{strings.Join(strings.Fields(strings.ToLower(text)), " ")}
}

// phrases are words that give a failure its class.
type phrases struct {
	class Class
	any   []string
}

// first is the class of the first list that has a phrase in the text, else def.
func (w words) first(def Class, lists ...*phrases) Class {
	for _, l := range lists {
		if w.has(l) {
			return l.class
		}
	}
	return def
}

func (w words) has(l *phrases) bool {
	if w.text == "" {
		return false
	}
	for _, p := range l.any {
		if strings.Contains(w.text, p) {
			return true
		}
	}
	return false
}

// The lists are read-only. Codes of the providers come first, then the wordings
// that their servers are known to use.
var (
	overflowText = &phrases{ContextOverflow, []string{
		"context_length_exceeded", "context_window_exceeded", "model_context_window_exceeded", "request_too_large",
		"exceed_context_size_error", "string_above_max_length",
		"prompt is too long", "input is too long", "too many tokens in", "maximum context length", "exceed context window",
		"exceeds the context window", "exceeds the model's context", "exceeds the available context size",
		"context window exceeded", "context size exceeded", "larger than the context", "context length exceeded",
		"exceeds the maximum number of tokens", "input length and `max_tokens` exceed", "maximum input length",
		"reduce the length of the messages", "too large for model with", "exceeds maximum length",
	}}
	// oversizeText is of bodies with too many bytes, not of conversations with too many
	// tokens.
	oversizeText = &phrases{ContextOverflow, []string{
		"request_too_large", "request entity too large", "payload too large", "content too large", "body too large",
		"maximum request size", "exceeds the maximum size", "maximum allowed number of bytes",
	}}
	billingText = &phrases{Billing, []string{
		"billing_error", "billing_hard_limit_reached", "billing_not_active", "payment_required", "insufficient_credits", "insufficient_balance",
		"credit balance is too low", "insufficient credits", "insufficient balance", "insufficient funds",
		"payment required", "requires more credits", "out of credits", "account is not active, please check your billing",
		"invalid_payment_instrument",
	}}
	usageWindowText = &phrases{RateLimit, []string{
		"usage limit", "spend limit", "spending limit", "limit reached", "limit will reset", "limit resets", "try again", "per day",
		"per week", "per month", "daily limit", "weekly limit", "monthly limit", "temporarily",
	}}
	longWindowText = &phrases{RateLimit, []string{
		"daily", "weekly", "monthly", "per day", "per week", "per month", "this week", "this month", "(rpd)", "(tpd)", "per_day",
	}}
	revokedText = &phrases{AuthPermanent, []string{
		"revoked", "key has been disabled", "key_disabled", "key is disabled", "key has been deleted", "deactivated", "account_deactivated",
		"has been suspended", "organization has been disabled", "api_key_deleted",
	}}
	authText = &phrases{Auth, []string{
		"authentication_error", "invalid_api_key", "permission_error", "unauthorized", "invalid api key", "incorrect api key",
		"api key not valid", "no api key", "authentication failed", "access denied", "accessdeniedexception",
		"unrecognizedclientexception", "invalidsignatureexception", "expiredtokenexception", "security token included in the request is",
	}}
	busyText = &phrases{Overloaded, []string{
		"overloaded_error", "engine_overloaded", "modelnotreadyexception", "server_overloaded", "model_overloaded",
		"overloaded", "is busy", "server busy", "not ready", "loading model", "model is loading", "at capacity", "no capacity", "slots are busy",
	}}
	rateText = &phrases{RateLimit, []string{
		"rate_limit", "throttlingexception", "resource_exhausted", "insufficient_quota", "servicequotaexceededexception", "too_many_requests",
		"rate limit", "too many requests", "throttl", "quota", "resource exhausted", "usage limit",
	}}
	throttleCode = &phrases{RateLimit, []string{
		"throttlingexception", "servicequotaexceededexception", "rate_limit_exceeded", "rate_limit_error", "insufficient_quota", "resource_exhausted",
	}}
	timeoutText = &phrases{Timeout, []string{
		"timeout_error", "modeltimeoutexception", "network_error", "malformed_response", "timed out", "timeout", "connection reset", "connection closed",
	}}
	notFoundText = &phrases{ModelNotFound, []string{
		"model_not_found", "not_found_error", "resourcenotfoundexception", "model not found", "no such model", "unknown model",
		"does not exist or you do not have access",
	}}
	sessionText = &phrases{SessionExpired, []string{
		"session_expired", "session_not_found", "session expired", "session not found", "no conversation found", "previous_response_not_found",
	}}
	serverText = &phrases{ServerError, []string{
		"api_error", "server_error", "internal_error", "internalserverexception", "modelerrorexception", "modelstreamerrorexception",
		"serviceunavailableexception", "internal server error", "internal error", "service unavailable", "bad gateway",
	}}
	formatText = &phrases{Format, []string{
		"invalid_request_error", "validationexception", "invalid_request", "bad request", "malformed request", "invalid parameter",
	}}
)
