package protocol

// SessionExplained is the reply of sessions.explain: what a session is doing, what
// waits in it, and what happens next by itself. Times are milliseconds since the
// epoch, ages and spans milliseconds.
type SessionExplained struct {
	TS        int64             `json:"ts"`
	Key       string            `json:"key"`
	SessionID string            `json:"sessionId,omitempty"`
	State     string            `json:"state"`  // idle, waiting, processing
	Claim     *ExplainedClaim   `json:"claim"`  // null: free
	Active    *ExplainedRun     `json:"active"` // null: no run has begun and not ended
	Queue     []ExplainedWait   `json:"queue"`
	Unsettled []string          `json:"unsettled"` // runs that ended and whose end is being told
	Bounds    []ExplainedBound  `json:"bounds"`    // the soonest first
	Settings  ExplainedSettings `json:"settings"`
	Report    *SessionReport    `json:"report,omitempty"`
	Next      ExplainedAction   `json:"next"`
	Then      []ExplainedAction `json:"then,omitempty"` // what comes where that does not change it
	Text      string            `json:"text"`           // all of it for a person

	// PreviousID is the transcript before the session started over by itself.
	PreviousID string `json:"previousSessionId,omitempty"`
}

// ExplainedClaim is who may write the session.
type ExplainedClaim struct {
	Owner      string `json:"owner"`
	Kind       string `json:"kind"` // run, command, revoked
	RunID      string `json:"runId,omitempty"`
	Attempt    int64  `json:"attempt,omitempty"`
	Token      int64  `json:"token"`
	Live       bool   `json:"live"`
	LeaseAgeMs int64  `json:"leaseAgeMs"`  // since it was renewed
	LeaseLeft  int64  `json:"leaseLeftMs"` // negative: over
	TakeoverAt int64  `json:"takeoverAt"`  // from then on somebody else may take it
}

// ExplainedSettings are those that hold for a message that says nothing itself.
type ExplainedSettings struct {
	Channel         string `json:"channel"`
	ChatType        string `json:"chatType"` // direct, group, thread
	QueueMode       string `json:"queueMode"`
	QueueDebounceMs int64  `json:"queueDebounceMs"`
	QueueCap        int    `json:"queueCap"`
	QueueDrop       string `json:"queueDrop"`
	InboundMs       int64  `json:"inboundDebounceMs"`
	Reset           string `json:"reset"` // none, daily@HOUR, idle:MINUTES, or both behind a comma
}

// ExplainedRun is the run that has begun.
type ExplainedRun struct {
	RunID              string `json:"runId"`
	Lane               string `json:"lane"`
	State              string `json:"state"` // running, sleeping, stopping, dead
	Attempt            int64  `json:"attempt"`
	Stalled            int64  `json:"attemptsWithoutProgress"`
	MaxStalled         int64  `json:"maxAttemptsWithoutProgress"`
	Step               int64  `json:"step"`
	ToolCalls          int64  `json:"toolCalls"`
	AcceptedAt         int64  `json:"acceptedAt"`
	StartedAt          int64  `json:"startedAt"`
	RunningMs          int64  `json:"runningMs"`
	Work               string `json:"work,omitempty"` // model_call, tool_call, retry_wait, question
	Tool               string `json:"tool,omitempty"`
	ToolCallID         string `json:"toolCallId,omitempty"`
	WorkAgeMs          int64  `json:"workAgeMs,omitempty"`
	LastProgress       string `json:"lastProgressReason,omitempty"`
	LastProgressAgeMs  int64  `json:"lastProgressAgeMs"`
	WakeAt             int64  `json:"wakeAt,omitempty"`
	StopReason         string `json:"stopReason,omitempty"` // it was told to end
	UndeliveredSteers  int64  `json:"undeliveredSteers,omitempty"`
	RepeatedRequestsMs int64  `json:"repeatedRequestsMs,omitempty"`
}

// ExplainedWait is a message that waits.
type ExplainedWait struct {
	Position   int    `json:"position"` // from 1
	RunID      string `json:"runId"`
	Lane       string `json:"lane"`
	Mode       string `json:"mode,omitempty"` // queue mode; steer: waits for the active run's next step
	AcceptedAt int64  `json:"acceptedAt"`
	WaitingMs  int64  `json:"waitingMs"`
	// Disposition is what has become of the message by now.
	Disposition *Disposition `json:"disposition,omitempty"`
}

// ExplainedBound is a limit in force.
type ExplainedBound struct {
	Name string `json:"name"` // run_timeout, model_silence, tool_deadline, lease, stuck_warn, stuck_abort
	At   int64  `json:"at"`
	InMs int64  `json:"inMs"`
	Why  string `json:"why"` // this one and no other
}

// ExplainedAction is what happens by itself.
type ExplainedAction struct {
	Action string `json:"action"`
	At     int64  `json:"at,omitempty"` // 0: at once, or not known
	InMs   int64  `json:"inMs,omitempty"`
	Why    string `json:"why"`
}

// RunsList is the reply of runs.list.
type RunsList struct {
	TS         int64    `json:"ts"`
	Runs       []RunRow `json:"runs"`
	NextCursor string   `json:"nextCursor,omitempty"` // there are more
}

// RunRow is a run that is not over.
type RunRow struct {
	RunID             string `json:"runId"`
	SessionKey        string `json:"sessionKey"`
	AgentID           string `json:"agentId"`
	Lane              string `json:"lane"`
	Method            string `json:"method,omitempty"`
	State             string `json:"state"`              // pending, running, sleeping
	Position          int    `json:"position,omitempty"` // of a pending one in its session, from 1
	AcceptedAt        int64  `json:"acceptedAt"`
	StartedAt         int64  `json:"startedAt,omitempty"`
	ForMs             int64  `json:"forMs"` // in this state: since its start, or since it was accepted
	Attempt           int64  `json:"attempt,omitempty"`
	Step              int64  `json:"step,omitempty"`
	ToolCalls         int64  `json:"toolCalls,omitempty"`
	OwnerLive         *bool  `json:"ownerLive,omitempty"` // of a running one
	Work              string `json:"work,omitempty"`
	Tool              string `json:"tool,omitempty"`
	LastProgressAgeMs *int64 `json:"lastProgressAgeMs,omitempty"`
	WakeAt            int64  `json:"wakeAt,omitempty"`
	Stopping          bool   `json:"stopping,omitempty"`
	Usage             *Usage `json:"usage,omitempty"` // tokens so far
	// Used is what it has used so far, by what that is billed by; of attempts that died
	// it is not known.
	Used map[string]float64 `json:"used,omitempty"`
}

// RunCost is the reply of runs.cost: what a run used by what that is billed by, and
// what each costs by the list of Prices.
type RunCost struct {
	RunID      string             `json:"runId"`
	SessionKey string             `json:"sessionKey"`
	Ended      bool               `json:"ended"` // false: so far
	Attempts   int64              `json:"attempts,omitempty"`
	DurationMs int64              `json:"durationMs,omitempty"`
	Provider   string             `json:"provider,omitempty"`
	Model      string             `json:"model,omitempty"`
	Usage      *Usage             `json:"usage,omitempty"` // tokens
	Used       map[string]float64 `json:"used"`
	USD        float64            `json:"usd"`                // all that has a price
	CloudUSD   float64            `json:"cloudUsd"`           // without tokens
	Items      map[string]float64 `json:"items"`              // USD
	Unpriced   []string           `json:"unpriced,omitempty"` // used, with no price in the list
	Prices     string             `json:"prices"`             // date of the list
}

// RunAborted is the reply of runs.abort.
type RunAborted struct {
	OK         bool   `json:"ok"`
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	Aborted    bool   `json:"aborted"` // by this call
	// Status is aborted: the end is in the tables; ended: it had ended before, as
	// Outcome says; delivered: its message is part of the run Into; stopping: it can do
	// nothing more and is ended at EndsBy at the latest.
	Status  string `json:"status"`
	Outcome string `json:"outcome,omitempty"`
	Into    string `json:"into,omitempty"`
	EndsBy  int64  `json:"endsBy,omitempty"`
}

// DLQListParams selects dead letters.
type DLQListParams struct {
	Lane  string `json:"lane,omitempty" wire:"enum=main|cron|subagent|timers"` // absent: all
	Limit *int64 `json:"limit,omitempty" wire:"min=1,max=1000"`
}

// DLQParams names the dead letters of a lane; absent: of all.
type DLQParams struct {
	Lane string `json:"lane,omitempty" wire:"enum=main|cron|subagent|timers"`
}

// DLQTimers is the name of the timers among the lanes of dead letters.
const DLQTimers = "timers"

// DLQList is the reply of dlq.list.
type DLQList struct {
	Letters []DeadLetter `json:"letters"`
	HasMore bool         `json:"hasMore"`
}

// DeadLetter is a wake-up or timer that failed too often. What it carries for clients
// is not shown.
type DeadLetter struct {
	ID         string `json:"id"`
	Lane       string `json:"lane"` // or timers
	Receives   int    `json:"receives"`
	At         int64  `json:"at"` // when it was given up; 0: not known
	Kind       string `json:"kind"`
	Tenant     string `json:"tenant,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Bytes      int    `json:"bytes"`
}

// DLQDone is the reply of dlq.retry and dlq.purge.
type DLQDone struct {
	OK    bool           `json:"ok"`
	Count int            `json:"count"`
	Lanes map[string]int `json:"lanes"`
}
