package protocol

// Values of payload.status.
const (
	StatusAccepted = "accepted"
	StatusStarted  = "started"   // chat.send
	StatusInFlight = "in_flight" // a repeat of a running chat.send
	StatusPending  = "pending"   // agent.wait on a queued chat turn
	StatusOK       = "ok"
	StatusError    = "error"
	StatusTimeout  = "timeout"
)

// Values of summary, stopReason, timeoutPhase and livenessState.
const (
	SummaryCompleted = "completed"
	SummaryAborted   = "aborted"
	SummaryFailed    = "failed"

	StopDone       = "stop"
	StopRPC        = "rpc" // somebody asked for it
	StopTimeout    = "timeout"
	StopRestart    = "restart"
	StopSuperseded = "superseded"
	StopAborted    = "aborted"

	PhaseQueue     = "queue"
	PhasePreflight = "preflight"
	PhaseProvider  = "provider"
	PhasePostTurn  = "post_turn"
	PhaseDraining  = "gateway_draining"

	LivenessWorking   = "working"
	LivenessPaused    = "paused"
	LivenessBlocked   = "blocked"
	LivenessAbandoned = "abandoned"
)

// Disposition is what became of an arriving message: started, queued, steered,
// collected, superseded, summarised or dropped.
type Disposition struct {
	Kind     string `json:"kind"`
	Position int    `json:"position,omitempty"` // in the queue, from 1
	RunID    string `json:"runId,omitempty"`    // the run that took it
	Step     int64  `json:"step,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Accepted is the first reply of agent. A client that asked for the final keeps
// waiting only while status is exactly "accepted".
type Accepted struct {
	RunID       string       `json:"runId"`
	SessionKey  string       `json:"sessionKey"`
	AgentID     string       `json:"agentId"`
	Status      string       `json:"status"`
	AcceptedAt  int64        `json:"acceptedAt"` // epoch milliseconds
	Disposition *Disposition `json:"disposition,omitempty"`
}

// NewAccepted is the first reply of agent.
func NewAccepted(runID, sessionKey, agentID string, acceptedAtMs int64) Accepted {
	return Accepted{RunID: runID, SessionKey: sessionKey, AgentID: agentID, Status: StatusAccepted, AcceptedAt: acceptedAtMs}
}

// Payload is one piece of a reply. mediaUrl is null rather than absent, as clients
// know it.
type Payload struct {
	Text           string   `json:"text,omitempty"`
	MediaURL       *string  `json:"mediaUrl"`
	MediaURLs      []string `json:"mediaUrls,omitempty"`
	IsError        bool     `json:"isError,omitempty"`
	IsStatusNotice bool     `json:"isStatusNotice,omitempty"`
	IsReasoning    bool     `json:"isReasoning,omitempty"`
}

// Result is what a run brought. Meta stays small and does not repeat the reply.
type Result struct {
	Payloads       []Payload  `json:"payloads"` // never null
	Meta           ResultMeta `json:"meta"`
	DeliveryStatus any        `json:"deliveryStatus,omitempty"`
}

// ResultMeta is what is told about a run beside its reply.
type ResultMeta struct {
	DurationMs int64          `json:"durationMs"`
	AgentMeta  *AgentMeta     `json:"agentMeta,omitempty"`
	Truncated  bool           `json:"truncated,omitempty"` // the text was cut to fit; history has it whole
	Cost       map[string]any `json:"cost,omitempty"`
}

// AgentMeta names the model that answered and what it used.
type AgentMeta struct {
	SessionID string `json:"sessionId,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	Usage     *Usage `json:"usage,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CacheRead   int64 `json:"cacheRead,omitempty"`
	CacheWrite  int64 `json:"cacheWrite,omitempty"`
	TotalTokens int64 `json:"totalTokens"`
}

// Final is the second reply of agent, under the same request id. A failure that
// was thrown is answered with AppendFailure: ok false, a Final of status error
// without a result as the payload, and an UNAVAILABLE error of the same text.
type Final struct {
	RunID           string       `json:"runId"`
	Status          string       `json:"status"`
	Summary         string       `json:"summary"`
	StopReason      string       `json:"stopReason,omitempty"`
	TimeoutPhase    string       `json:"timeoutPhase,omitempty"`
	ProviderStarted *bool        `json:"providerStarted,omitempty"`
	EndedAt         int64        `json:"endedAt,omitempty"` // of a repeated chat.send
	Result          *Result      `json:"result,omitempty"`
	Disposition     *Disposition `json:"disposition,omitempty"`
}

// FinalOK is the reply of a run that completed.
func FinalOK(runID string, r Result) Final {
	return Final{RunID: runID, Status: StatusOK, Summary: SummaryCompleted, Result: r.filled()}
}

// FinalFailed is the reply of a run that failed but has something to show.
func FinalFailed(runID string, r Result) Final {
	return Final{RunID: runID, Status: StatusError, Summary: SummaryFailed, Result: r.filled()}
}

// FinalAborted is the reply of a run that was cancelled or ran out of time: both
// are a timeout to whoever holds the request, told apart by stopReason and phase.
// result may be nil.
func FinalAborted(runID, stopReason, phase string, providerStarted bool, result *Result) Final {
	f := Final{RunID: runID, Status: StatusTimeout, Summary: SummaryAborted, StopReason: stopReason, TimeoutPhase: phase}
	if phase != "" {
		f.ProviderStarted = &providerStarted
	}
	if result != nil {
		f.Result = result.filled()
	}
	return f
}

// FinalThrown is the payload beside the error of a run that broke.
func FinalThrown(runID, text string) Final {
	return Final{RunID: runID, Status: StatusError, Summary: text}
}

func (r Result) filled() *Result {
	if r.Payloads == nil {
		r.Payloads = []Payload{}
	}
	return &r
}

// Wait is the reply of agent.wait. What is absent says something: without endedAt
// the run is not over.
type Wait struct {
	RunID           string       `json:"runId"`
	Status          string       `json:"status"`
	StartedAt       int64        `json:"startedAt,omitempty"` // epoch milliseconds
	EndedAt         int64        `json:"endedAt,omitempty"`
	Error           string       `json:"error,omitempty"`
	StopReason      string       `json:"stopReason,omitempty"`
	LivenessState   string       `json:"livenessState,omitempty"`
	Yielded         bool         `json:"yielded,omitempty"`
	PendingError    bool         `json:"pendingError,omitempty"`
	TimeoutPhase    string       `json:"timeoutPhase,omitempty"`
	ProviderStarted *bool        `json:"providerStarted,omitempty"`
	TerminalReply   *Reply       `json:"terminalReply,omitempty"`
	TerminalReceipt *Receipt     `json:"terminalReceipt,omitempty"`
	Disposition     *Disposition `json:"disposition,omitempty"`
}

// WaitExpired is the reply when the window passed, or when nothing is known of the
// run: exactly runId and status.
func WaitExpired(runID string) Wait { return Wait{RunID: runID, Status: StatusTimeout} }

// WaitQueued is the reply about a chat turn that has not begun.
func WaitQueued(runID string) Wait {
	no := false
	return Wait{RunID: runID, Status: StatusPending, TimeoutPhase: PhaseQueue, ProviderStarted: &no}
}

// Reply is the text that a run ended with, cut to MaxReplyRunes. Disposition is
// "visible", or "silent" when there is nothing to show.
type Reply struct {
	Disposition string `json:"disposition"`
	Text        string `json:"text,omitempty"`
}

// MaxReplyRunes is the longest terminalReply.text.
const MaxReplyRunes = 4096

// NewReply is the Reply for a run's visible text.
func NewReply(text string) *Reply {
	if text == "" {
		return &Reply{Disposition: "silent"}
	}
	n := 0
	for i := range text {
		if n == MaxReplyRunes {
			text = text[:i]
			break
		}
		n++
	}
	return &Reply{Disposition: "visible", Text: text}
}

// Receipt says which model was asked for, which answered, and which tools worked.
type Receipt struct {
	RunID               string   `json:"runId"`
	SessionID           string   `json:"sessionId,omitempty"`
	TurnID              string   `json:"turnId"`
	Requested           ModelRef `json:"requested"`
	Effective           ModelRef `json:"effective"`
	SuccessfulToolNames []string `json:"successfulToolNames"`
	Rerouted            bool     `json:"rerouted"`
	TerminalDisposition string   `json:"terminalDisposition"`
}

// ModelRef names a model.
type ModelRef struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}
