// Command notifier is the function behind the timer queue: challenges of new
// connections, deadlines of waits, delayed wake-ups.
package main

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/queue"
)

func main() {
	f, err := setup.Start()
	if err != nil {
		log.Fatal(err)
	}
	q := &adapter.Queue{Log: f.Log, Handle: func(ctx context.Context, m queue.Message) error {
		return f.Core.Notify.HandleTimer(ctx, m.Body)
	}}
	lambda.Start(q.Serve)
}
