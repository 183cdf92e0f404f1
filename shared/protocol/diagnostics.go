package protocol

// Names of the events about sessions that do not move. They go to connections of
// sessions.subscribe.
const (
	EventSessionState       = "session.state"
	EventSessionLongRunning = "session.long_running"
	EventSessionStalled     = "session.stalled"
	EventSessionStuck       = "session.stuck"
	EventRecoveryRequested  = "session.recovery.requested"
	EventRecoveryCompleted  = "session.recovery.completed"
)

// States of a session that is looked at.
const (
	SessionIdle       = "idle"       // no run has begun and not ended
	SessionWaiting    = "waiting"    // its run sleeps
	SessionProcessing = "processing" // its run is at work, or should be
)

// SessionStateEvent says that a session is in another state.
type SessionStateEvent struct {
	SessionID  string `json:"sessionId"`
	SessionKey string `json:"sessionKey"`
	PrevState  string `json:"prevState"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	QueueDepth int    `json:"queueDepth"`
}

// SessionReport is the payload of session.long_running, session.stalled and
// session.stuck. Ages are in milliseconds.
type SessionReport struct {
	SessionID                      string `json:"sessionId"`
	SessionKey                     string `json:"sessionKey"`
	State                          string `json:"state"`
	AgeMs                          int64  `json:"ageMs"`
	QueueDepth                     int    `json:"queueDepth"`
	Reason                         string `json:"reason"`
	Classification                 string `json:"classification"`
	ActiveWorkKind                 string `json:"activeWorkKind,omitempty"` // embedded_run, model_call, tool_call
	LastProgressAgeMs              *int64 `json:"lastProgressAgeMs,omitempty"`
	LastProgressReason             string `json:"lastProgressReason,omitempty"`
	ActiveToolName                 string `json:"activeToolName,omitempty"`
	ActiveToolCallID               string `json:"activeToolCallId,omitempty"`
	ActiveToolAgeMs                *int64 `json:"activeToolAgeMs,omitempty"`
	RepeatedRequestNoProgressAgeMs *int64 `json:"repeatedRequestNoProgressAgeMs,omitempty"`
	TerminalProgressStale          bool   `json:"terminalProgressStale,omitempty"`
}

// RecoveryRequested is the payload of session.recovery.requested. StateGeneration is
// another after every change of state and every sign of life, and only grows.
type RecoveryRequested struct {
	SessionID        string `json:"sessionId"`
	SessionKey       string `json:"sessionKey"`
	State            string `json:"state"`
	StateGeneration  int64  `json:"stateGeneration"`
	AgeMs            int64  `json:"ageMs"`
	QueueDepth       int    `json:"queueDepth"`
	Reason           string `json:"reason"`
	ActiveWorkKind   string `json:"activeWorkKind,omitempty"`
	AllowActiveAbort bool   `json:"allowActiveAbort"`
}

// RecoveryCompleted is the payload of session.recovery.completed.
type RecoveryCompleted struct {
	RecoveryRequested
	Status        string `json:"status"` // aborted, released, skipped, noop, failed
	Action        string `json:"action"` // abort_embedded_run, release_lane, keep_lane, observe_only, none
	OutcomeReason string `json:"outcomeReason,omitempty"`
	Released      int    `json:"released,omitempty"` // lanes
	Stale         bool   `json:"stale,omitempty"`    // the session had moved: nothing was changed
}
