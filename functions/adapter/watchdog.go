package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"laneway/shared/clock"
	"laneway/shared/lane"
)

// Sweeper looks at sessions with unfinished work. *lane.Service is one.
type Sweeper interface {
	Sweep(ctx context.Context) (lane.Swept, error)
}

// Watchdog sweeps when its rule fires, and while anything is active twice more in
// the minute, so that a dead runner is found within 20 s (R3).
type Watchdog struct {
	Lanes Sweeper
	Clock clock.Clock
	Log   *slog.Logger
	// Pause between two looks; zero: 20 s.
	Pause time.Duration
}

// looks of one invocation.
const looks = 3

// ErrScheduleEvent is an event that is not of the watchdog's rule.
var ErrScheduleEvent = errors.New("adapter: not an event of a schedule rule")

// Handle implements the function's handler.
func (w *Watchdog) Handle(ctx context.Context, ev events.EventBridgeEvent) error {
	if ev.Source != "aws.events" && ev.DetailType != "Scheduled Event" {
		return fmt.Errorf("%w: its source is %q", ErrScheduleEvent, ev.Source)
	}
	pause := w.Pause
	if pause == 0 {
		pause = 20 * time.Second
	}
	for n := range looks {
		got, err := w.Lanes.Sweep(ctx)
		if err != nil {
			return err
		}
		if got.Orphaned > 0 {
			w.Log.Warn("work without a runner", "orphaned", got.Orphaned, "woken", got.Woken, "active", got.Active)
		}
		if got.Active == 0 || n == looks-1 {
			return nil
		}
		if clock.Sleep(ctx, w.Clock, pause) != nil {
			return nil // the next minute looks again
		}
	}
	return nil
}
