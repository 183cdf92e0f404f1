package local

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/cron"
)

// CatchUp says how jobs are run at a start whose time has passed meanwhile.
type CatchUp struct {
	AtOnce int           // so many right away, the longest due first; 0: 5
	Step   time.Duration // between the others; 0: 5 s
}

const (
	// jobPoll is the longest pause between two looks at what is due: another process
	// over the same tables may have changed it.
	jobPoll = time.Minute
	// jobRetry is the pause after a failure, and the least between two looks at a job
	// that is still due.
	jobRetry = 2 * time.Second
	// jobsAtOnce is how many jobs are fired side by side. Their runs are the lane's.
	jobsAtOnce = 8
)

// ticker fires jobs at their times. As a cron.Scheduler it only has to be told that
// something has changed: it finds what is due in the tables.
type ticker struct {
	poke chan struct{} // of one place: a poke that nobody has seen is enough
	// held are jobs that were due at the start and have to wait for a moment.
	held map[string]time.Time
}

func newTicker() *ticker { return &ticker{poke: make(chan struct{}, 1)} }

// Put implements cron.Scheduler.
func (t *ticker) Put(context.Context, cron.Slot) error {
	select {
	case t.poke <- struct{}{}:
	default:
	}
	return nil
}

// Delete implements cron.Scheduler.
func (t *ticker) Delete(context.Context, cron.Slot) error { return nil }

// run fires what is due until ctx ends.
func (t *ticker) run(ctx context.Context, s *Server) {
	if err := t.catchUp(ctx, s); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("jobs not listed", "err", err)
	}
	for ctx.Err() == nil {
		wait, err := t.fire(ctx, s)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("jobs not fired", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-t.poke:
		case <-s.cfg.Clock.After(wait):
		}
	}
}

// catchUp holds most of what came due while nothing ran back for a moment, so that a
// start is no stampede. What is held when the process ends is due at the next start.
func (t *ticker) catchUp(ctx context.Context, s *Server) error {
	now := s.cfg.Clock.Now()
	due, err := s.core.Jobs.Due(ctx, now)
	t.held = make(map[string]time.Time)
	for i := s.cfg.CatchUp.AtOnce; i < len(due); i++ {
		t.held[jobOf(due[i])] = now.Add(time.Duration(i-s.cfg.CatchUp.AtOnce+1) * s.cfg.CatchUp.Step)
	}
	return err
}

func jobOf(slot cron.Slot) string { return slot.Tenant + "#" + slot.JobID }

// fire looks at every job that is due, and says how long nothing more is.
func (t *ticker) fire(ctx context.Context, s *Server) (wait time.Duration, err error) {
	now := s.cfg.Clock.Now()
	coming, err := s.core.Jobs.Due(ctx, now.Add(jobPoll))
	if err != nil {
		return jobRetry, err
	}
	var g errgroup.Group
	g.SetLimit(jobsAtOnce)
	wait = jobPoll
	for _, slot := range coming {
		at := slot.At
		if until, held := t.held[jobOf(slot)]; held && until.After(at) {
			at = until
		}
		if at.After(now) {
			wait = min(wait, at.Sub(now))
			continue
		}
		delete(t.held, jobOf(slot))
		wait = min(wait, jobRetry) // should it still be due when it was looked at
		g.Go(func() error { return s.fireJob(ctx, slot) })
	}
	return wait, g.Wait()
}

func (s *Server) fireJob(ctx context.Context, slot cron.Slot) error {
	f, err := s.core.Jobs.Fire(ctx, slot)
	switch {
	case errors.Is(err, cron.ErrUnknown):
		return nil // removed meanwhile
	case err != nil:
		return err
	case f.Reason == cron.ReasonMissed:
		s.cfg.Log.Info("job missed its time", "job", slot.JobID)
	}
	return nil
}
