// Package cron is scheduled runs: jobs, their slots, and what becomes of them.
//
// Guarantees: a slot of a job is one run, however often it is fired, by whomever and
// wherever a process died meanwhile: its run id is cron:<jobId>:<slot in ms>, and the
// accept of a run answers from its record (A3). Two runs of a job never overlap: the
// one that is under way is marked in the job before it is accepted, and a slot that
// comes meanwhile is left out. A slot that passed while nothing ran is run or left out
// as the job's policy says, and is in the history either way. The end of a run reaches
// the job before the run is settled (L5).
//
// Like a queue message, an event of a scheduler is only a wake-up: look at this job.
// When a job is due stands in the tables, under the time at which somebody must look at
// it, so a wake-up that is lost, late, early or repeated costs time and never a run.
package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/queue"
	"laneway/shared/session"
	"laneway/shared/table"
)

// What callers branch on.
var (
	// ErrUnknown is a job id without a job under the tenant.
	ErrUnknown = errors.New("cron: unknown job")
	// ErrChanged is a change that expected another revision of the job.
	ErrChanged = errors.New("cron: job was changed meanwhile")
	// ErrTooMany is a tenant with as many jobs as it may have.
	ErrTooMany = fmt.Errorf("cron: at most %d jobs", MaxJobs)
	// ErrUnavailable: the store did not decide in time; try again.
	ErrUnavailable = lane.ErrUnavailable
)

// MaxJobs bounds the jobs of a tenant.
const MaxJobs = 1000

// FieldError is a member of a job that cannot be as it is. Field is its path, such as
// schedule.expr.
type FieldError struct{ Field, Text string }

func (e *FieldError) Error() string { return e.Field + " " + e.Text }

func field(name, format string, args ...any) *FieldError {
	return &FieldError{name, fmt.Sprintf(format, args...)}
}

// Slot is a time at which a job is to be looked at.
type Slot struct {
	Tenant, JobID string
	At            time.Time
}

// Scheduler wakes somebody who fires a job at a time: EventBridge Scheduler on AWS, a
// ticker on one machine. It may forget, be late, or fire twice.
type Scheduler interface {
	// Put arranges that the slot is fired at its time, at once where that has passed.
	// The same slot again changes nothing.
	Put(ctx context.Context, s Slot) error
	// Delete takes a slot back. One that is not there is fine.
	Delete(ctx context.Context, s Slot) error
}

// Accepter makes a call a run. *lane.Service is one.
type Accepter interface {
	Accept(ctx context.Context, c lane.Call) (lane.Accepted, error)
	StopRun(ctx context.Context, q lane.Stop) (bool, error)
}

// Config of a Service. Fields without a note are required.
type Config struct {
	Store  table.Store
	Lanes  Accepter
	Timers queue.Timers

	Scheduler Scheduler      // nil: somebody else looks for what is due
	Zone      *time.Location // of expressions that name none; nil: UTC
	Clock     clock.Clock    // nil: the machine's
	NewID     id.Source      // nil: UUIDs
	Times     claim.Times
	Log       *slog.Logger // nil: the default logger
	// HTTP posts webhooks; nil: PublicClient, which reaches public addresses only.
	HTTP *http.Client
}

// Service keeps jobs and fires them.
type Service struct{ Config }

// New checks c and fills its defaults.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Lanes == nil || c.Timers == nil {
		return nil, errors.New("cron: store, lanes and timers are required")
	}
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.NewID == nil {
		c.NewID = id.UUID
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.HTTP == nil {
		c.HTTP = PublicClient()
	}
	c.Times = c.Times.WithDefaults()
	return &Service{c}, nil
}

// now is the time as jobs keep it.
func (s *Service) now() time.Time { return s.Clock.Now().Truncate(time.Millisecond) }

// schedule reads a job's schedule.
func (s *Service) schedule(j *Job) (Schedule, error) {
	return NewSchedule(j.Schedule, j.ID, s.Zone)
}

// agentOf is the agent that a job's runs are of.
func agentOf(j *Job) string {
	if j.AgentID != "" {
		return j.AgentID
	}
	return session.DefaultAgent
}
