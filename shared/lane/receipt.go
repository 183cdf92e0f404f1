package lane

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Kinds of a run.Disposition: what became of a message.
const (
	IsStarted    = "started"
	IsQueued     = "queued"     // at a position
	IsSteered    = "steered"    // into a run, from a step on
	IsCollected  = "collected"  // with others, into a run
	IsSuperseded = "superseded" // by a run
	IsSummarised = "summarised" // into the run of a summary
	IsDropped    = "dropped"    // for a reason
)

// WholeID is the id of a run as its caller chose it, of its short form. One whose
// record has expired keeps the short form.
func WholeID(ctx context.Context, t table.Store, tenant, short string) (string, error) {
	if !strings.HasPrefix(short, "~") {
		return short, nil
	}
	st, err := run.Load(ctx, t, run.Ref{Tenant: tenant, Run: short})
	if errors.Is(err, run.ErrUnknown) {
		return short, nil
	}
	return st.RunID, err
}

// cutDisposition is what became of a message that a session-wide stop or an interrupt
// ended before it began.
func (s *Service) cutDisposition(ctx context.Context, m session.Meta, why string) (run.Disposition, error) {
	if why != run.StopSuperseded || m.CutBy == "" {
		return run.Disposition{Kind: IsDropped, Reason: why}, nil
	}
	by, err := WholeID(ctx, s.Store, m.Tenant, m.CutBy)
	return run.Disposition{Kind: IsSuperseded, RunID: by}, err
}

// SetDisposition is the change of a record that says what became of its message.
func SetDisposition(d run.Disposition) (table.SetOp, error) {
	b, err := json.Marshal(d)
	return table.SetOp{Path: table.P(run.AttrDisposition), Value: b}, err
}

// Now is what has become of a message as the tables say now: a place in the queue
// moves without a write to the record of who has it. m is the run's session.
func Now(st run.Status, m session.Meta) run.Disposition {
	d := st.Disposition
	if st.State == run.Started || m.Active == st.Run {
		return run.Disposition{Kind: IsStarted}
	}
	if st.State != run.Pending {
		return d
	}
	if n := m.Position(st.Run); n > 0 {
		if d.Kind != IsQueued {
			d = run.Disposition{Kind: IsQueued}
			if m.Active == "" && n == 1 {
				d.Kind, n = IsStarted, 0 // its wake-up is on its way
			}
		}
		d.Position = n
	}
	return d
}
