package cron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/shared/table"
)

// Add makes a job. Where the definition has a declaration key that a job of the tenant
// has already, that job is changed to it, and keeps its state. Errors: *FieldError,
// ErrTooMany.
func (s *Service) Add(ctx context.Context, tenant string, p *protocol.CronAddParams) (*Job, error) {
	jobID := s.NewID()
	if p.DeclarationKey != "" {
		jobID = id.Hash("declared job", tenant, p.DeclarationKey)
		j, err := s.declare(ctx, tenant, jobID, p)
		if !errors.Is(err, ErrUnknown) {
			return j, err
		}
	}
	j := &Job{Tenant: tenant, CronJob: define(p)}
	now := s.now()
	j.ID, j.CreatedAtMs, j.UpdatedAtMs, j.Rev = jobID, now.UnixMilli(), now.UnixMilli(), 1
	complete(&j.CronJob, now)
	if err := s.check(j); err != nil {
		return nil, err
	}
	if j.webhook() != "" {
		j.Secret = newSecret()
	}
	if err := s.replan(j, true); err != nil {
		return nil, err
	}
	known, err := s.ids(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if len(known) >= MaxJobs {
		return nil, ErrTooMany
	}
	j.due = j.dueAt()
	item, err := j.item()
	if err != nil {
		return nil, err
	}
	ops := append([]table.Op{
		{Kind: table.Put, Key: jobKey(tenant, j.ID), Item: item, If: table.NotExists()},
		{Kind: table.Put, Key: listKey(tenant, j.ID), Item: table.Attrs{}},
	}, s.move(j, 0)...)
	err = s.write(ctx, ops...)
	ce, taken := table.Failed(err)
	switch {
	case taken && p.DeclarationKey != "" && !ce.Ambiguous:
		return s.declare(ctx, tenant, jobID, p)
	case taken && ce.Ambiguous: // it is this very job (C5)
	case err != nil:
		return nil, err
	}
	s.arm(ctx, j, 0)
	return j, nil
}

// declare changes a job to what a declaration of it says.
func (s *Service) declare(ctx context.Context, tenant, jobID string, p *protocol.CronAddParams) (*Job, error) {
	return s.edit(ctx, tenant, jobID, func(j *Job) (outcome, []entry, error) {
		was := j.CronJob
		def := define(p)
		def.ID, def.CreatedAtMs, def.UpdatedAtMs, def.State = was.ID, was.CreatedAtMs, was.UpdatedAtMs, was.State
		if p.Enabled == nil {
			def.Enabled = was.Enabled
		}
		again := !sameSchedule(was.Schedule, def.Schedule)
		if !again {
			def.Schedule = was.Schedule
		}
		j.CronJob = def
		return s.redefined(j, was, again)
	})
}

// Update changes a job. Errors: ErrUnknown, ErrChanged, *FieldError.
func (s *Service) Update(ctx context.Context, tenant string, p *protocol.CronUpdateParams) (*Job, error) {
	return s.edit(ctx, tenant, p.ID, func(j *Job) (outcome, []entry, error) {
		if p.ExpectedConfigRevision != "" && p.ExpectedConfigRevision != strconv.FormatInt(j.Rev, 10) {
			return keep, nil, ErrChanged
		}
		was := j.CronJob
		again := patch(&j.CronJob, &p.Patch)
		if p.Patch.Enabled != nil {
			j.Enabled = *p.Patch.Enabled
		}
		return s.redefined(j, was, again)
	})
}

// redefined finishes a change of a job's definition. Another schedule, or being
// switched on, decides anew when it is due; other changes do not.
func (s *Service) redefined(j *Job, was protocol.CronJob, schedule bool) (outcome, []entry, error) {
	now := s.now()
	complete(&j.CronJob, now)
	if err := s.check(j); err != nil {
		return keep, nil, err
	}
	if j.webhook() != "" && j.Secret == "" {
		j.Secret = newSecret()
	}
	if j.Enabled && !was.Enabled {
		j.State.AutoDisabled, j.State.ConsecutiveErrors, j.State.ScheduleErrorCount, j.Retries = nil, 0, 0, 0
	}
	if schedule || j.Enabled && !was.Enabled {
		if err := s.replan(j, schedule); err != nil {
			return keep, nil, err
		}
	}
	j.Rev++
	j.UpdatedAtMs = now.UnixMilli()
	return write, nil, nil
}

// replan decides when a job is due next, from now on. A schedule whose slots are all
// in the past is refused where it is new.
func (s *Service) replan(j *Job, fresh bool) error {
	sched, err := s.schedule(j)
	if err != nil {
		return err
	}
	now := s.now()
	next, ok := sched.Next(now)
	j.Recompute, j.Retries = false, 0
	if !ok {
		j.State.NextRunAtMs = 0
		switch {
		case sched.recurs():
			return field("schedule.expr", "has no run in the next %d years", searchYears)
		case fresh && j.Enabled:
			return field("schedule.at", "is in the past")
		}
		return nil
	}
	j.LastSlot = min(max(j.LastSlot, 0), next.UnixMilli()-1)
	j.State.NextRunAtMs = next.UnixMilli()
	return nil
}

// Remove takes a job away. Its run, if one is under way, goes on; its history stays
// for its time.
func (s *Service) Remove(ctx context.Context, tenant, jobID string) error {
	_, err := s.edit(ctx, tenant, jobID, func(*Job) (outcome, []entry, error) { return remove, nil, nil })
	return err
}

// List gives all jobs of a tenant, in the order of their ids.
func (s *Service) List(ctx context.Context, tenant string) ([]*Job, error) {
	ids, err := s.ids(ctx, tenant)
	if err != nil {
		return nil, err
	}
	jobs := make([]*Job, len(ids))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, jobID := range ids {
		g.Go(func() (err error) {
			jobs[i], err = s.Get(gctx, tenant, jobID)
			if errors.Is(err, ErrUnknown) {
				return nil // removed meanwhile
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(jobs, func(j *Job) bool { return j == nil }), nil
}

func (s *Service) ids(ctx context.Context, tenant string) (ids []string, err error) {
	q := table.Query{Table: table.Jobs, PK: listPK(tenant)}
	for {
		page, err := s.Store.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("list jobs: %w", err)
		}
		for _, it := range page.Items {
			ids = append(ids, it.Key.SK)
		}
		if page.Next == "" {
			return ids, nil
		}
		q.After = page.Next
	}
}
