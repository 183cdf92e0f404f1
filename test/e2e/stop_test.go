package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"laneway/shared/id"
	"laneway/test/stoptimes"
)

// TestStopTimes: how long stops take whose run is in a function of the stack, by
// LANEWAY_ABORTS of them.
func TestStopTimes(t *testing.T) {
	on(t)
	n, err := strconv.Atoi(os.Getenv(stoptimes.EnvAborts))
	if err != nil || n < 1 {
		t.Skip("not run: stops on a deployed stack need LANEWAY_ABORTS=50 (make stop-times STACK=yes)")
	}
	s := newStack(t, "stop-"+id.UUID()[:6])
	s.up(t)
	t.Cleanup(func() { s.end(t) })
	for _, line := range stoptimes.Measure(t, n, s.dial(t).Conn, s.model) {
		note(t, fmt.Sprintf("%-9s %s", s.Level, line))
	}
}
