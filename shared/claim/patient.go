package claim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"laneway/shared/clock"
	"laneway/shared/table"
)

// Retry calls f until it gives no error that another try settles (see Retrying), with
// full jitter between 10 and 200 ms, for at most window. It is for what may be done
// twice.
func Retry(ctx context.Context, c clock.Clock, window time.Duration, f func() error) error {
	end := c.Now().Add(window)
	for n := 0; ; n++ {
		err := f()
		if !Retrying(err) {
			return err
		}
		wait := min(10*time.Millisecond<<min(n, 5), 200*time.Millisecond)
		wait = time.Duration(rand.Int64N(int64(wait)) + 1) //nolint:gosec // jitter is no secret
		if c.Now().Add(wait).After(end) {
			return err
		}
		if serr := clock.Sleep(ctx, c, wait); serr != nil {
			return errors.Join(err, serr)
		}
	}
}

// Patient is a store whose reads wait out throttles and lost answers for up to window
// (C6). A read that fails in passing would end an attempt, or make somebody tell the
// end of a run a second time. Writes are as they were: who sends one knows what a
// second try of it means.
func Patient(t table.Store, c clock.Clock, window time.Duration) table.Store {
	return patient{t, c, window}
}

type patient struct {
	table.Store
	clock  clock.Clock
	window time.Duration
}

func (p patient) Get(ctx context.Context, k table.Key) (it table.Item, err error) {
	err = Retry(ctx, p.clock, p.window, func() error {
		it, err = p.Store.Get(ctx, k)
		return err
	})
	return it, err
}

func (p patient) Query(ctx context.Context, q table.Query) (page table.Page, err error) {
	err = Retry(ctx, p.clock, p.window, func() error {
		page, err = p.Store.Query(ctx, q)
		return err
	})
	return page, err
}

func (p patient) Index(ctx context.Context, q table.IndexQuery) (page table.KeyPage, err error) {
	err = Retry(ctx, p.clock, p.window, func() error {
		page, err = p.Store.Index(ctx, q)
		return err
	})
	return page, err
}

// Sure is a store whose writes are sent until they are decided, see Write: for single
// writes that may be sent again.
func Sure(t table.Store, c clock.Clock, window time.Duration) table.Store {
	return sure{t, c, window}
}

type sure struct {
	table.Store
	clock  clock.Clock
	window time.Duration
}

func (s sure) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	return Write(ctx, s.Store, s.clock, s.window, ops...)
}
