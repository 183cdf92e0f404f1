// Package awsscheduler fires the slots of jobs by EventBridge Scheduler.
//
// Guarantees: each job that is due has one schedule in the stack's group, for its next
// slot, which is gone by itself once it has fired; putting and deleting may be repeated.
// A slot is fired within a minute after its time, at least once.
//
// The schedule is one for a single time, not a recurring one: what a slot is, on days
// on which clocks change too, is decided in one place for all editions, and pauses
// after errors need no schedule of another kind. A schedule is named by its slot, and
// never changed: one that is updated while its event is under way may be taken away
// with the old one.
package awsscheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"laneway/shared/clock"
	"laneway/shared/cron"
	"laneway/shared/id"
)

// API is what is used of EventBridge Scheduler. *scheduler.Client is one.
type API interface {
	CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, opts ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error)
	DeleteSchedule(ctx context.Context, in *scheduler.DeleteScheduleInput, opts ...func(*scheduler.Options)) (*scheduler.DeleteScheduleOutput, error)
}

// Config of a Scheduler. Fields without a note are required.
type Config struct {
	Group     string // of the stack
	RoleARN   string // that a schedule takes to call its target
	TargetARN string // the function that fires slots
	DeadARN   string // queue of events that could not be delivered; empty: none

	Clock clock.Clock // nil: the machine's
}

// Scheduler implements cron.Scheduler.
type Scheduler struct {
	Config
	api API
}

var _ cron.Scheduler = (*Scheduler)(nil)

// New checks c.
func New(api API, c Config) (*Scheduler, error) {
	if c.Group == "" || c.RoleARN == "" || c.TargetARN == "" {
		return nil, errors.New("awsscheduler: group, role and target are required")
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	return &Scheduler{c, api}, nil
}

// Event is what the target gets. Slot is the time of the schedule where the endpoint
// fills it in, else a text in angle brackets.
type Event struct {
	Tenant      string `json:"tenant"`
	JobID       string `json:"jobId"`
	Slot        string `json:"slot"`
	ExecutionID string `json:"executionId"`
	Attempt     string `json:"attempt"`
}

// What EventBridge Scheduler fills in.
const (
	scheduledTime = "<aws.scheduler.scheduled-time>"
	executionID   = "<aws.scheduler.execution-id>"
	attemptNumber = "<aws.scheduler.attempt-number>"
)

// What a failed delivery is worth: later than that the watchdog has fired the slot.
const (
	maxAttempts = 5
	maxAge      = 10 * time.Minute
)

// input is the event of a slot; the angle brackets must stay what they are.
func input(s cron.Slot) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(Event{s.Tenant, s.JobID, scheduledTime, executionID, attemptNumber})
	return string(bytes.TrimSpace(b.Bytes())), err
}

// name is a slot's schedule: at most 64 of the characters that a name may have.
func name(s cron.Slot) string {
	return id.Hash(s.Tenant, s.JobID) + "-" + strconv.FormatInt(s.At.UnixMilli(), 10)
}

// Put implements cron.Scheduler.
func (s *Scheduler) Put(ctx context.Context, slot cron.Slot) error {
	body, err := input(slot)
	if err != nil {
		return err
	}
	at := slot.At.UTC()
	if soonest := s.Clock.Now().UTC().Add(time.Second); at.Before(soonest) {
		at = soonest // a time that has passed would be refused, or never come
	}
	if whole := at.Truncate(time.Second); whole.Before(at) {
		at = whole.Add(time.Second) // never early
	}
	in := &scheduler.CreateScheduleInput{
		Name: aws.String(name(slot)), GroupName: &s.Group,
		ScheduleExpression:    aws.String(at.Format("at(2006-01-02T15:04:05)")),
		FlexibleTimeWindow:    &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion: types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: &s.TargetARN, RoleArn: &s.RoleARN, Input: &body,
			RetryPolicy: &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(maxAttempts), MaximumEventAgeInSeconds: aws.Int32(int32(maxAge.Seconds()))},
		},
	}
	if s.DeadARN != "" {
		in.Target.DeadLetterConfig = &types.DeadLetterConfig{Arn: &s.DeadARN}
	}
	_, err = s.api.CreateSchedule(ctx, in)
	if _, there := errors.AsType[*types.ConflictException](err); there {
		return nil
	}
	if err != nil {
		return fmt.Errorf("put schedule: %w", err)
	}
	return nil
}

// Delete implements cron.Scheduler.
func (s *Scheduler) Delete(ctx context.Context, slot cron.Slot) error {
	_, err := s.api.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: aws.String(name(slot)), GroupName: &s.Group})
	if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete schedule: %w", err)
	}
	return nil
}
