// Package profile remembers how credentials of model providers fared: which of them
// failed, why, and until when they are left alone (spec: runtime 7.3, 7.4).
//
// Guarantees: what was remembered is in the tables, so all runners know it; a failure
// inside a window never makes that window longer, however many runs meet it at once; a
// success forgets all failures; time is given to it. It calls nobody and knows no keys.
package profile

import (
	"errors"
	"maps"
	"time"

	"laneway/shared/model"
)

// The windows (spec: runtime 7.4).
const (
	firstRate    = 30 * time.Second
	longest      = 24 * time.Hour
	firstBilling = 10 * time.Minute
	firstRevoked = 10 * time.Minute
	mostRevoked  = time.Hour
	countWindow  = 24 * time.Hour // a failure that is older begins the count anew
)

// generic are the windows of the first, second and every later failure.
var generic = []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute}

// Usage is what is known of one credential. Times are ms since the epoch, 0: none.
type Usage struct {
	LastUsed       int64       `json:"lastUsed,omitempty"`
	CooldownUntil  int64       `json:"cooldownUntil,omitempty"`
	CooldownReason model.Class `json:"cooldownReason,omitempty"`
	// Models are windows of one model each: its siblings stay usable.
	Models        map[string]int64    `json:"cooldownModels,omitempty"`
	ErrorCount    int                 `json:"errorCount,omitempty"`
	FailureCounts map[model.Class]int `json:"failureCounts,omitempty"`
	LastFailure   int64               `json:"lastFailureAt,omitempty"`
	DisabledUntil int64               `json:"disabledUntil,omitempty"`
	// DisabledReason is billing or auth_permanent.
	DisabledReason model.Class `json:"disabledReason,omitempty"`
	// BlockedUntil is when a used up allowance comes back, as the provider said.
	BlockedUntil int64 `json:"blockedUntil,omitempty"`
}

// Window is a time in which a credential is left alone.
type Window struct {
	Until  time.Time
	Reason model.Class
}

// Active says whether a window is still open.
func (w Window) Active(now time.Time) bool { return now.Before(w.Until) }

// For is the window that keeps a model from being asked with the credential: the longest
// of those that are open; zero: none.
func (u *Usage) For(modelID string, now time.Time) Window {
	var w Window
	for _, c := range []struct {
		until  int64
		reason model.Class
	}{
		{u.DisabledUntil, u.DisabledReason},
		{u.CooldownUntil, u.CooldownReason},
		{u.Models[modelID], model.RateLimit},
		{u.BlockedUntil, model.RateLimit},
	} {
		if t := time.UnixMilli(c.until); now.Before(t) && t.After(w.Until) {
			w = Window{t, c.reason}
		}
	}
	return w
}

// Failing says that there is something for a success to forget.
func (u *Usage) Failing() bool {
	return u.ErrorCount > 0 || u.CooldownUntil > 0 || u.DisabledUntil > 0 || u.BlockedUntil > 0 || len(u.Models) > 0
}

// Cools says whether a failure is one that a credential is left alone for. Errors of the
// request (format, context, a refusal), of the model's name, of the caller, and timeouts
// in which the provider was never reached say nothing about the credential.
func Cools(e *model.Error) bool {
	switch e.Class {
	case model.Auth, model.AuthPermanent, model.Billing, model.RateLimit, model.Overloaded, model.ServerError:
		return true
	case model.Timeout:
		return e.Status != 0 || errors.Is(e, model.ErrIdle)
	case model.Format, model.TLSCertificate, model.ContextOverflow, model.ModelNotFound, model.SessionExpired, model.EmptyResponse,
		model.NoErrorDetails, model.Unclassified, model.Unknown, model.Aborted:
	}
	return false
}

// Failed is the usage after a failure of a call to a model; modelID may be empty.
func (u *Usage) Failed(e *model.Error, modelID string, now time.Time) Usage {
	n := *u
	n.Models, n.FailureCounts = maps.Clone(u.Models), maps.Clone(u.FailureCounts)
	if !Cools(e) {
		return n
	}
	if n.LastFailure != 0 && now.UnixMilli()-n.LastFailure > countWindow.Milliseconds() {
		n.ErrorCount, n.FailureCounts = 0, nil
	}
	n.prune(now)
	if n.open(e.Class, modelID, now) {
		return n // the same incident: neither longer nor counted again
	}
	if n.FailureCounts == nil {
		n.FailureCounts = map[model.Class]int{}
	}
	n.ErrorCount++
	n.FailureCounts[e.Class]++
	n.LastFailure = now.UnixMilli()
	count := n.FailureCounts[e.Class]
	switch e.Class {
	case model.Billing:
		n.DisabledUntil, n.DisabledReason = after(now, doubled(firstBilling, count, longest)), e.Class
	case model.AuthPermanent:
		n.DisabledUntil, n.DisabledReason = after(now, doubled(firstRevoked, count, mostRevoked)), e.Class
	case model.RateLimit:
		until := after(now, doubled(firstRate, count, longest))
		if e.LongWindow && e.RetryAfter > 0 {
			n.BlockedUntil = after(now, min(e.RetryAfter, longest))
		}
		if modelID == "" {
			n.CooldownUntil, n.CooldownReason = until, e.Class
			break
		}
		if n.Models == nil {
			n.Models = map[string]int64{}
		}
		n.Models[modelID] = until
	default:
		n.CooldownUntil, n.CooldownReason = after(now, generic[min(n.ErrorCount, len(generic))-1]), e.Class
	}
	return n
}

// open says whether a window is open that a failure of this class belongs to.
func (u *Usage) open(c model.Class, modelID string, now time.Time) bool {
	ms := now.UnixMilli()
	switch {
	case c == model.Billing || c == model.AuthPermanent:
		return u.DisabledUntil > ms
	case c == model.RateLimit && modelID != "":
		return u.Models[modelID] > ms
	}
	return u.CooldownUntil > ms
}

// prune forgets windows that are over; the counts stay.
func (u *Usage) prune(now time.Time) {
	ms := now.UnixMilli()
	for id, until := range u.Models {
		if until <= ms {
			delete(u.Models, id)
		}
	}
	if u.BlockedUntil <= ms {
		u.BlockedUntil = 0
	}
}

// Succeeded is the usage after a call that completed.
func (u *Usage) Succeeded(now time.Time) Usage { return Usage{LastUsed: now.UnixMilli()} }

func after(now time.Time, d time.Duration) int64 { return now.Add(d).UnixMilli() }

// doubled is the window of failure number count: the first one, doubled each time.
func doubled(first time.Duration, count int, most time.Duration) time.Duration {
	d := first
	for range count - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return min(d, most)
}
