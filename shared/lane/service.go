// Package lane is the order of work: how a message becomes a run, what a wake-up
// means, how runs are stopped, and what follows their end.
//
// Guarantees: what happened is in the tables and a queue message is only a wake-up,
// so a message that was accepted is run once and in accept order whatever is lost,
// repeated or late (A1, A3, O1); a run ends once and everybody who waits for it is
// answered before it leaves the session's set of unsettled runs (L5); whoever finds
// work that nobody does sends a wake-up (A2).
package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/queue"
	"laneway/shared/session"
	"laneway/shared/table"
)

// What callers branch on.
var (
	// ErrFull: as many runs wait in the session as may; try again later.
	ErrFull = errors.New("lane: too many runs wait in this session")
	// ErrUnavailable: the store did not decide in time; try again with the same key.
	ErrUnavailable = errors.New("lane: store not available")
)

// Service does the work of the lanes on the tables.
type Service struct {
	Store  table.Store
	Queue  queue.Sender
	Timers queue.Timers
	Clock  clock.Clock // nil: the machine's
	NewID  id.Source   // nil: UUIDs
	Times  claim.Times
	Log    *slog.Logger // nil: the default logger
	// Metrics counts steers that fell back; nil: the log alone has them.
	Metrics Metrics

	seen *seqCache
}

// New fills the defaults of a Service.
func New(s Service) *Service {
	n := &Service{Store: s.Store, Queue: s.Queue, Timers: s.Timers, Clock: s.Clock, NewID: s.NewID, Times: s.Times.WithDefaults(), Log: s.Log, Metrics: s.Metrics, seen: &seqCache{}}
	if n.Clock == nil {
		n.Clock = clock.System{}
	}
	if n.NewID == nil {
		n.NewID = id.UUID
	}
	if n.Log == nil {
		n.Log = slog.Default()
	}
	return n
}

// Wakeup is a queue message: look at this session.
type Wakeup struct {
	Tenant string `json:"t"`
	Key    string `json:"k"`
	Lane   string `json:"l"`
	Reason string `json:"r,omitempty"`
}

// Ref is the session to look at.
func (w Wakeup) Ref() session.Ref { return session.Ref{Tenant: w.Tenant, Key: w.Key} }

// ParseWakeup reads a queue message's body.
func ParseWakeup(body []byte) (Wakeup, error) {
	var w Wakeup
	if err := json.Unmarshal(body, &w); err != nil {
		return w, fmt.Errorf("wake-up: %w", err)
	}
	if w.Tenant == "" || w.Key == "" || w.Lane == "" {
		return w, errors.New("wake-up: tenant, session key and lane are required")
	}
	return w, nil
}

func (s *Service) send(ctx context.Context, ref session.Ref, lane, reason, group, dedup string) error {
	body, err := json.Marshal(Wakeup{ref.Tenant, ref.Key, lane, reason})
	if err != nil {
		return err
	}
	return s.Queue.Send(ctx, queue.Lane(lane), group, dedup, body)
}

// Nudge sends a wake-up for whatever is left in m, to the lane of the run that is
// next. sender tells the sender's wake-ups apart (its attempt and a counter): a
// deduplication id that was used before would be swallowed for five minutes.
func (s *Service) Nudge(ctx context.Context, m session.Meta, reason, sender string) error {
	return s.nudge(ctx, m, NextLane(m), reason, sender)
}

// nudge is Nudge to another lane than that of the run that is next: what waits behind a
// run of a lane that is busy is settled by the runners of its own.
func (s *Service) nudge(ctx context.Context, m session.Meta, lane, reason, sender string) error {
	h := id.Hash(m.Tenant, m.Key, strconv.FormatInt(m.Token, 10), sender)
	return s.send(ctx, m.Ref, lane, reason, h, h)
}

// NudgeLater is Nudge after a delay, through the notifier: FIFO lanes have no
// delay of their own.
func (s *Service) NudgeLater(ctx context.Context, m session.Meta, delay time.Duration, reason string) error {
	body, err := json.Marshal(Timer{Kind: TimerWake, Wakeup: Wakeup{m.Tenant, m.Key, NextLane(m), reason}})
	if err != nil {
		return err
	}
	return s.Timers.After(ctx, min(max(delay, 0), queue.MaxDelay), body)
}

// TimerWake is the Kind of a timer that brings a wake-up.
const TimerWake = "wake"

// Timer is a timer's body; other packages have kinds of their own.
type Timer struct {
	Wakeup

	Kind string `json:"kind"`
}

// ReasonAsleep is the reason of a sleeper's alarm.
const ReasonAsleep = "asleep"

// Forward sends the wake-up that a timer brought. The alarm of a run that sleeps longer
// than a timer can run is armed again.
func (s *Service) Forward(ctx context.Context, w Wakeup) error {
	if w.Reason == ReasonAsleep {
		m, err := session.LoadMeta(ctx, s.Store, w.Ref())
		if err != nil {
			return err
		}
		if now := s.Clock.Now(); m.Asleep(now) {
			return s.NudgeLater(ctx, m, m.Wake.Sub(now), ReasonAsleep)
		}
	}
	h := id.Hash(w.Tenant, w.Key, s.NewID())
	return s.send(ctx, w.Ref(), w.Lane, w.Reason, h, h)
}

// NextLane is the lane of the run that a wake-up for m is meant for.
func NextLane(m session.Meta) string {
	if m.Active != "" && m.ActiveLane != "" {
		return m.ActiveLane
	}
	if p, ok := m.Lowest(); ok {
		return p.Lane
	}
	return string(queue.Main)
}

// write retries conflicts as long as a gateway may, then gives ErrUnavailable.
func (s *Service) write(ctx context.Context, ops ...table.Op) error {
	_, err := claim.Write(ctx, s.Store, s.Clock, s.Times.Retry, ops...)
	if claim.Retrying(err) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// update is write for one update, and gives the item as it is after it.
func (s *Service) update(ctx context.Context, op table.Op) (*table.Item, error) {
	op.ReturnNew = true
	res, err := claim.Write(ctx, s.Store, s.Clock, s.Times.Retry, op)
	if claim.Retrying(err) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return res.New, err
}
