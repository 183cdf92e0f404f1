package queue

import (
	"context"
	"sync"
)

// Batch handles the messages of one delivery, in the order they came in, and
// gives the ids of those that must come again; the answer is never nil, which
// on the wire would be null and mean something else to some receivers.
//
// Groups are handled one after another, so that a lane's cap holds; within one,
// everything after a failure fails without being handled, while other groups go
// on. Messages without a group, which are timers, are handled all at once. A
// panic is a failure; when ctx has ended, what is left fails. report, which may
// be nil, is told of each message that was handled and failed; it may be called
// from several goroutines.
func Batch(ctx context.Context, messages []Message, h Handler, report func(Message, error)) []string {
	failed := make([]bool, len(messages))
	handle := func(i int) {
		err := ctx.Err()
		if err == nil {
			err = Call(ctx, h, messages[i])
			if err != nil && report != nil {
				report(messages[i], err)
			}
		}
		failed[i] = err != nil
	}
	var wg sync.WaitGroup
	broken := make(map[string]bool)
	for i, m := range messages {
		switch {
		case m.Group == "":
			wg.Go(func() { handle(i) })
		case broken[m.Group]:
			failed[i] = true
		default:
			handle(i)
			broken[m.Group] = failed[i]
		}
	}
	wg.Wait()
	ids := make([]string, 0)
	for i, m := range messages {
		if failed[i] {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
