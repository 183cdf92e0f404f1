package diag

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"laneway/shared/claim"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

// Actions that happen by themselves.
const (
	actTell     = "tell_the_end"
	actWake     = "wake_up"
	actResume   = "resume"
	actStart    = "start"
	actEnd      = "end_run"
	actCut      = "cut_model_call"
	actCutTool  = "cut_tool"
	actAsk      = "ask_model_again"
	actWarn     = "warn"
	actTakeover = "free_claim"
	actNothing  = "none"
)

// actions are what happens by itself, the next first. There is always one.
func (f *Facts) actions() []protocol.ExplainedAction {
	m := &f.Meta
	var out []protocol.ExplainedAction
	add := func(action string, at time.Time, why string, a ...any) {
		x := protocol.ExplainedAction{Action: action, Why: fmt.Sprintf(why, a...)}
		if !at.IsZero() {
			x.At, x.InMs = at.UnixMilli(), max(at.Sub(f.Now).Milliseconds(), 0)
		}
		out = append(out, x)
	}
	owned := m.Owned(f.Now, f.Times.Slack)
	switch {
	case m.Active != "" && f.runHeld():
		f.ofHolder(add)
	case m.Active != "" && m.Asleep(f.Now):
		add(actResume, m.Wake, "the run sleeps until then")
		if at := f.runEnds(); !at.IsZero() {
			add(actEnd, at, "its time is over then, as timeout")
		}
	case m.Active != "" && owned && m.Owner == claim.Revoked:
		add(actResume, f.takeover(), "the run's holder did not react and lost its claim; it is ended when its lease is over")
	case m.Active != "" && owned:
		add(actTakeover, f.takeover(), "a command has the claim and wakes what waits when it is done; by then its lease is over if it dies")
	case m.Active != "":
		f.ofDead(add)
	}
	if len(m.Unsettled) > 0 || len(m.Cut()) > 0 {
		add(actTell, f.NextWake, "%d ended run(s) are told by whoever gets the next wake-up; it is repeated then", len(m.Unsettled)+len(m.Cut()))
	}
	if m.Active == "" {
		f.ofQueue(add, owned)
	}
	if len(out) == 0 {
		add(actNothing, time.Time{}, "no work is left")
	}
	slices.SortStableFunc(out, func(a, b protocol.ExplainedAction) int { return cmp.Compare(a.At, b.At) })
	return out
}

type adder func(action string, at time.Time, why string, a ...any)

// ofHolder is what ends what a live holder is at.
func (f *Facts) ofHolder(add adder) {
	in := f.Input
	if f.Meta.Marked() {
		add(actEnd, f.Now.Add(f.Times.Poll), "it was told to end; its holder looks that often")
	}
	if at := f.silenceEnds(); !at.IsZero() {
		add(actCut, at, "the model call may be silent for %s", in.Limit)
	}
	if at := f.toolEnds(); !at.IsZero() {
		add(actCutTool, at, "%s has a time limit of its own, %s", in.Tool, in.Limit)
	}
	if f.Meta.Progress.Work.Kind == session.WorkRetry {
		add(actAsk, f.Now.Add(in.Limit-in.WorkAge), "the model refused and is asked again after a pause")
	}
	if at := f.runEnds(); !at.IsZero() {
		add(actEnd, at, "its time is over then, as timeout")
	}
	if f.Thresholds.Off {
		return
	}
	if at := f.warns(); !at.IsZero() {
		add(actWarn, at, "operators are warned if it shows no sign of life")
	}
	if at := f.aborts(); !at.IsZero() {
		add(actEnd, at, "it is ended if it shows no sign of life")
	}
}

// ofDead is what becomes of a run that nobody holds.
func (f *Facts) ofDead(add adder) {
	at := f.NextWake
	if f.Meta.Owner != "" && at.Before(f.takeover()) {
		at = f.takeover()
	}
	switch {
	case f.Meta.Marked():
		add(actEnd, at, "it was told to end and its holder is gone: whoever gets the next wake-up ends it; one is sent then")
	case f.Meta.Stalled >= f.Times.Stalls:
		add(actEnd, at, "%d attempts made no progress: whoever gets the next wake-up ends it; one is sent then", f.Meta.Stalled)
	default:
		add(actResume, at, "its holder is gone: whoever gets the next wake-up goes on from the last step; one is sent then")
	}
}

// ofQueue is what starts what waits.
func (f *Facts) ofQueue(add adder, owned bool) {
	p, ok := f.Meta.Lowest()
	if !ok {
		return
	}
	id := p.Run
	if len(f.Waiting) > 0 {
		id = f.Waiting[0].RunID
	}
	switch {
	case owned:
		add(actStart, f.takeover(), "run %s starts when the claim is free: at the latest when its lease is over", id)
	case p.Mode != "" && f.Meta.Debounce.After(f.Now):
		add(actStart, f.Meta.Debounce, "run %s waits for further messages", id)
	default:
		add(actWake, f.NextWake, "run %s starts when its wake-up gets its turn in lane %s; the wake-up is repeated then", id, p.Lane)
	}
}
