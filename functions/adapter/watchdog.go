package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"laneway/shared/clock"
	"laneway/shared/cron"
	"laneway/shared/lane"
)

// Sweeper looks at sessions with unfinished work. *diag.Service is one. late is how
// much later than planned a look comes.
type Sweeper interface {
	Sweep(ctx context.Context, late time.Duration) (lane.Swept, error)
}

// Reconciler brings the schedules of jobs back in step. *cron.Service is one.
type Reconciler interface {
	Reconcile(ctx context.Context) (cron.Reconciled, error)
}

// Watchdog looks when its rule fires, and while anything is active twice more in
// the minute, so that a dead runner is found within 20 s (R3).
type Watchdog struct {
	Lanes Sweeper
	Jobs  Reconciler // nil: there are none
	Clock clock.Clock
	Log   *slog.Logger
	// Pause from the begin of a look to that of the next; zero: 20 s.
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
	jobs := w.reconcile(ctx)
	return errors.Join(w.look(ctx), jobs)
}

// reconcile looks for jobs that nobody has fired. Its failure keeps no session from
// being looked at.
func (w *Watchdog) reconcile(ctx context.Context) error {
	if w.Jobs == nil {
		return nil
	}
	got, err := w.Jobs.Reconcile(ctx)
	if got.Armed+got.Fired > 0 {
		w.Log.Warn("jobs out of step", "armed", got.Armed, "fired", got.Fired)
	}
	return err
}

func (w *Watchdog) look(ctx context.Context) error {
	pause := w.Pause
	if pause == 0 {
		pause = 20 * time.Second
	}
	var late time.Duration
	for n := range looks {
		began := w.Clock.Now()
		got, err := w.Lanes.Sweep(ctx, late)
		if err != nil {
			return err
		}
		if got.Orphaned > 0 {
			w.Log.Warn("work without a runner", "orphaned", got.Orphaned, "woken", got.Woken, "active", got.Active)
		}
		if got.Active == 0 || n == looks-1 {
			return nil
		}
		ended := w.Clock.Now()
		rest := max(pause-ended.Sub(began), 0)
		if clock.Sleep(ctx, w.Clock, rest) != nil {
			return nil //nolint:nilerr // its time is over, and the next minute looks again
		}
		// Wall time: the monotonic clock stands still while a function is frozen.
		late = w.Clock.Now().Round(0).Sub(ended.Round(0)) - rest
	}
	return nil
}
