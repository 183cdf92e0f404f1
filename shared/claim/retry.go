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

// Write sends ops until they are decided, with pauses in between, for at most window.
// It returns the last error, with ErrUnknown in its chain where an earlier try may have
// been applied. After such a try a failed condition may be the trace of this very
// write (Ambiguous), which the caller tells by the write id in the item.
func Write(ctx context.Context, t table.Store, c clock.Clock, window time.Duration, ops ...table.Op) (table.Result, error) {
	end := c.Now().Add(window)
	var unknown error
	for n := 0; ; n++ {
		res, err := t.Write(ctx, ops...)
		if err == nil {
			return res, nil
		}
		if ce, ok := table.Failed(err); ok {
			ce.Ambiguous = ce.Ambiguous || unknown != nil
			return res, err
		}
		retry := Retrying(err)
		if errors.Is(err, table.ErrUnknown) {
			unknown = err
		} else {
			err = errors.Join(err, unknown)
		}
		wait := Pause(n)
		if !retry || c.Now().Add(wait).After(end) {
			return res, err
		}
		if serr := clock.Sleep(ctx, c, wait); serr != nil {
			return res, errors.Join(err, serr)
		}
	}
}

// Pause is how long to wait before try n+1: full jitter up to 10 ms at first and up to
// 200 ms in the end.
func Pause(n int) time.Duration {
	most := min(10*time.Millisecond<<min(n, 5), 200*time.Millisecond)
	return time.Duration(rand.Int64N(int64(most)) + 1) //nolint:gosec // no secret is made of it
}
