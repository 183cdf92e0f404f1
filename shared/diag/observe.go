package diag

import (
	"time"

	"laneway/shared/claim"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

// Observe turns the hot item into what is judged. since is since when (ms) what
// waits has been there: the acceptance of the run that is next, or the end of one
// that is not settled; 0 where that is not known. It counts only where no run is
// active. Neither the accept sequence nor the time of the last accept goes in:
// messages that arrive are no progress.
func Observe(m session.Meta, now time.Time, slack time.Duration, since int64) Input {
	in := Input{Queue: Queued(m)}
	owned := m.Owned(now, slack)
	alive := since
	// Of a free claim the lease says when it was released, of a live or dead one when
	// it ends: that is no sign of life.
	if m.Owner == "" && !m.Lease.IsZero() {
		alive = max(alive, m.Lease.UnixMilli())
	}
	switch {
	case m.Active != "":
		observeRun(&in, m, now, owned)
		alive = max(m.Progress.At, m.ActiveAt)
		if !owned && !m.Wake.IsZero() && !m.Wake.After(now) {
			alive = max(alive, m.Wake.UnixMilli()) // it slept until then
		}
	case len(m.Unsettled) > 0 || len(m.Cut()) > 0:
		in.State, in.Kind, in.Terminal, in.Why = protocol.SessionProcessing, WorkRun, true, session.ProgressCompleted
	default:
		in.State = protocol.SessionIdle
		if owned { // by a command, which is about to be done
			alive = now.UnixMilli()
		}
	}
	in.Generation = alive
	in.Progress = max(now.Sub(time.UnixMilli(alive)), 0)
	in.Age = in.Progress
	return in
}

func observeRun(in *Input, m session.Meta, now time.Time, owned bool) {
	p := m.Progress
	in.State, in.Kind, in.Why, in.Terminal = protocol.SessionProcessing, WorkRun, p.Why, p.Terminal()
	in.Owned = owned && claim.RunOf(m.Owner) == m.Active
	asleep := m.Asleep(now)
	if asleep {
		in.State = protocol.SessionWaiting
	}
	if p.Work.Kind != "" {
		in.WorkAge, in.Limit = max(now.Sub(time.UnixMilli(p.Work.Since)), 0), p.Work.Limit
	}
	switch p.Work.Kind {
	case session.WorkModel:
		in.Kind = session.WorkModel
	case session.WorkTool:
		in.Kind, in.Tool, in.CallID = session.WorkTool, p.Work.Tool, p.Work.CallID
	case session.WorkRetry:
		// A pause that is long over is none, and one of a dead holder neither.
		in.RetryWait = asleep || in.Owned && in.WorkAge <= in.Limit+pauseGrace
	case session.WorkQuestion:
		in.RuntimeWait = asleep || in.Owned
	default:
		in.RetryWait = asleep // it sleeps for no other reason
	}
	if p.Asked != 0 {
		in.Repeated = max(now.Sub(time.UnixMilli(p.Asked)), 0)
	}
}

// pauseGrace is how late the end of a pause may be told: with the next renewal.
const pauseGrace = 30 * time.Second

// Queued is how many messages wait in a session: runs that have not begun and are not
// stopped, and what was steered into the active one and is not delivered.
func Queued(m session.Meta) int {
	n := int(m.MailN)
	for _, p := range m.Pending {
		if p.Seq > m.Cutoff {
			n++
		}
	}
	return n
}

// same says whether a session has neither changed its state nor shown a sign of life
// between two readings.
func same(a, b session.Meta) bool {
	return a.Token == b.Token && a.Active == b.Active && a.Progress == b.Progress && a.Wake.Equal(b.Wake) &&
		(a.Active != "" || len(a.Unsettled) == len(b.Unsettled))
}
