// Command notifier is the function behind the timer queue: challenges of new
// connections, deadlines of waits, delayed wake-ups.
package main

import (
	"context"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/queue"
)

func main() {
	setup.Main(func(f *setup.Function) (any, error) {
		q := &adapter.Queue{Log: f.Log, Handle: func(ctx context.Context, m queue.Message) error {
			return f.Core.Notify.HandleTimer(ctx, m.Body)
		}}
		return q.Serve, nil
	})
}
