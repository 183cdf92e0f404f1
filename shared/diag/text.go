package diag

import (
	"fmt"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

// text is an explanation for a person: what is, then what waits, then what comes.
func text(e *protocol.SessionExplained) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("%s is %s", e.Key, e.State)
	if c := e.Claim; c != nil {
		line("claim: %s, token %d, %s", holder(c), c.Token, lease(c))
	} else {
		line("claim: free")
	}
	if r := e.Active; r != nil {
		line("run %s in lane %s: %s, attempt %d, step %d, %d tool call(s), began %s ago", r.RunID, r.Lane, r.State, r.Attempt, r.Step, r.ToolCalls, span(r.RunningMs))
		if w := doing(r); w != "" {
			line("  %s for %s", w, span(r.WorkAgeMs))
		}
		if r.LastProgress != "" {
			line("  last sign of life: %s, %s ago", r.LastProgress, span(r.LastProgressAgeMs))
		}
		if r.StopReason != "" {
			line("  told to end: %s", r.StopReason)
		}
		if r.Stalled > 1 {
			line("  attempts without progress: %d of %d", r.Stalled, r.MaxStalled)
		}
	}
	if e.PreviousID != "" {
		line("started over by itself; before it was transcript %s", e.PreviousID)
	}
	for _, id := range e.Unsettled {
		line("run %s has ended; its end is being told", id)
	}
	for _, w := range e.Queue {
		mode := ""
		if w.Mode != "" {
			mode = ", " + w.Mode
		}
		line("waiting %d: run %s in lane %s%s, for %s", w.Position, w.RunID, w.Lane, mode, span(w.WaitingMs))
	}
	if s := e.Settings; s.Channel != "" {
		line("settings: %s chat of %s: queue %s, debounce %dms, cap %d, drop %s; texts wait %dms; starts over: %s",
			s.ChatType, s.Channel, s.QueueMode, s.QueueDebounceMs, s.QueueCap, s.QueueDrop, s.InboundMs, s.Reset)
	}
	if len(e.Bounds) > 0 {
		parts := make([]string, len(e.Bounds))
		for i, x := range e.Bounds {
			parts[i] = x.Name + " " + in(x.InMs)
		}
		line("bounds: %s", strings.Join(parts, ", "))
	}
	if r := e.Report; r != nil {
		line("diagnosis: %s (%s)", r.Classification, r.Reason)
	}
	line("next: %s", action(e.Next))
	for _, a := range e.Then {
		line("then: %s", action(a))
	}
	return b.String()
}

func holder(c *protocol.ExplainedClaim) string {
	switch c.Kind {
	case "run":
		return fmt.Sprintf("run %s, attempt %d", c.RunID, c.Attempt)
	case "revoked":
		return "taken from its holder"
	}
	return "a command"
}

func lease(c *protocol.ExplainedClaim) string {
	switch {
	case !c.Live:
		return "dead: its lease was over " + span(-c.LeaseLeft) + " ago"
	case c.Kind == "revoked":
		return "free in " + span(c.LeaseLeft)
	case c.LeaseLeft < 0:
		return "renewed " + span(c.LeaseAgeMs) + " ago, over"
	}
	return "renewed " + span(c.LeaseAgeMs) + " ago, good for " + span(c.LeaseLeft)
}

func doing(r *protocol.ExplainedRun) string {
	switch r.Work {
	case "":
		return ""
	case session.WorkModel:
		return "waits for the model"
	case session.WorkTool:
		return "tool " + r.Tool + " (" + r.ToolCallID + ") runs"
	case session.WorkRetry:
		return "pauses before the model is asked again,"
	case session.WorkQuestion:
		return "waits for a person"
	}
	return r.Work
}

func action(a protocol.ExplainedAction) string {
	if a.At == 0 {
		return a.Action + ": " + a.Why
	}
	return a.Action + " " + in(a.InMs) + ": " + a.Why
}

func in(ms int64) string {
	switch {
	case ms < 0:
		return span(-ms) + " ago"
	case ms == 0:
		return "now"
	}
	return "in " + span(ms)
}

// span is a time for a person: two units at most.
func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		d = d.Round(time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
	return clock.Short(d)
}
