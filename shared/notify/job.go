package notify

import (
	"context"
	"errors"
	"strings"

	"laneway/shared/run"
)

// Jobs is what notify needs of scheduled jobs. *cron.Service is one.
type Jobs interface {
	// Ended writes the end of a scheduled run into its job. It is called before the run
	// leaves the unsettled ones, and again after a crash.
	Ended(ctx context.Context, st run.Status) error
	// HandleTimer takes the timers that jobs have armed.
	HandleTimer(ctx context.Context, body []byte) error
}

const (
	methodCron = "cron" // of scheduled runs
	timersCron = "cron."
)

// jobEnded tells a job that its run has ended.
func (s *Service) jobEnded(ctx context.Context, st run.Status) error {
	if s.Jobs == nil || st.Method != methodCron {
		return nil
	}
	return s.Jobs.Ended(ctx, st)
}

// jobTimer hands a timer to the jobs; known is false for one that is not theirs.
func (s *Service) jobTimer(ctx context.Context, kind string, body []byte) (known bool, err error) {
	if !strings.HasPrefix(kind, timersCron) {
		return false, nil
	}
	if s.Jobs == nil {
		return true, errors.New("timer: there are no jobs here")
	}
	return true, s.Jobs.HandleTimer(ctx, body)
}
