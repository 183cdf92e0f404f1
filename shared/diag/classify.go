package diag

import (
	"time"

	"laneway/shared/protocol"
	"laneway/shared/session"
)

// WorkRun is the kind of active work of a run between model calls and tools, beside
// session.WorkModel and session.WorkTool.
const WorkRun = "embedded_run"

// Classifications.
const (
	LongRunning     = "long_running"
	StalledAgentRun = "stalled_agent_run"
	BlockedToolCall = "blocked_tool_call"
	StaleState      = "stale_session_state"
)

// Reasons of a report.
const (
	ReasonRetryWait      = "provider_retry_wait"
	ReasonRuntimeWait    = "runtime_owned_wait"
	ReasonRepeated       = "repeated_model_requests_without_progress"
	ReasonQueuedNoRun    = "queued_work_without_active_run"
	ReasonBlockedTool    = "blocked_tool_call"
	ReasonBehindTerminal = "queued_behind_terminal_active_work"
	ReasonSilentModel    = "active_model_call_without_progress"
	ReasonNoProgress     = "active_work_without_progress"
	ReasonActive         = "active_work"
	ReasonBehindActive   = "queued_behind_active_work"
	ReasonStale          = "stale_session_state"
)

// Input is what is known about a session. Ages count to the moment of the look.
type Input struct {
	State string // protocol.SessionIdle, SessionWaiting, SessionProcessing
	Queue int    // messages that wait, not the one that is being answered
	Age   time.Duration
	// Kind is the active work: WorkRun, session.WorkModel, session.WorkTool; empty: none.
	Kind string
	// Owned says that somebody lives who does it. What nobody owns is no work, whatever
	// was written about it.
	Owned    bool
	Progress time.Duration // since the last sign of life
	Why      string        // which it was
	Terminal bool          // nothing but the end could follow it
	Tool     string
	CallID   string
	WorkAge  time.Duration // of the model call or tool
	Limit    time.Duration // of the model call or tool by its own rule; 0: none; negative: for ever
	// RetryWait: the run waits before it asks the same model again. RuntimeWait: it
	// waits for somebody else, as a person with a question.
	RetryWait, RuntimeWait bool
	Repeated               time.Duration // since when model requests are repeated; 0: they are not
	Generation             int64
}

// Report is what is to be said about a session; without an Event, nothing.
type Report struct {
	Event          string // protocol.EventSession…
	Reason         string
	Classification string
	// Recover: something is to be done about it.
	Recover bool
	// Row is the row of the table (spec: runtime 6.3) that says so.
	Row int
}

// Considered says whether a session is worth a report (spec: runtime 6.2).
func (t Thresholds) Considered(in Input) bool {
	switch in.State {
	case protocol.SessionProcessing:
		return in.Age >= t.Warn
	case protocol.SessionIdle, protocol.SessionWaiting:
		return in.Queue > 0 && in.Progress >= t.Warn
	}
	return false
}

// Classify is the table: its rows from the top, the first that holds wins.
func (t Thresholds) Classify(in Input) Report {
	work := in.Kind != "" && in.Owned
	tool, model := work && in.Kind == session.WorkTool, work && in.Kind == session.WorkModel
	quiet := in.Progress > t.Warn
	switch {
	case in.RetryWait:
		return longRunning(1, ReasonRetryWait)
	case in.RuntimeWait:
		return longRunning(2, ReasonRuntimeWait)
	case work && in.Repeated >= t.Abort:
		return t.stalled(3, in, ReasonRepeated)
	case in.State == protocol.SessionIdle && in.Queue > 0 && in.Kind == "" && quiet:
		return stuck(4, ReasonQueuedNoRun)
	case tool && in.WorkAge > t.Warn && quiet:
		return Report{
			Row: 5, Event: protocol.EventSessionStalled, Reason: ReasonBlockedTool, Classification: BlockedToolCall,
			Recover: over(min(in.WorkAge, in.Progress), t.Tool, in.Limit),
		}
	case work && in.Queue > 0 && in.Terminal:
		return t.stalled(6, in, ReasonBehindTerminal)
	case model && quiet && in.Progress < t.Abort:
		return longRunning(7, ReasonSilentModel)
	case model && in.Progress >= t.Abort:
		return t.stalled(8, in, ReasonNoProgress)
	case work && quiet:
		return t.stalled(9, in, ReasonNoProgress)
	case work && in.Queue > 0:
		return longRunning(10, ReasonBehindActive)
	case work:
		return longRunning(10, ReasonActive)
	case in.Queue > 0:
		return stuck(11, ReasonQueuedNoRun)
	}
	return stuck(11, ReasonStale)
}

func longRunning(row int, reason string) Report {
	return Report{Row: row, Event: protocol.EventSessionLongRunning, Reason: reason, Classification: LongRunning}
}

func stuck(row int, reason string) Report {
	return Report{Row: row, Event: protocol.EventSessionStuck, Reason: reason, Classification: StaleState, Recover: true}
}

// stalled is a run without progress. It is ended when that has lasted for Abort, and
// for as long as a model call may be silent by its own rule.
func (t Thresholds) stalled(row int, in Input, reason string) Report {
	limit := in.Limit
	if in.Kind != session.WorkModel {
		limit = 0
	}
	return Report{
		Row: row, Event: protocol.EventSessionStalled, Reason: reason, Classification: StalledAgentRun,
		Recover: over(max(in.Progress, in.Repeated), t.Abort, limit),
	}
}

// over says whether an age has reached both bounds.
func over(age, bound, own time.Duration) bool { return own >= 0 && age >= max(bound, own) }
