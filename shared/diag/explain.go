package diag

import (
	"cmp"
	"slices"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/timeout"
)

// Facts are what a session is explained from, read at about the same time.
type Facts struct {
	Meta       session.Meta
	Input      Input
	Now        time.Time
	Times      claim.Times
	Thresholds Thresholds
	RunTimeout time.Duration // of a run that names none
	Active     *run.Status   // nil: there is none
	Waiting    []run.Status  // by accept sequence, steered ones that are not delivered included
	Unsettled  []string      // run ids
	NextWake   time.Time     // of the sweep; zero: it has no reason to send one
	Settings   protocol.ExplainedSettings
}

// Explain says what a session does, what waits in it, and what happens next by
// itself.
func Explain(f Facts) protocol.SessionExplained {
	m := &f.Meta
	e := protocol.SessionExplained{
		TS: f.Now.UnixMilli(), Key: m.Key, SessionID: m.SessionID, PreviousID: m.PrevID, State: f.Input.State,
		Claim: f.claim(), Active: f.active(), Queue: f.queue(), Unsettled: f.Unsettled, Bounds: f.bounds(), Settings: f.Settings,
	}
	if e.Unsettled == nil {
		e.Unsettled = []string{}
	}
	if f.Thresholds.Considered(f.Input) && !f.Thresholds.Off {
		r := reportOf(*m, f.Input, f.Thresholds.Classify(f.Input))
		e.Report = &r
	}
	actions := f.actions()
	e.Next, e.Then = actions[0], actions[1:]
	e.Text = text(&e)
	return e
}

func (f *Facts) claim() *protocol.ExplainedClaim {
	m := &f.Meta
	if m.Owner == "" {
		return nil
	}
	c := &protocol.ExplainedClaim{
		Owner: m.Owner, Kind: "command", Token: m.Token, Live: m.Owned(f.Now, f.Times.Slack),
		LeaseAgeMs: f.Now.Sub(m.Lease.Add(-f.Times.Lease)).Milliseconds(), LeaseLeft: m.Lease.Sub(f.Now).Milliseconds(),
		TakeoverAt: f.takeover().UnixMilli(),
	}
	switch {
	case m.Owner == claim.Revoked:
		c.Kind, c.LeaseAgeMs = "revoked", 0
	case claim.RunOf(m.Owner) != "":
		c.Kind, c.RunID, c.Attempt = "run", claim.RunOf(m.Owner), m.Attempt
		if f.Active != nil && f.Active.Run == c.RunID {
			c.RunID = f.Active.RunID
		}
	}
	return c
}

// takeover is from when on somebody else may have the claim.
func (f *Facts) takeover() time.Time { return f.Meta.Lease.Add(f.Times.Slack + time.Millisecond) }

// runHeld says whether the active run's own holder lives.
func (f *Facts) runHeld() bool { return f.Input.Owned }

func (f *Facts) active() *protocol.ExplainedRun {
	m := &f.Meta
	if m.Active == "" {
		return nil
	}
	st := run.Status{RunID: m.Active}
	if f.Active != nil {
		st = *f.Active
	}
	n := st.Counted()
	r := &protocol.ExplainedRun{
		RunID: st.RunID, Lane: m.ActiveLane, State: f.runState(), Attempt: m.Attempt, Stalled: m.Stalled, MaxStalled: f.Times.Stalls,
		Step: n.Step, ToolCalls: n.ToolCalls, AcceptedAt: st.AcceptedAt, StartedAt: m.ActiveAt, RunningMs: since(f.Now, m.ActiveAt),
		Work: m.Progress.Work.Kind, Tool: f.Input.Tool, ToolCallID: f.Input.CallID, WorkAgeMs: f.Input.WorkAge.Milliseconds(),
		LastProgress: f.Input.Why, LastProgressAgeMs: f.Input.Progress.Milliseconds(), UndeliveredSteers: m.MailN,
		RepeatedRequestsMs: f.Input.Repeated.Milliseconds(),
	}
	if m.Asleep(f.Now) {
		r.WakeAt = m.Wake.UnixMilli()
	}
	if m.Marked() {
		r.StopReason = cmp.Or(m.CancelWhy, m.CutWhy, protocol.StopRPC)
	}
	return r
}

// runState is where the active run is.
func (f *Facts) runState() string {
	switch {
	case f.Meta.Marked():
		return "stopping"
	case f.Meta.Asleep(f.Now):
		return "sleeping"
	case f.runHeld():
		return "running"
	}
	return "dead"
}

func since(now time.Time, ms int64) int64 {
	if ms == 0 {
		return 0
	}
	return max(now.UnixMilli()-ms, 0)
}

func (f *Facts) queue() []protocol.ExplainedWait {
	out := []protocol.ExplainedWait{}
	modes := make(map[int64]string)
	for _, p := range f.Meta.Pending {
		modes[p.Seq] = p.Mode
	}
	for i := range f.Waiting {
		st := &f.Waiting[i]
		mode := modes[st.Seq]
		if st.State == run.Steered {
			mode = protocol.QueueSteer
		}
		out = append(out, protocol.ExplainedWait{
			Position: i + 1, RunID: st.RunID, Lane: st.Lane, Mode: mode, AcceptedAt: st.AcceptedAt, WaitingMs: since(f.Now, st.AcceptedAt),
			Disposition: lane.Now(*st, f.Meta).Wire(),
		})
	}
	return out
}

// bounds are the limits in force, the soonest first.
func (f *Facts) bounds() []protocol.ExplainedBound {
	out := []protocol.ExplainedBound{}
	add := func(name string, at time.Time, why string) {
		if !at.IsZero() {
			out = append(out, protocol.ExplainedBound{Name: name, At: at.UnixMilli(), InMs: at.Sub(f.Now).Milliseconds(), Why: why})
		}
	}
	add("run_timeout", f.runEnds(), f.budget().Why)
	if f.runHeld() {
		add("model_silence", f.silenceEnds(), timeout.WhySilence(f.Meta.Progress.Work.Rule))
		add("tool_deadline", f.toolEnds(), "the tool's own limit")
		if !f.Thresholds.Off {
			add("stuck_warn", f.warns(), "operators hear of a run without a sign of life")
			add("stuck_abort", f.aborts(), "a run without a sign of life is ended")
		}
	}
	if f.Meta.Owner != "" {
		add("lease", f.Meta.Lease, "what the holder of the claim has been granted; it is renewed")
	}
	slices.SortStableFunc(out, func(a, b protocol.ExplainedBound) int { return cmp.Compare(a.At, b.At) })
	return out
}

// runEnds is when the active run's budget is over; zero: never, or there is none.
func (f *Facts) runEnds() time.Time {
	if f.Meta.Active == "" || f.Active == nil {
		return time.Time{}
	}
	paused := time.Duration(f.Active.Counted().PausedMs) * time.Millisecond
	return f.budget().End(time.UnixMilli(f.Meta.ActiveAt), paused)
}

// budget is the active run's.
func (f *Facts) budget() timeout.Bound {
	if f.Active == nil {
		return timeout.Bound{}
	}
	return timeout.Budget(f.Active.Input.TimeoutMs, f.RunTimeout)
}

func (f *Facts) alive() time.Time { return f.Now.Add(-f.Input.Progress) }

// silenceEnds is when a model call is cut that says nothing more.
func (f *Facts) silenceEnds() time.Time {
	if f.Input.Kind != session.WorkModel || f.Input.Limit <= 0 {
		return time.Time{}
	}
	return f.alive().Add(f.Input.Limit)
}

// toolEnds is the deadline of a tool that names one.
func (f *Facts) toolEnds() time.Time {
	if f.Input.Kind != session.WorkTool || f.Input.Limit <= 0 {
		return time.Time{}
	}
	return f.Now.Add(-f.Input.WorkAge).Add(f.Input.Limit)
}

// warns is when operators hear of the run, if it shows no further sign of life.
func (f *Facts) warns() time.Time {
	if f.Input.RetryWait || f.Input.RuntimeWait || f.Input.Progress >= f.Thresholds.Warn {
		return time.Time{}
	}
	return f.alive().Add(f.Thresholds.Warn)
}

// aborts is when the run is ended, if it shows no further sign of life.
func (f *Facts) aborts() time.Time {
	in := f.Input
	if in.RetryWait || in.RuntimeWait || in.Limit < 0 && in.Kind != WorkRun {
		return time.Time{}
	}
	switch in.Kind {
	case session.WorkTool:
		return f.alive().Add(max(f.Thresholds.Tool, in.Limit))
	case session.WorkModel:
		return f.alive().Add(max(f.Thresholds.Abort, in.Limit))
	}
	return f.alive().Add(f.Thresholds.Abort)
}
