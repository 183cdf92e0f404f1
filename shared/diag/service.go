package diag

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Lanes is what a Service needs of *lane.Service.
type Lanes interface {
	SweepEach(ctx context.Context, see func(m session.Meta, woken bool)) (lane.Swept, error)
	Wake(ctx context.Context, m session.Meta) (bool, error)
	Interrupt(ctx context.Context, m session.Meta, reason string) (bool, error)
	Revoke(ctx context.Context, m session.Meta) (bool, error)
}

// Operators are told what is found.
type Operators interface {
	// Tell sends frames to the tenant's connections of sessions.subscribe.
	Tell(ctx context.Context, tenant string, frames [][]byte) error
}

// Metrics counts what alarms look at. *EMF is one.
type Metrics = lane.Metrics

// Config of a Service. Fields without a note are required.
type Config struct {
	Store      table.Store
	Lanes      Lanes
	Thresholds Thresholds
	Times      claim.Times
	Caps       []queue.Def // of the lanes; nil: queue.Definitions

	Operators Operators    // nil: there are none
	Metrics   Metrics      // nil: nothing counts
	Clock     clock.Clock  // nil: the machine's
	NewID     id.Source    // nil: UUIDs
	Log       *slog.Logger // nil: the default logger
}

// Service looks at sessions.
type Service struct {
	Config
	caps map[string]int
}

// New checks a Config and fills its defaults.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Lanes == nil {
		return nil, errors.New("diag: store and lanes are required")
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
	if c.Caps == nil {
		c.Caps = queue.Definitions()
	}
	c.Times, c.Thresholds = c.Times.WithDefaults(), c.Thresholds.WithDefaults()
	s := &Service{Config: c, caps: make(map[string]int, len(c.Caps))}
	for _, d := range c.Caps {
		s.caps[string(d.Lane)] = d.Concurrency
	}
	return s, nil
}

// look is one look at all sessions.
type look struct {
	*Service
	late  bool
	live  map[string]int // runs at work, by lane
	seen  []sight
	waits []func(context.Context)

	mu     sync.Mutex // protects what follows, which recoveries that wait side by side add to
	frames map[string][][]byte
	stuck  int
}

// sight is a session that may be worth a report.
type sight struct {
	m     session.Meta
	woken bool
}

// Sweep wakes work that nobody does (A2) and judges every session with work left.
// late is how much later than planned it comes: where that is more than
// Thresholds.Late, nothing is recovered. It returns within Thresholds.Settle after
// the last session was judged.
func (s *Service) Sweep(ctx context.Context, late time.Duration) (lane.Swept, error) {
	l := &look{Service: s, late: late >= s.Thresholds.Late, live: make(map[string]int), frames: make(map[string][][]byte)}
	sum, err := s.Lanes.SweepEach(ctx, l.see)
	if s.Thresholds.Off {
		return sum, err
	}
	for _, v := range l.seen {
		if ctx.Err() != nil {
			return sum, errors.Join(err, context.Cause(ctx))
		}
		if jerr := l.judge(ctx, v); jerr != nil {
			err = errors.Join(err, fmt.Errorf("session %s: %w", v.m.Hash(), jerr))
		}
	}
	l.tell(ctx)
	var wg sync.WaitGroup
	for _, wait := range l.waits {
		wg.Go(func() { wait(ctx) })
	}
	wg.Wait()
	l.tell(ctx)
	if l.stuck > 0 && s.Metrics != nil {
		s.Metrics.Count(MetricStuck, float64(l.stuck))
	}
	return sum, err
}

// see keeps what may be worth a report, without reading anything.
func (l *look) see(m session.Meta, woken bool) {
	now := l.Clock.Now()
	if m.Active != "" && m.Owned(now, l.Times.Slack) {
		l.live[m.ActiveLane]++
	}
	if !l.Thresholds.Off && l.Thresholds.Considered(Observe(m, now, l.Times.Slack, 0)) {
		l.seen = append(l.seen, sight{m, woken})
	}
}

func (l *look) judge(ctx context.Context, v sight) error {
	in, err := Look(ctx, l.Store, v.m, l.Clock.Now(), l.Times.Slack)
	if err != nil || !l.Thresholds.Considered(in) {
		return err
	}
	rep := l.Thresholds.Classify(in)
	err = l.report(ctx, v.m, in, rep)
	alone := true
	if rep.Recover && !l.late {
		alone = l.recover(ctx, v, in, rep)
	}
	if alone && rep.Event == protocol.EventSessionStuck {
		l.stuck++
	}
	return err
}

// Look is Observe with what else it takes from the tables: since when what waits has
// been there.
func Look(ctx context.Context, t table.Store, m session.Meta, now time.Time, slack time.Duration) (Input, error) {
	var since int64
	if m.Active == "" {
		short := ""
		if p, ok := m.Lowest(); ok {
			short = p.Run
		}
		if len(m.Unsettled) > 0 {
			short = m.Unsettled[0]
		}
		if short != "" {
			st, err := run.Load(ctx, t, run.Ref{Tenant: m.Tenant, Run: short})
			if err != nil && !errors.Is(err, run.ErrUnknown) {
				return Input{}, err
			}
			since = max(st.AcceptedAt, st.EndedAt)
		}
		if len(m.Cut()) > 0 {
			since = max(since, m.Updated)
		}
	}
	return Observe(m, now, slack, since), nil
}
