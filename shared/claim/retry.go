package claim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"laneway/shared/clock"
	"laneway/shared/table"
)

// Retrying says whether err left the write undecided or undone in a way that the
// same write, sent again, settles (C5, C6). A failed condition is never that.
func Retrying(err error) bool {
	return errors.Is(err, table.ErrConflict) || errors.Is(err, table.ErrThrottled) || errors.Is(err, table.ErrUnknown)
}

// Write sends ops until they are decided, with full jitter between 10 and 200 ms,
// for at most window. It returns the last error; after an unknown outcome a failed
// condition may be the trace of this very write, which the caller tells by the
// write id in the item.
func Write(ctx context.Context, t table.Store, c clock.Clock, window time.Duration, ops ...table.Op) (table.Result, error) {
	end := c.Now().Add(window)
	ambiguous := false
	for n := 0; ; n++ {
		res, err := t.Write(ctx, ops...)
		if ce, ok := table.Failed(err); ok {
			ce.Ambiguous = ce.Ambiguous || ambiguous
		}
		if !Retrying(err) {
			return res, err
		}
		ambiguous = ambiguous || errors.Is(err, table.ErrUnknown)
		wait := min(10*time.Millisecond<<min(n, 5), 200*time.Millisecond)
		wait = time.Duration(rand.Int64N(int64(wait)) + 1)
		if c.Now().Add(wait).After(end) {
			return res, err
		}
		if serr := clock.Sleep(ctx, c, wait); serr != nil {
			return res, errors.Join(err, serr)
		}
	}
}
