package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"laneway/shared/awsscheduler"
	"laneway/shared/cron"
	"laneway/shared/session"
)

// Firer fires the slots of jobs. *cron.Service is one.
type Firer interface {
	Fire(ctx context.Context, slot cron.Slot) (cron.Fired, error)
}

// Schedule serves the events of jobs' schedules.
type Schedule struct {
	Jobs Firer
	Log  *slog.Logger
}

// ErrSlotEvent is an event that is not of a job's schedule.
var ErrSlotEvent = errors.New("adapter: not an event of a job's schedule")

// Handle implements the function's handler. An error means that the event should come
// again; what it fires is one run all the same.
func (s *Schedule) Handle(ctx context.Context, raw json.RawMessage) error {
	slot, err := slotOf(raw)
	if err != nil {
		return err
	}
	f, err := s.Jobs.Fire(ctx, slot)
	switch {
	case errors.Is(err, cron.ErrUnknown):
		s.Log.Info("event of a job that is no more", "job", slot.JobID)
		return nil
	case err != nil:
		return err
	}
	s.Log.Info("slot", "job", slot.JobID, "run", f.RunID, "repeat", f.Repeat, "reason", f.Reason)
	return nil
}

// slotOf reads an event. An endpoint that does not fill in the time leaves it zero:
// which slot it is, the job's schedule says.
func slotOf(raw json.RawMessage) (cron.Slot, error) {
	var e awsscheduler.Event
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return cron.Slot{}, fmt.Errorf("%w: %w", ErrSlotEvent, err)
	}
	if !session.ValidTenant(e.Tenant) || e.JobID == "" {
		return cron.Slot{}, fmt.Errorf("%w: tenant and jobId are required", ErrSlotEvent)
	}
	slot := cron.Slot{Tenant: e.Tenant, JobID: e.JobID}
	if strings.HasPrefix(e.Slot, "<") {
		return slot, nil
	}
	at, err := time.Parse(time.RFC3339Nano, e.Slot)
	if err != nil {
		return cron.Slot{}, fmt.Errorf("%w: slot is no time", ErrSlotEvent)
	}
	slot.At = at
	return slot, nil
}
