// Command runner is the function behind the lanes: it executes the agent loop under
// a session's claim.
package main

import (
	"context"
	"os"
	"strconv"
	"time"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/loop"
	"laneway/shared/model/adapters"
	"laneway/shared/model/choose"
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
	sel, models, err := choose.Select(ctx, f.Choice(), adapters.Makers(nil))
	if err != nil {
		return nil, err
	}
	agents, err := f.Agents(sel, models)
	if err != nil {
		return nil, err
	}
	return f.Core.Runner(wiring.RunnerConfig{
		Models: agents, Agents: agents, StepNeed: stepNeed(f.Env.Timeout), Reserve: reserve(f.Env.Timeout),
		MemoryMB: memoryMB(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")),
	})
}

// A step is not begun with less left than this of an invocation: the defaults of the
// loop, or less where the function is not given much more than they are.
func stepNeed(limit time.Duration) time.Duration { return min(30*time.Second, limit/10) }

// reserve is what the last writes of an invocation are given.
func reserve(limit time.Duration) time.Duration { return min(5*time.Second, limit/8) }

// memoryMB is what the platform says that this function was given, which its time is
// billed by; 0 where it does not say.
func memoryMB(s string) int {
	n, _ := strconv.Atoi(s)
	return max(n, 0)
}
