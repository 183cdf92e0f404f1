// Command runner is the function behind the lanes: it executes the agent loop under
// a session's claim.
package main

import (
	"context"
	"os"
	"time"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/loop"
	"laneway/shared/model/adapters"
	"laneway/shared/model/retry"
	"laneway/shared/wiring"
)

func main() {
	setup.Main(func(f *setup.Function) (any, error) {
		r, err := runner(f)
		if err != nil {
			return nil, err
		}
		q := &adapter.Queue{Log: f.Log, Handle: adapter.Wake(r)}
		return q.Serve, nil
	})
}

func runner(f *setup.Function) (*loop.Runner, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f.Make, f.Makers = adapters.Make(nil), adapters.Makers(nil)
	agents, err := f.Agents(ctx, true)
	if err != nil {
		return nil, err
	}
	return f.Core.Runner(wiring.RunnerConfig{
		Models: agents, Agents: agents, Chains: agents, Preferred: agents.Preferred, Retry: agents.Routes.Retry(retry.Config{}), StepNeed: stepNeed(f.Env.Timeout), Reserve: reserve(f.Env.Timeout),
		FallbackSkip: f.Env.FallbackSkip,
		MemoryMB:     memoryMB(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")),
		Measure:      f.Metrics.Run,
	})
}
