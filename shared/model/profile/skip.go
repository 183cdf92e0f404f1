package profile

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"laneway/shared/clock"
)

// SkipVariable is the environment variable that Skips are switched on with. It is the
// reference's own name, so that an installation that has it set keeps its meaning.
const SkipVariable = "OPENCLAW_FALLBACK_SKIP_TTL_MS"

// How long a fallback is passed by.
const (
	leastSkip = time.Second
	mostSkip  = 10 * time.Minute
	maxSkips  = 1024 // remembered at once
)

// ParseSkipTTL reads the value of SkipVariable: milliseconds, which become at least a
// second and at most ten minutes. Empty and 0: nothing is passed by.
func ParseSkipTTL(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 {
		return 0, errors.New("must be a number of milliseconds, 0 for none")
	}
	if ms == 0 {
		return 0, nil
	}
	return time.Duration(min(max(ms, leastSkip.Milliseconds()), mostSkip.Milliseconds())) * time.Millisecond, nil
}

// Skip is a fallback of a session that refused a credential.
type Skip struct{ Session, Provider, Model, Profile string }

// Skips are fallbacks that are passed by for a while in one session, since their
// credential was refused there (spec: runtime 7.5). They are this process's own memory
// and end with it, unlike windows, which all runners know. Its methods may be called by
// many goroutines; those of nil remember nothing.
type Skips struct {
	clock clock.Clock
	ttl   time.Duration

	mu    sync.Mutex
	until map[Skip]time.Time
}

// NewSkips makes a memory; nil where ttl is 0.
func NewSkips(c clock.Clock, ttl time.Duration) *Skips {
	if ttl <= 0 {
		return nil
	}
	return &Skips{clock: c, ttl: ttl, until: map[Skip]time.Time{}}
}

// Note remembers a refusal.
func (s *Skips) Note(k Skip) {
	if s == nil {
		return
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[k] = now.Add(s.ttl)
	if len(s.until) <= maxSkips {
		return
	}
	var soonest Skip
	var at time.Time
	for other, until := range s.until {
		switch {
		case !until.After(now):
			delete(s.until, other)
		case other != k && (at.IsZero() || until.Before(at)):
			soonest, at = other, until
		}
	}
	if len(s.until) > maxSkips {
		delete(s.until, soonest)
	}
}

// Until is until when a fallback is passed by; a time that has passed: it is not.
func (s *Skips) Until(k Skip) time.Time {
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until[k]
}
