// Command runner is the function behind the lanes: it executes the agent loop under
// a session's claim.
package main

import (
	"context"
	"log"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/loop"
	"laneway/shared/model/adapters"
	"laneway/shared/model/choose"
	"laneway/shared/wiring"
)

func main() {
	f, err := setup.Start()
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner(f)
	if err != nil {
		log.Fatal(err)
	}
	q := &adapter.Queue{Log: f.Log, Handle: adapter.Wake(r)}
	lambda.Start(q.Serve)
}

func runner(f *setup.Function) (*loop.Runner, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	sel, models, err := choose.Select(ctx, f.Choice(), adapters.Makers(nil))
	if err != nil {
		return nil, err
	}
	agents, err := f.Agents(sel, models)
	if err != nil {
		return nil, err
	}
	return f.Core.Runner(wiring.RunnerConfig{Models: agents, Agents: agents})
}
