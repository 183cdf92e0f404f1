// Package retry decides whether a failed model call is made again on the same
// model, and after how long (spec: runtime 7.2 stage 1).
//
// Guarantees: it is a pure state machine; time and chance are given to it. Its
// state is one small value that survives a checkpoint, so that a run continued on
// another machine has no new budget. It never waits and never calls.
package retry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"laneway/shared/model"
)

// OutputLimit is the class for an answer that ended at the token limit and shall
// be continued. Providers do not report it as an error, so package model has no
// such class.
const OutputLimit model.Class = "output_limit"

// What the table says.
const (
	maxRetries      = 8                // of all transient failures together
	rateLimitFirst  = 9                // the same when the first was a rate limit: 10 attempts
	window          = 90 * time.Second // from the first failure that is not a rate limit
	capFactor       = 30               // longest backoff, in Base
	idleInARow      = 5                // idle timeouts, then the breaker opens
	defaultMaxDelay = 60 * time.Second
)

// Config of a Machine. The zero value is the table of the specification.
type Config struct {
	// Base is the first backoff; the longest one is 30 times as long. 0: 1 s.
	Base time.Duration
	// MaxRetries replaces the limit of 8; a rate limit still ends at 10 attempts.
	// 0: the table's limits; negative: nothing is retried.
	MaxRetries int
	// Fallback says that another model is there, so that long waits are not made.
	Fallback bool
	// MaxDelay is the longest Retry-After that is waited for when there is a
	// fallback. 0: 60 s; negative: any.
	MaxDelay time.Duration
	// Rand gives numbers in [0, 1) for the jitter; nil: random.
	Rand func() float64
}

// state is what a checkpoint keeps.
type state struct {
	// Retries so far; a success does not clear it.
	Retries int `json:"retries,omitempty"`
	// RateLimitFirst says that the first transient failure was a rate limit.
	RateLimitFirst bool `json:"rateLimitFirst,omitempty"`
	// WindowStart in milliseconds since the epoch, 0: no window is open.
	WindowStart int64 `json:"windowStart,omitempty"`
	// EmptyRetried says that the last call was the second try after an empty answer.
	EmptyRetried bool `json:"emptyRetried,omitempty"`
	// Idle timeouts in a row.
	Idle int `json:"idle,omitempty"`
}

// Machine decides for one run on one model. It is not safe for concurrent use: a
// run makes one model call at a time.
type Machine struct {
	cfg   Config
	state state
}

// New begins with nothing spent.
func New(cfg Config) *Machine {
	cfg.Base = cmp.Or(cfg.Base, time.Second)
	cfg.MaxDelay = cmp.Or(cfg.MaxDelay, defaultMaxDelay)
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	return &Machine{cfg: cfg}
}

// Restore goes on from what State gave; from nothing it begins anew.
func Restore(cfg Config, saved json.RawMessage) (*Machine, error) {
	r := New(cfg)
	if len(saved) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(saved, &r.state); err != nil {
		return nil, fmt.Errorf("restore the state of retries: %w", err)
	}
	return r, nil
}

// HasFallback says whether another model is there, which is known when the chain of a
// run is.
func (r *Machine) HasFallback(there bool) { r.cfg.Fallback = there }

// State is what Restore needs; a small JSON object.
func (r *Machine) State() json.RawMessage {
	b, err := json.Marshal(r.state)
	if err != nil { // numbers and booleans always marshal
		return nil
	}
	return b
}

// Next takes a failure and says whether to call again, and after which delay.
// hadOutput says that the call gave text or a tool call before it failed; the new
// call then continues, it does not repeat. A false answer is final for this
// model: the caller falls back or ends the run.
func (r *Machine) Next(err *model.Error, hadOutput bool, now time.Time) (delay time.Duration, again bool) {
	if err == nil {
		return 0, false
	}
	r.countIdle(err)
	switch err.Class {
	case model.RateLimit, model.Overloaded, model.ServerError, model.Timeout, OutputLimit:
		return r.transient(err, now)
	case model.EmptyResponse:
		if r.state.EmptyRetried || hadOutput || r.cfg.MaxRetries < 0 {
			return 0, false
		}
		r.state.EmptyRetried = true
		return r.backoff(1, err.RetryAfter), true
	case model.Auth, model.AuthPermanent, model.Format, model.Billing, model.TLSCertificate, model.ContextOverflow,
		model.ModelNotFound, model.SessionExpired, model.NoErrorDetails, model.Unclassified, model.Unknown, model.Aborted:
		return 0, false // another try gives the same answer, or nobody wants one
	}
	return 0, false
}

func (r *Machine) countIdle(err *model.Error) {
	if errors.Is(err, model.ErrIdle) {
		r.state.Idle++
	} else {
		r.state.Idle = 0
	}
}

// transient decides about failures that time may heal.
func (r *Machine) transient(err *model.Error, now time.Time) (time.Duration, bool) {
	limited := err.Class == model.RateLimit
	if r.state.Retries == 0 {
		r.state.RateLimitFirst = limited
	}
	if !limited && err.Class != OutputLimit {
		if r.state.WindowStart == 0 {
			r.state.WindowStart = now.UnixMilli()
		}
		if now.UnixMilli()-r.state.WindowStart > window.Milliseconds() {
			return 0, false
		}
	}
	switch {
	case r.state.Retries >= r.limit(limited), r.Broken():
		return 0, false
	case r.cfg.Fallback && err.LongWindow:
		return 0, false
	case r.cfg.Fallback && r.cfg.MaxDelay > 0 && err.RetryAfter > r.cfg.MaxDelay:
		return 0, false
	}
	r.state.Retries++
	return r.backoff(r.state.Retries, err.RetryAfter), true
}

// limit is how many retries there may be in all.
func (r *Machine) limit(limited bool) int {
	switch {
	case r.cfg.MaxRetries < 0:
		return 0
	case r.cfg.MaxRetries > 0 && limited:
		return min(r.cfg.MaxRetries, rateLimitFirst)
	case r.cfg.MaxRetries > 0:
		return r.cfg.MaxRetries
	case r.state.RateLimitFirst:
		return rateLimitFirst
	}
	return maxRetries
}

// backoff is the wait before retry n, which is 1 for the first: doubled each time,
// capped, times 0.5 to 1.5, and never less than what the provider asked for.
func (r *Machine) backoff(n int, floor time.Duration) time.Duration {
	longest := capFactor * r.cfg.Base
	d := longest
	if n <= 5 { // 2^5 is above the cap
		d = min(longest, r.cfg.Base<<(n-1))
	}
	return max(floor, time.Duration(float64(d)*(0.5+r.cfg.Rand())))
}

// Success tells that a call completed: the window and what counts in a row begin
// anew, the number of retries does not.
func (r *Machine) Success() {
	r.state.WindowStart, r.state.EmptyRetried, r.state.Idle = 0, false, 0
}

// Broken says that the provider was silent five times in a row without one
// completed answer: the run ends with idle_timeout_circuit_breaker, and no other
// model is tried.
func (r *Machine) Broken() bool { return r.state.Idle >= idleInARow }

// Attempts is how many failed calls were followed by another one, so that the
// call after the first retry is number Attempts() + 1.
func (r *Machine) Attempts() int { return r.state.Retries }

// MaxAttempts is how many calls there may be in all, for the retry line of status
// events.
func (r *Machine) MaxAttempts() int { return r.limit(r.state.RateLimitFirst) + 1 }
