// Command watchdog is the function behind the rule that fires every minute: it
// wakes sessions whose work nobody does (A2).
package main

import (
	"laneway/functions/adapter"
	"laneway/functions/setup"
)

func main() {
	setup.Main(func(f *setup.Function) (any, error) {
		w := &adapter.Watchdog{Lanes: f.Core.Lanes, Clock: f.Core.Clock, Log: f.Log}
		return w.Handle, nil
	})
}
