package cron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/timeout"
)

// Method is the method of scheduled runs in their records.
const Method = "cron"

// Why a job was not run.
const (
	ReasonRunning  = "already-running"
	ReasonNotDue   = "not-due"
	ReasonDisabled = "disabled"
	ReasonMissed   = "missed" // by the job's policy
	ReasonDecided  = "already-decided"
)

// Fired says what became of a slot or of a call to run a job. With RunID and without
// Reason a run is accepted; with ReasonRunning the run is the one under way, and Age how
// long it has been.
type Fired struct {
	RunID  string
	Repeat bool // the run had been accepted before
	Reason string
	Age    time.Duration
}

// Fire looks at a job because of one of its slots, and accepts the run that is due. A
// slot that was decided before, because its event came twice, changes nothing; neither
// does one that the schedule has no more. A zero time only says: look. Errors:
// ErrUnknown, and what makes it worth trying again.
func (s *Service) Fire(ctx context.Context, slot Slot) (Fired, error) {
	var f Fired
	j, err := s.edit(ctx, slot.Tenant, slot.JobID, func(j *Job) (what outcome, entries []entry, err error) {
		f, what, entries, err = s.decide(ctx, j, slot.At)
		return what, entries, err
	})
	if err != nil || f.Reason != "" || f.Repeat {
		return f, err
	}
	return s.accept(ctx, j)
}

// decide says what is to become of a job at a look at it, and marks the run that is to
// be accepted.
func (s *Service) decide(ctx context.Context, j *Job, at time.Time) (f Fired, what outcome, entries []entry, err error) {
	now := s.now()
	if r := j.Running; r != nil && !r.Accepted {
		return Fired{RunID: r.RunID}, keep, nil, nil // it was marked, and its marker died: go on
	}
	if at.Sub(now) > 0 && at.Sub(now) < time.Minute {
		now = at // whoever keeps the schedule has a faster clock
	}
	next := time.UnixMilli(j.State.NextRunAtMs)
	switch {
	case !j.Enabled:
		return Fired{Reason: ReasonDisabled}, keep, nil, nil
	case j.State.NextRunAtMs == 0 || next.After(now):
		if !at.IsZero() && at.UnixMilli() <= j.LastSlot {
			return Fired{RunID: RunID(j.ID, at), Repeat: true, Reason: ReasonDecided}, keep, nil, nil
		}
		return Fired{Reason: ReasonNotDue}, keep, nil, nil
	}
	sched, err := s.schedule(j)
	if err != nil {
		s.noSchedule(j, now, err)
		return Fired{Reason: ReasonNotDue}, write, nil, nil
	}
	if j.Recompute {
		j.Recompute, j.State.ScheduleErrorCount = false, 0
		j.plan(sched, now)
		return Fired{Reason: ReasonNotDue}, write, nil, nil
	}
	if j.Running != nil {
		busy, entry, err := s.lookAtRun(ctx, j)
		if err != nil {
			return f, keep, nil, err
		}
		if busy {
			// Left out; the end of the run says how many were.
			f = Fired{RunID: j.Running.RunID, Reason: ReasonRunning, Age: now.Sub(time.UnixMilli(j.Running.Since))}
			if j.plan(sched, now.Add(lookAgain)); !sched.recurs() {
				j.State.NextRunAtMs = now.Add(lookAgain).UnixMilli() // its one slot is not left out
			}
			return f, write, nil, nil
		}
		entries = append(entries, entry...)
		if next = time.UnixMilli(j.State.NextRunAtMs); !j.Enabled || next.After(now) {
			return Fired{Reason: ReasonNotDue}, write, entries, nil // its end put the job off
		}
	}
	d, _ := dueSlots(sched, next, now)
	rules, err := parsePolicy(j.Missed)
	if err != nil {
		return f, keep, nil, err
	}
	j.LastSlot = d.newest.UnixMilli()
	for i, slot := range d.before {
		e := missed(j, slot, now)
		if more := d.count - int64(len(d.before)); i == 0 && more > 0 {
			e.Slots = more + 1
		}
		entries = append(entries, e)
	}
	if !rules.allows(now.Sub(d.newest)) {
		j.skip(sched, now)
		return Fired{Reason: ReasonMissed}, write, append(entries, missed(j, d.newest, now)), nil
	}
	j.mark(d.newest, now, false)
	return Fired{RunID: j.Running.RunID}, write, entries, nil
}

// lookAgain is how soon a job is looked at again whose run is still under way.
const lookAgain = 30 * time.Second

// minGap is the least time between two runs of a job.
const minGap = 2 * time.Second

// mark writes into the job that a run is to be accepted.
func (j *Job) mark(slot, now time.Time, forced bool) {
	j.Running = &Running{RunID: RunID(j.ID, slot), Slot: slot.UnixMilli(), Since: now.UnixMilli(), Forced: forced}
}

// plan sets the next look at a job to its first slot after a time.
func (j *Job) plan(sched Schedule, after time.Time) {
	next, ok := sched.Next(after)
	j.State.NextRunAtMs = 0
	if ok {
		j.State.NextRunAtMs = next.UnixMilli()
	}
}

// accept makes the run that is marked in a job, and then says so there. It is called
// again by others where a process died on the way; the run is one all the same.
func (s *Service) accept(ctx context.Context, j *Job) (Fired, error) {
	r := j.Running
	call, err := s.call(j)
	if err != nil {
		return Fired{}, err
	}
	acc, err := s.Lanes.Accept(ctx, call)
	if _, taken := errors.AsType[*lane.ConflictError](err); taken {
		return Fired{}, fmt.Errorf("cron: run %s is taken by another request", r.RunID)
	}
	if err != nil {
		return Fired{}, err
	}
	_, err = s.edit(ctx, j.Tenant, j.ID, func(j *Job) (outcome, []entry, error) {
		if j.Running == nil || j.Running.RunID != r.RunID || j.Running.Accepted {
			return keep, nil, nil // it has ended already, or somebody else was as fast
		}
		j.Running.Accepted = true
		sched, err := s.schedule(j)
		if err != nil {
			s.noSchedule(j, s.now(), err)
			return write, nil, nil
		}
		if r.Forced && (!sched.recurs() || j.State.NextRunAtMs > s.now().UnixMilli()) {
			return write, nil, nil // out of turn: the cadence stays
		}
		j.plan(sched, later(time.UnixMilli(j.LastSlot), s.now().Add(minGap)))
		return write, nil, nil
	})
	if errors.Is(err, ErrUnknown) {
		err = nil // removed meanwhile: its last run goes on
	}
	return Fired{RunID: r.RunID, Repeat: acc.Repeat}, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// call is the run of a job as the gateway would accept it.
func (s *Service) call(j *Job) (lane.Call, error) {
	key, fresh, err := target(j)
	if err != nil {
		return lane.Call{}, err
	}
	p := &j.Payload
	in := run.Input{Message: p.Message, Model: p.Model.Value, Thinking: p.Thinking.Value, TimeoutMs: timeout.CronMs(nil), Label: j.Name}
	if p.Kind == payloadEvent {
		in.Message = p.Text
	}
	in.Fallbacks = p.Fallbacks
	if p.TimeoutSeconds.Set && !p.TimeoutSeconds.Null {
		in.TimeoutMs = timeout.CronMs(&p.TimeoutSeconds.Value)
	}
	if p.LightContext != nil && *p.LightContext {
		in.PromptMode = "minimal"
	}
	if fresh {
		in.SessionID = s.NewID()
	}
	runID := j.Running.RunID
	return lane.Call{Internal: true, Run: run.Status{
		Ref: run.RefOf(j.Tenant, runID), RunID: runID, SessionKey: key, AgentID: session.AgentOf(key),
		// Nobody but this package makes such ids, so the id is the request.
		Lane: string(queue.Cron), Method: Method, RequestHash: id.Hash(Method, runID), Input: in,
	}}, nil
}

// lookAtRun looks at the run that is marked in a job. busy is true while it is under
// way. Otherwise the mark is gone from the job, which is as the run's end made it, and
// entries says what the end was.
func (s *Service) lookAtRun(ctx context.Context, j *Job) (busy bool, entries []entry, err error) {
	r := *j.Running
	ref := run.RefOf(j.Tenant, r.RunID)
	st, err := run.Load(ctx, s.Store, ref)
	switch {
	case errors.Is(err, run.ErrUnknown):
		return false, s.interrupted(j, nil), nil
	case err != nil:
		return false, nil, err
	case st.Done():
		// It ended, and whoever tells that has not come to it.
		entries, err = s.finished(ctx, j, &st)
		return false, entries, err
	}
	m, err := session.LoadMeta(ctx, s.Store, session.Ref{Tenant: j.Tenant, Key: st.SessionKey})
	if err != nil {
		return false, nil, err
	}
	// A holder that is dead for certain: its lease is over, and it did not give it up.
	if m.Active != ref.Run || m.Owner == "" || m.Owned(s.Clock.Now(), s.Times.Slack) {
		return true, nil, nil
	}
	if _, err := s.Lanes.StopRun(ctx, lane.Stop{Ref: m.Ref, RunID: r.RunID, Reason: "superseded"}); err != nil {
		return false, nil, err
	}
	return false, s.interrupted(j, &st), nil
}

// Modes of Run.
const (
	RunForce     = "force" // whether or not it is due or enabled; the default
	RunDue       = "due"
	RunIfEnabled = "if-enabled"
)

// Run runs a job out of turn, now. The schedule stays as it is.
func (s *Service) Run(ctx context.Context, tenant, jobID, mode string) (Fired, error) {
	if mode == RunDue {
		return s.Fire(ctx, Slot{tenant, jobID, time.Time{}})
	}
	var f Fired
	j, err := s.edit(ctx, tenant, jobID, func(j *Job) (outcome, []entry, error) {
		now := s.now()
		f = Fired{}
		if mode == RunIfEnabled && !j.Enabled {
			f.Reason = ReasonDisabled
			return keep, nil, nil
		}
		var entries []entry
		if r := j.Running; r != nil {
			age := now.Sub(time.UnixMilli(r.Since))
			busy := !r.Accepted && age < intentWithin
			if !busy && !r.Accepted {
				return keep, nil, nil // what was marked is carried out now
			}
			if !busy {
				var err error
				if busy, entries, err = s.lookAtRun(ctx, j); err != nil {
					return keep, nil, err
				}
			}
			if busy {
				f = Fired{RunID: r.RunID, Reason: ReasonRunning, Age: age}
				return keep, nil, nil
			}
		}
		j.mark(now, now, true)
		return write, entries, nil
	})
	if err != nil || f.Reason != "" {
		return f, err
	}
	return s.accept(ctx, j)
}
