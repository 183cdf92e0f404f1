package tool

import (
	"context"
	"sync"

	"laneway/shared/model"
)

// maxParallel bounds the calls of one message that run at the same time.
const maxParallel = 16

// Plan says how the calls of one assistant message run: one after another as soon
// as one of them asks for it, else side by side. A call of an unknown tool has no
// say.
func Plan(calls []model.Block, r *Registry) (sequential bool) {
	for _, c := range calls {
		if spec, ok := r.SpecOf(c.Name); ok && spec.Sequential {
			return true
		}
	}
	return false
}

// RunBatch calls run for 0 to n-1 and returns when every started one has
// returned. Sequentially they are called in order in the caller's goroutine;
// otherwise up to 16 at a time, each in a goroutine that RunBatch owns. When the
// context ends, calls that have not begun are still made, with the ended context:
// run decides what an unstarted call answers, so that none stays without a result.
// The order of results is run's to keep, by its index.
func RunBatch(ctx context.Context, n int, sequential bool, run func(ctx context.Context, i int)) {
	if sequential || n == 1 {
		for i := range n {
			run(ctx, i)
		}
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			run(ctx, i)
		})
	}
	wg.Wait()
}
