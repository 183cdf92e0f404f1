package token

import (
	"context"
	"fmt"
	"sync"
	"time"

	"laneway/shared/clock"
	"laneway/shared/table"
)

// How soon a run ends whose token is gone (spec: runtime 5.5).
const (
	// LookEvery is how often a run that is at work looks at its token.
	LookEvery = 10 * time.Second
	// LookAge is how old an answer may be that a look takes: runs of one token that are
	// at work in one process share it.
	LookAge = time.Second
)

// maxWatched bounds the memory of a process that serves for long.
const maxWatched = 10_000

// Watch says of tokens that were granted already whether they still are. It asks for
// each at most once in the age that its caller allows, one small read. It may be used
// by many goroutines.
type Watch struct {
	Table table.Store
	Clock clock.Clock

	mu   sync.Mutex
	seen map[string]sight
}

// sight is a token as it was last read.
type sight struct {
	read    time.Time
	gone    bool      // for good: no secret is made twice
	expires time.Time // zero: never
}

// Live is nil while the token of an id is granted, as far as it is known for less than
// age; ErrUnknown where it was removed or has expired. The empty id is of who needs no
// stored token, and always live.
func (w *Watch) Live(ctx context.Context, id string, age time.Duration) error {
	if id == "" {
		return nil
	}
	now := w.Clock.Now()
	w.mu.Lock()
	s, known := w.seen[id]
	w.mu.Unlock()
	if since := now.Sub(s.read); !known || !s.gone && (since < 0 || since >= age) {
		page, err := w.Table.Query(ctx, byID(id, 1))
		if err != nil {
			return fmt.Errorf("look at token: %w", err)
		}
		s = sight{read: now, gone: len(page.Items) == 0}
		if !s.gone {
			s.expires = clock.FromMillis(page.Items[0].Attrs.Int("expires"))
		}
		w.keep(id, s)
	}
	if s.over(now) {
		return ErrUnknown
	}
	return nil
}

// Gone says whether the token is known, without a look, to be granted no more.
func (w *Watch) Gone(id string) bool {
	if id == "" {
		return false
	}
	w.mu.Lock()
	s, known := w.seen[id]
	w.mu.Unlock()
	return known && s.over(w.Clock.Now())
}

func (s sight) over(now time.Time) bool {
	return s.gone || !s.expires.IsZero() && !now.Before(s.expires)
}

func (w *Watch) keep(id string, s sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil || len(w.seen) >= maxWatched {
		w.seen = make(map[string]sight) // a cache this full is better filled anew than searched
	}
	w.seen[id] = s
}
