// Command watchdog is the function behind the rule that fires every minute: it
// wakes sessions whose work nobody does (A2), tells about those that do not move, and
// fires jobs that nobody has fired.
package main

import (
	"os"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/diag"
)

func main() {
	setup.Main(func(f *setup.Function) (any, error) {
		d, err := f.Core.Watch(nil, &diag.EMF{W: os.Stdout, Stack: f.Env.Stack, Clock: f.Core.Clock})
		if err != nil {
			return nil, err
		}
		w := &adapter.Watchdog{Lanes: d, Jobs: f.Core.Jobs, Clock: f.Core.Clock, Log: f.Log}
		return w.Handle, nil
	})
}
