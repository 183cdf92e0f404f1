// Command watchdog is the function behind the rule that fires every minute: it
// wakes sessions whose work nobody does (A2), tells about those that do not move, and
// fires jobs that nobody has fired.
package main

import (
	"laneway/functions/adapter"
	"laneway/functions/setup"
)

func main() {
	setup.Main(func(f *setup.Function) (any, error) {
		d, err := f.Core.Watch(nil, f.Metrics)
		if err != nil {
			return nil, err
		}
		w := &adapter.Watchdog{Lanes: d, Jobs: f.Core.Jobs, Clock: f.Core.Clock, Log: f.Log}
		return w.Handle, nil
	})
}
