package cron

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/table"
)

// A job whose schedule could not be put is noted under one key of all tenants, for
// Reconcile. Should that note be lost too, the job is found when it is overdue.
const armPK = "ARM"

func armKey(tenant, jobID string) table.Key {
	return table.Key{Table: table.Jobs, PK: armPK, SK: tenant + "#" + jobID}
}

// arm keeps the scheduler in step with a job that was written. Its failure does not
// fail the write, which has happened.
func (s *Service) arm(ctx context.Context, j *Job, old int64) {
	if s.Scheduler == nil || j.due == old || j.Running != nil && !j.Running.Accepted {
		return // what was marked and is not accepted yet is in good hands for now
	}
	err := s.put(ctx, j)
	if old > s.now().UnixMilli() { // one that has fired is gone by itself
		err = errors.Join(err, s.Scheduler.Delete(ctx, Slot{j.Tenant, j.ID, time.UnixMilli(old)}))
	}
	if err == nil {
		return
	}
	s.Log.Warn("schedule not put", "job", j.ID, "err", err)
	if err := s.write(ctx, table.Op{Kind: table.Put, Key: armKey(j.Tenant, j.ID), Item: table.Attrs{}}); err != nil {
		s.Log.Warn("schedule not noted", "job", j.ID, "err", err)
	}
}

func (s *Service) put(ctx context.Context, j *Job) error {
	if j.due == 0 {
		return nil
	}
	return s.Scheduler.Put(ctx, Slot{j.Tenant, j.ID, time.UnixMilli(j.due)})
}

// overdue is how long after its time a job is fired by whoever reconciles: by then its
// own event is lost.
const overdue = 90 * time.Second

// Reconciled says what Reconcile did.
type Reconciled struct{ Armed, Fired int }

// Reconcile puts schedules that could not be put, and fires jobs whose event has not
// come. The watchdog calls it.
func (s *Service) Reconcile(ctx context.Context) (Reconciled, error) {
	var sum Reconciled
	var failed error
	if s.Scheduler != nil {
		sum.Armed, failed = s.rearm(ctx)
	}
	late, err := s.Due(ctx, s.now().Add(-overdue))
	failed = errors.Join(failed, err)
	for _, slot := range late {
		if _, err := s.Fire(ctx, slot); err != nil && !errors.Is(err, ErrUnknown) {
			failed = errors.Join(failed, err)
			continue
		}
		sum.Fired++
	}
	return sum, failed
}

func (s *Service) rearm(ctx context.Context) (n int, failed error) {
	page, err := s.Store.Query(ctx, table.Query{Table: table.Jobs, PK: armPK, Limit: dueLimit})
	if err != nil {
		return 0, fmt.Errorf("list schedules to put: %w", err)
	}
	for _, it := range page.Items {
		tenant, jobID, _ := strings.Cut(it.Key.SK, "#")
		j, err := s.Get(ctx, tenant, jobID)
		if err == nil {
			err = s.put(ctx, j)
		} else if errors.Is(err, ErrUnknown) {
			err = nil // what is left of it fires once and finds nothing
		}
		if err == nil {
			err = s.write(ctx, table.Op{Kind: table.Delete, Key: it.Key})
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		n++
	}
	return n, failed
}

// dueLimit is how many due jobs are looked at in one go, of each shard.
const dueLimit = 100

// Due lists jobs of all tenants that somebody should have looked at by a time, the
// longest due first. There may be more.
func (s *Service) Due(ctx context.Context, by time.Time) ([]Slot, error) {
	var parts [dueShards][]Slot
	g, gctx := errgroup.WithContext(ctx)
	for n := range dueShards {
		g.Go(func() error {
			page, err := s.Store.Query(gctx, table.Query{Table: table.Jobs, PK: duePK(n), To: dueSK(by.UnixMilli() + 1), Limit: dueLimit})
			if err != nil {
				return fmt.Errorf("list due jobs: %w", err)
			}
			for _, it := range page.Items {
				if slot, ok := slotOfDue(it.Key.SK); ok {
					parts[n] = append(parts[n], slot)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return merge(parts[:]), nil
}
