package cron

import (
	"context"
	"errors"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/timeout"
)

// States of a run in the history.
const (
	statusOK      = "ok"
	statusError   = "error"
	statusSkipped = "skipped"
)

// Pauses after errors, by how many there were in a row; measured from the end of the
// run.
var backoff = []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

const (
	maxRetries     = 3  // of a transient error, after the first pauses
	maxErrors      = 10 // in a row; then the job is switched off
	maxNoSchedule  = 3  // times that the schedule could not be computed; then likewise
	scheduleRetry  = time.Minute
	reasonFailures = "consecutive-failures"
	reasonSchedule = "schedule-errors"
)

// transient are the classes of errors that another try may not meet.
var transient = map[string]bool{"rate_limit": true, "overloaded": true, "network": true, "timeout": true, "idle_timeout": true, "server_error": true}

// Ended writes the end of a run into its job and the job's history, and sends its
// webhook off. It is called before the run leaves the unsettled ones, again after a
// crash, and changes nothing the second time (L5).
func (s *Service) Ended(ctx context.Context, st run.Status) error {
	jobID, _, ok := JobOf(st.RunID)
	if st.Method != Method || !ok || st.Outcome == nil {
		return nil
	}
	_, err := s.edit(ctx, st.Tenant, jobID, func(j *Job) (outcome, []entry, error) {
		if j.Running == nil || j.Running.RunID != st.RunID {
			return keep, nil, nil
		}
		entries, err := s.finished(ctx, j, &st)
		if err != nil {
			return keep, nil, err
		}
		if j.gone() {
			return remove, entries, nil
		}
		return write, entries, nil
	})
	if errors.Is(err, ErrUnknown) {
		return nil // removed while it ran
	}
	return err
}

// tells says whether the end of a run is worth telling: a run that chose to say nothing
// is not.
func tells(st *run.Status) bool { return st.Outcome.Kind != run.OK || st.Outcome.Text != "" }

// gone says whether the job was for one run that has been.
func (j *Job) gone() bool {
	return j.Schedule.Kind == kindAt && !j.Enabled && j.DeleteAfterRun && j.State.LastRunStatus == statusOK && j.State.NextRunAtMs == 0
}

// result is the end of a run as a job sees it.
type result struct {
	status, text, reason string
	counts               bool // an error of the job, not a stop by somebody
}

func resultOf(st *run.Status) result {
	o := st.Outcome
	switch o.Kind {
	case run.OK:
		return result{status: statusOK}
	case run.Aborted:
		return result{status: statusError, text: "stopped (" + o.StopReason + ")", reason: "aborted"}
	case run.Timeout:
		return result{status: statusError, text: timeout.CronText(o.Error), reason: "timeout", counts: true}
	case run.Failed:
	}
	return result{status: statusError, text: o.Error, reason: o.ErrorKind, counts: true}
}

// finished takes the mark of a run that has ended out of its job, decides when the job
// is due next, and sends the webhook off. It gives the entries of the history.
func (s *Service) finished(ctx context.Context, j *Job, st *run.Status) ([]entry, error) {
	r, res, now := *j.Running, resultOf(st), s.now()
	ended := time.UnixMilli(st.EndedAt)
	began := st.StartedAt
	if began == 0 {
		began = st.EndedAt
	}
	j.Running = nil
	state := &j.State
	state.LastRunAtMs, state.LastDurationMs = began, st.EndedAt-began
	state.LastRunStatus, state.LastError, state.LastErrorReason = res.status, cut(res.text, maxError), res.reason
	state.ConsecutiveSkipped = 0
	delivery := notRequested
	if j.webhook() != "" && tells(st) {
		delivery = unknownYet
		// Before the mark goes: a webhook may come twice, and is never forgotten.
		if err := s.sendLater(ctx, j, st); err != nil {
			return nil, err
		}
	}
	state.LastDeliveryStatus, state.LastDelivered = delivery, nil
	switch {
	case res.counts:
		state.ConsecutiveErrors++
	case res.status == statusOK:
		state.ConsecutiveErrors = 0
	}
	sched, err := s.schedule(j)
	if err != nil {
		s.noSchedule(j, now, err)
	} else {
		s.replanAfter(j, &r, res, sched, ended)
	}
	e := entryOf(j, st, res)
	e.DeliveryStatus = delivery
	entries := []entry{e}
	if err == nil && sched.recurs() && j.Enabled {
		if e, some := j.leftOut(sched, &r, ended); some {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// replanAfter decides when a job is due after a run. What came between the end of the
// run and now is due.
func (s *Service) replanAfter(j *Job, r *Running, res result, sched Schedule, ended time.Time) {
	state := &j.State
	if res.counts && state.ConsecutiveErrors >= maxErrors && j.Enabled {
		s.disable(j, reasonFailures, ended)
		return
	}
	if !j.Enabled || r.Forced && state.NextRunAtMs != 0 && (!sched.recurs() || state.NextRunAtMs > ended.UnixMilli()) {
		return
	}
	natural, more := sched.Next(later(ended, time.UnixMilli(j.LastSlot)))
	if res.counts && transient[res.reason] && j.Retries < maxRetries && j.Enabled {
		again := ended.Add(backoff[j.Retries])
		if !more || again.Before(natural) {
			j.Retries++
			state.NextRunAtMs = again.UnixMilli()
			return
		}
	}
	j.Retries = 0
	if !sched.recurs() {
		if !more { // the one run has been
			j.Enabled, state.NextRunAtMs = false, 0
		}
		return
	}
	state.NextRunAtMs = 0
	if more {
		if res.counts {
			natural = later(natural, ended.Add(backoff[min(state.ConsecutiveErrors, len(backoff))-1]))
		}
		state.NextRunAtMs = natural.UnixMilli()
	}
}

// leftOut is the entry of slots that came while the job's run was under way.
func (j *Job) leftOut(sched Schedule, r *Running, ended time.Time) (e entry, some bool) {
	first, ok := sched.Next(time.UnixMilli(max(j.LastSlot, r.Since)))
	if !ok {
		return e, false
	}
	d, some := dueSlots(sched, first, ended)
	if !some {
		return e, false
	}
	e = missed(j, first, ended)
	e.Error, e.ErrorReason = "the run before was still under way", ReasonRunning
	e.Slots = d.count + 1
	j.LastSlot = d.newest.UnixMilli()
	j.State.ConsecutiveSkipped = int(min(e.Slots, 1<<30))
	return e, true
}

// interrupted takes the mark of a run out of its job that nobody works at and nobody
// will end: never silently as done.
func (s *Service) interrupted(j *Job, st *run.Status) []entry {
	r := *j.Running
	j.Running = nil
	e := entry{CronEntry: protocol.CronEntry{
		TS: s.now().UnixMilli(), JobID: j.ID, Action: "finished", Status: statusError, RunID: r.RunID, RunAtMs: r.Since,
		Error: "interrupted: the run's process died", ErrorReason: "interrupted", DeliveryStatus: notRequested,
	}, slot: r.Slot}
	if st != nil {
		e.SessionKey, e.SessionID = st.SessionKey, st.SessionID
	}
	j.State.LastRunAtMs, j.State.LastRunStatus = r.Since, statusError
	j.State.LastError, j.State.LastErrorReason = e.Error, e.ErrorReason
	return []entry{e}
}

// skip puts a job off whose slot is not run.
func (j *Job) skip(sched Schedule, now time.Time) {
	j.State.LastRunStatus, j.State.ConsecutiveErrors, j.Retries = statusSkipped, 0, 0
	j.State.ConsecutiveSkipped++
	j.plan(sched, now)
	if !sched.recurs() {
		j.Enabled = false
	}
}

// noSchedule notes that a schedule could not be computed, which was once: its zone is
// gone from this machine.
func (s *Service) noSchedule(j *Job, now time.Time, why error) {
	j.State.ScheduleErrorCount++
	j.State.LastError = cut(why.Error(), maxError)
	s.Log.Error("schedule not computed", "job", j.ID, "err", why)
	if j.State.ScheduleErrorCount >= maxNoSchedule {
		s.disable(j, reasonSchedule, now)
		return
	}
	j.Recompute, j.State.NextRunAtMs = true, now.Add(scheduleRetry).UnixMilli()
}

// disable switches a job off that fails again and again.
func (s *Service) disable(j *Job, why string, now time.Time) {
	s.Log.Warn("job switched off", "job", j.ID, "reason", why, "errors", j.State.ConsecutiveErrors)
	j.Enabled, j.State.NextRunAtMs, j.Retries = false, 0, 0
	j.State.AutoDisabled = &protocol.CronAutoDisabled{Reason: why, AtMs: now.UnixMilli(), ConsecutiveErrors: j.State.ConsecutiveErrors}
}
