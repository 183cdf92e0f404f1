package fault

import (
	"context"

	"laneway/shared/claim"
	"laneway/shared/loop"
	"laneway/shared/queue"
	"laneway/shared/table"
)

// Mutation makes the product wrong in one way, from outside: at the ports and seams
// that it has anyway.
type Mutation struct {
	Name, Rule, Text string
	// Profiles in which it shows, the likeliest first.
	Profiles []string
	// Want names the checks of which one must notice.
	Want []string

	Store      func(role, table.Store) table.Store
	Queue      func(role, mailPort, *Sim) mailPort
	Times      func(*claim.Times) // of runners
	Ends       func(loop.Ends) loop.Ends
	Wake       func(*proc, queue.Handler) queue.Handler
	NoWatchdog bool
}

var _ = context.Background
