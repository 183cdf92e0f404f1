// Command scheduler is the function behind the schedules of jobs: it accepts the run of
// a slot, exactly as the gateway accepts one of a client.
package main

import (
	"laneway/functions/adapter"
	"laneway/functions/setup"
)

func main() {
	setup.Main(func(f *setup.Function) (any, error) {
		s := &adapter.Schedule{Jobs: f.Core.Jobs, Log: f.Log}
		return s.Handle, nil
	})
}
