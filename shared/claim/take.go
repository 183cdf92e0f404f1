package claim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/session"
	"laneway/shared/table"
)

// What callers branch on.
var (
	// ErrStale: somebody else has the claim now; nothing was written.
	ErrStale = errors.New("claim: superseded")
	// ErrTaken: the claim could not be had; decide again from the found item.
	ErrTaken = errors.New("claim: not free")
	// ErrBusy: a command waited for the claim as long as it may. It is a matter of
	// coordination: never a model failure, never the end of an accepted run.
	ErrBusy = errors.New("session busy")
	// ErrLapsed: the holder's last renewal is too old to start anything.
	ErrLapsed = errors.New("claim: lease too old")
	// ErrNested: nested taking without allowReentrant.
	ErrNested = errors.New("claim: already held by this owner")
	// ErrReleased: the holder has released the claim.
	ErrReleased = errors.New("claim: released")
)

// TakenError is ErrTaken with the item that was there.
type TakenError struct{ Meta session.Meta }

func (e *TakenError) Error() string { return ErrTaken.Error() }

// Is makes errors.Is(err, ErrTaken) true.
func (e *TakenError) Is(target error) bool { return target == ErrTaken }

// Service takes claims.
type Service struct {
	Store table.Store
	Clock clock.Clock // nil: the machine's
	NewID id.Source   // nil: UUIDs
	Times Times
	Log   *slog.Logger // nil: the default logger
}

func (s *Service) withDefaults() *Service {
	c := *s
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.NewID == nil {
		c.NewID = id.UUID
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Times = c.Times.WithDefaults()
	return &c
}

// New checks a Service's fields and fills their defaults.
func New(s Service) *Service { return s.withDefaults() }

// OwnerOf names an attempt of a run as an owner.
func OwnerOf(run string, attempt int64) string { return run + "#" + strconv.FormatInt(attempt, 10) }

// RunOf is the run of an attempt's owner; empty for a command.
func RunOf(owner string) string {
	i := strings.LastIndexByte(owner, '#')
	if i < 0 || strings.HasPrefix(owner, commandPrefix) {
		return ""
	}
	return owner[:i]
}

const commandPrefix = "cmd:"

// Revoked owns a claim that was taken from its holder, until the lease is over.
const Revoked = commandPrefix + "revoked"

// Start takes the claim for a pending run, which becomes the active one (C1). A
// claim that cannot be had is a *TakenError.
func (s *Service) Start(ctx context.Context, m session.Meta, p session.Pending) (*Holder, error) {
	now := s.Clock.Now()
	op := s.take(m, OwnerOf(p.Run, 1), now)
	member := session.PendingMember(p.Seq)
	op.If = table.All(op.If,
		table.Equal(table.P(session.AttrPending, member), p.Value()),
		table.Lacks(table.P(session.AttrActive)),
		table.Any(table.Lacks(table.P(session.AttrCutoff)), table.Less(table.P(session.AttrCutoff), p.Seq)))
	op.Set = append(op.Set,
		table.SetOp{Path: table.P(session.AttrActive), Value: p.Run},
		table.SetOp{Path: table.P(session.AttrActiveSeq), Value: p.Seq},
		table.SetOp{Path: table.P(session.AttrActiveLn), Value: p.Lane},
		table.SetOp{Path: table.P(session.AttrActiveAt), Value: now.UnixMilli()},
		table.SetOp{Path: table.P(session.AttrAttempt), Value: int64(1)},
		table.SetOp{Path: table.P(session.AttrStalled), Value: int64(1)},
		begun(now))
	op.Add = append(op.Add, table.AddOp{Path: table.P(session.AttrPendingN), N: -1})
	op.Remove = append(op.Remove, table.P(session.AttrPending, member))
	return s.send(ctx, m.Ref, OwnerOf(p.Run, 1), op)
}

// Resume takes the claim for the active run's next attempt.
func (s *Service) Resume(ctx context.Context, m session.Meta) (*Holder, error) {
	attempt := m.Attempt + 1
	owner := OwnerOf(m.Active, attempt)
	now := s.Clock.Now()
	op := s.take(m, owner, now)
	op.If = table.All(op.If, table.Equal(table.P(session.AttrActive), m.Active))
	op.Set = append(op.Set, table.SetOp{Path: table.P(session.AttrAttempt), Value: attempt}, begun(now))
	op.Add = append(op.Add, table.AddOp{Path: table.P(session.AttrStalled), N: 1})
	op.Remove = append(op.Remove, table.P(session.AttrWake))
	return s.send(ctx, m.Ref, owner, op)
}

// Command takes the claim for something that is no run: reset, inject, compact
// (C4). It waits up to wait (0: Times.Acquire), then fails with ErrBusy.
func (s *Service) Command(ctx context.Context, ref session.Ref, wait time.Duration) (*Holder, error) {
	if wait == 0 {
		wait = s.Times.Acquire
	}
	owner := commandPrefix + s.NewID()
	end := s.Clock.Now().Add(wait)
	for pause := 20 * time.Millisecond; ; pause = min(pause*2, time.Second) {
		m, err := session.LoadMeta(ctx, s.Store, ref)
		if err != nil {
			return nil, err
		}
		if !m.Owned(s.Clock.Now(), s.Times.Slack) {
			h, err := s.send(ctx, ref, owner, s.take(m, owner, s.Clock.Now()))
			if !errors.Is(err, ErrTaken) {
				return h, err
			}
		}
		left := end.Sub(s.Clock.Now())
		if left <= 0 {
			return nil, fmt.Errorf("%w: waited %s for its writer", ErrBusy, wait)
		}
		if err := clock.Sleep(ctx, s.Clock, min(pause, left)); err != nil {
			return nil, err
		}
	}
}

// take is the part that all claims share.
func (s *Service) take(m session.Meta, owner string, now time.Time) table.Op {
	token := table.Equal(table.P(session.AttrToken), m.Token)
	if m.Token == 0 {
		token = table.Lacks(table.P(session.AttrToken))
	}
	op := table.Op{
		Kind: table.Update, Key: m.MetaKey(), ReturnNew: true,
		If: table.All(token, table.Any(
			table.Lacks(table.P(session.AttrOwner)),
			table.Less(table.P(session.AttrLease), now.Add(-s.Times.Slack).UnixMilli()))),
		Set: []table.SetOp{
			{Path: table.P(session.AttrOwner), Value: owner},
			{Path: table.P(session.AttrLease), Value: now.Add(s.Times.Lease).UnixMilli()},
			{Path: table.P(session.AttrWrite), Value: s.NewID()},
		},
		Add:    []table.AddOp{{Path: table.P(session.AttrToken), N: 1}},
		Remove: []table.Path{table.P(session.AttrNest)},
	}
	if !m.Exists() {
		op.Set = append(op.Set, newMeta(now)...)
	}
	return op
}

// newMeta is what a session has from its first write on.
func newMeta(now time.Time) []table.SetOp {
	return []table.SetOp{
		{Path: table.P(session.AttrPending), Value: table.Map{}},
		{Path: table.P(session.AttrStops), Value: table.Map{}},
		{Path: table.P(session.AttrPendingN), Value: int64(0)},
		{Path: table.P(session.AttrCreated), Value: now.UnixMilli()},
	}
}

func (s *Service) send(ctx context.Context, ref session.Ref, owner string, op table.Op) (*Holder, error) {
	began := s.Clock.Now()
	wid, _ := op.Set[2].Value.(string)
	res, err := Write(ctx, s.Store, s.Clock, s.Times.Retry, op)
	found := res.New
	if ce, ok := table.Failed(err); ok {
		m := session.DecodeMeta(ref, ce.Found)
		if m.WriteID != wid || m.Owner != owner {
			return nil, &TakenError{m}
		}
		found, err = ce.Found, nil // the lost answer was a yes (C5)
	}
	if err != nil {
		return nil, fmt.Errorf("take claim: %w", err)
	}
	return s.hold(ctx, session.DecodeMeta(ref, found), began), nil
}
