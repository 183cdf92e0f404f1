package lane

import (
	"context"
	"slices"

	"laneway/shared/session"
	"laneway/shared/table"
)

// Metrics counts what dashboards show.
type Metrics interface {
	Count(name string, n float64)
}

// MetricFallback counts messages that were meant for a run that had just ended, or was
// about to, and became runs of their own. The log has each, with CounterFallback.
//
// What makes a message such a run notes it in the session, in the same transaction; the
// settler that takes the note away counts it. So it is counted once, whoever dies
// between the two, and whoever does their work.
const (
	MetricFallback  = "SteerFallbacks"
	CounterFallback = "steer_fallback"
)

// Why a steer became a run of its own: the reason in the receipt of one that waits.
const (
	RunEnding = "run-ending" // the run was marked to end
	RunEnded  = "run-ended"
)

// Fell is the note that runs were steers of another one; of none, nothing.
func Fell(runs ...string) []table.MemberOp {
	if len(runs) == 0 {
		return nil
	}
	return []table.MemberOp{{Attr: session.AttrFell, Members: runs}}
}

// fallsBack says whether a message that is accepted as a run against the picture m is a
// steer that falls back. aimed is the active run that would not take it; empty: none was
// asked.
func fallsBack(ctx context.Context, c *Call, m session.Meta, q *queued, aimed string) bool {
	switch {
	case q != nil && q.notSteered == RunEnding, aimed != "" && m.Active != aimed:
		return true
	case q != nil || c.Rules == nil || c.Interrupt || m.Active != "":
		return false
	}
	// Nobody is at work. If the end of the last run is not told yet, the sender could not
	// know that.
	if !slices.Contains(m.Unsettled, m.LastRun) {
		return false
	}
	rules, err := c.Rules(ctx)
	return err == nil && rules.Mode == Steer
}

// takeFell adds to a settler's update that it takes the notes in m, under an id by which
// it finds out later that an update without an answer was made (C5).
func (s *Service) takeFell(up *table.Op, m session.Meta) (by string) {
	if len(m.Fell) == 0 {
		return ""
	}
	by = s.NewID()
	up.TakeFrom = append(up.TakeFrom, table.MemberOp{Attr: session.AttrFell, Members: m.Fell})
	up.Set = append(up.Set, table.SetOp{Path: table.P(session.AttrFellBy), Value: by})
	return by
}

// countFell counts the notes that were in m and are taken away.
func (s *Service) countFell(m session.Meta) {
	for _, r := range m.Fell {
		s.Log.Info("steer became a run of its own", "session", m.Hash(), "run", r, "counter", CounterFallback)
	}
	if len(m.Fell) > 0 && s.Metrics != nil {
		s.Metrics.Count(MetricFallback, float64(len(m.Fell)))
	}
}
