package protocol

import "encoding/json"

// Names of events.
const (
	EventChallenge       = "connect.challenge"
	EventTick            = "tick"
	EventHealth          = "health"
	EventShutdown        = "shutdown"
	EventAgent           = "agent"
	EventChat            = "chat"
	EventSessionMessage  = "session.message"
	EventSessionTool     = "session.tool"
	EventSessionsChanged = "sessions.changed"
	EventDisposition     = "run.disposition"
)

// Names of the streams of the event agent.
const (
	StreamLifecycle     = "lifecycle"
	StreamAssistant     = "assistant"
	StreamThinking      = "thinking"
	StreamTool          = "tool"
	StreamItem          = "item"
	StreamCommandOutput = "command_output"
	StreamPatch         = "patch"
	StreamPlan          = "plan"
	StreamUsage         = "usage"
	StreamRunStatus     = "run_status"
	StreamCompaction    = "compaction"
	StreamApproval      = "approval"
	StreamNotice        = "notice"
)

// AgentEvent is the payload of the event agent.
type AgentEvent struct {
	RunID       string          `json:"runId"`
	Seq         int64           `json:"seq"` // per run, from 1, over all streams
	Stream      string          `json:"stream"`
	TS          int64           `json:"ts"`   // epoch milliseconds
	Data        json.RawMessage `json:"data"` // an object of the stream's own
	SessionKey  string          `json:"sessionKey,omitempty"`
	SessionID   string          `json:"sessionId,omitempty"`
	AgentID     string          `json:"agentId,omitempty"`
	SpawnedBy   string          `json:"spawnedBy,omitempty"`
	IsHeartbeat bool            `json:"isHeartbeat,omitempty"`
}

// Lifecycle is the data of the stream lifecycle. Phases: start, model, finishing,
// end, error. end and error are terminal, and one of them comes once.
type Lifecycle struct {
	Phase            string   `json:"phase"`
	StartedAt        int64    `json:"startedAt,omitempty"`
	EndedAt          int64    `json:"endedAt,omitempty"`
	Provider         string   `json:"provider,omitempty"`
	Model            string   `json:"model,omitempty"`
	Status           string   `json:"status,omitempty"` // "cancelled"
	Error            string   `json:"error,omitempty"`
	ErrorKind        string   `json:"errorKind,omitempty"`
	StopReason       string   `json:"stopReason,omitempty"`
	Aborted          *bool    `json:"aborted,omitempty"`
	TimeoutPhase     string   `json:"timeoutPhase,omitempty"`
	ProviderStarted  *bool    `json:"providerStarted,omitempty"`
	LivenessState    string   `json:"livenessState,omitempty"`
	ExecutionSettled bool     `json:"executionSettled,omitempty"`
	TerminalReply    *Reply   `json:"terminalReply,omitempty"`
	TerminalReceipt  *Receipt `json:"terminalReceipt,omitempty"`
}

// Phases of Lifecycle.
const (
	LifecycleStart     = "start"
	LifecycleModel     = "model"
	LifecycleFinishing = "finishing"
	LifecycleEnd       = "end"
	LifecycleError     = "error"
)

// AssistantText is the data of the streams assistant and thinking. Text is the
// whole text of the current message; with Replace it takes the place of what was
// shown instead of going on from it.
type AssistantText struct {
	Text    string `json:"text"`
	Delta   string `json:"delta"`
	ItemID  string `json:"itemId,omitempty"` // "<stream>:<message number>"
	Replace bool   `json:"replace,omitempty"`
}

// ToolEvent is the data of the stream tool. Phases: start, update, result.
type ToolEvent struct {
	Phase          string          `json:"phase"`
	Name           string          `json:"name"`
	ToolCallID     string          `json:"toolCallId"`
	Args           json.RawMessage `json:"args,omitempty"`
	PartialResult  json.RawMessage `json:"partialResult,omitempty"`
	Meta           string          `json:"meta,omitempty"` // one line
	IsError        *bool           `json:"isError,omitempty"`
	CommandBearing *bool           `json:"commandBearing,omitempty"`
	Result         json.RawMessage `json:"result,omitempty"`
}

// ToolItem is the data of the stream item for a tool call. Phases: start, update,
// end.
type ToolItem struct {
	ItemID     string `json:"itemId"` // "tool:<call id>"
	ToolCallID string `json:"toolCallId"`
	Name       string `json:"name"`
	Kind       string `json:"kind"` // "tool"
	Phase      string `json:"phase"`
	Title      string `json:"title"`
	Status     string `json:"status"` // running, completed, failed, blocked
	Meta       string `json:"meta,omitempty"`
	StartedAt  int64  `json:"startedAt"`
	EndedAt    int64  `json:"endedAt,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Chat is what all chat events share. Their schema is closed: nothing is added.
type Chat struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	SpawnedBy  string `json:"spawnedBy,omitempty"`
	Seq        int64  `json:"seq"` // of the run
	State      string `json:"state"`
}

// States of Chat. All but status and delta are terminal, and one of them comes once.
const (
	ChatStateStatus  = "status"
	ChatStateDelta   = "delta"
	ChatStateFinal   = "final"
	ChatStateAborted = "aborted"
	ChatStateError   = "error"
)

// ChatStatus says what a run is doing before its first text.
type ChatStatus struct {
	Chat
	Phase string `json:"phase"` // preparing_workspace, preparing_context, starting_model
}

// ChatDelta is new text. Terminals draw Message, which is the text so far; with
// Replace it takes the place of what was shown.
type ChatDelta struct {
	Chat
	DeltaText string       `json:"deltaText"`
	Replace   bool         `json:"replace,omitempty"`
	Message   *ChatMessage `json:"message,omitempty"`
}

// ChatFinal is the end of a run that completed. Without a message a client drops
// what it streamed and reads the history.
type ChatFinal struct {
	Chat
	StopReason string       `json:"stopReason,omitempty"`
	Message    *ChatMessage `json:"message,omitempty"`
	Usage      *Usage       `json:"usage,omitempty"`
}

// ChatAbortedEvent is the end of a run that was stopped, with what it had said.
type ChatAbortedEvent struct {
	Chat
	StopReason   string       `json:"stopReason,omitempty"`
	ErrorMessage string       `json:"errorMessage,omitempty"`
	Message      *ChatMessage `json:"message,omitempty"`
}

// ChatErrorEvent is the end of a run that failed.
type ChatErrorEvent struct {
	Chat
	ErrorMessage string           `json:"errorMessage"`
	ErrorKind    string           `json:"errorKind,omitempty"` // see ChatErrorKind
	ErrorDetail  *ChatErrorDetail `json:"errorDetail,omitempty"`
	StopReason   string           `json:"stopReason,omitempty"`
	Message      *ChatMessage     `json:"message,omitempty"`
}

// ChatErrorKind is the kind to send for a class of model failure: the schema knows
// five, everything else is unknown.
func ChatErrorKind(class string) string {
	switch class {
	case "refusal", "timeout", "rate_limit", "context_length":
		return class
	case "context_overflow":
		return "context_length"
	case "overloaded":
		return "rate_limit"
	case "idle_timeout", "idle_timeout_circuit_breaker":
		return "timeout"
	}
	return "unknown"
}

// ChatErrorDetail names what failed; texts are at most 300 characters.
type ChatErrorDetail struct {
	Provider            string `json:"provider,omitempty"`
	Model               string `json:"model,omitempty"`
	FailoverReason      string `json:"failoverReason,omitempty"`
	ProviderFailureKind string `json:"providerRuntimeFailureKind,omitempty"`
	ProviderErrorType   string `json:"providerErrorType,omitempty"`
	HTTPStatus          int    `json:"httpStatus,omitempty"` // 100 to 599
}

// ChatMessage is an assistant's message.
type ChatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"` // list of ContentPart
	Timestamp int64           `json:"timestamp"`
}

// AssistantMessage is a message of one text.
func AssistantMessage(text string, ts int64) *ChatMessage {
	return &ChatMessage{Role: "assistant", Content: TextContent(text), Timestamp: ts}
}

// Tick tells a client that the connection lives.
type Tick struct {
	TS int64 `json:"ts"` // epoch milliseconds
}

// Shutdown says that the server ends.
type Shutdown struct {
	Reason            string `json:"reason"`
	RestartExpectedMs int64  `json:"restartExpectedMs,omitempty"`
}

// SessionsChangedEvent says that a session's row is another now.
type SessionsChangedEvent struct {
	SessionKey string      `json:"sessionKey"`
	AgentID    string      `json:"agentId,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Phase      string      `json:"phase,omitempty"`
	RunID      string      `json:"runId,omitempty"`
	TS         int64       `json:"ts"`
	Session    *SessionRow `json:"session,omitempty"`
}

// SessionMessageEvent is a row that was added to a transcript.
type SessionMessageEvent struct {
	SessionKey string     `json:"sessionKey"`
	AgentID    string     `json:"agentId,omitempty"`
	Message    HistoryRow `json:"message"`
	MessageID  string     `json:"messageId"`
	MessageSeq int64      `json:"messageSeq"`
}

// DispositionEvent says what became of a message, when that changed.
type DispositionEvent struct {
	RunID       string      `json:"runId"`
	SessionKey  string      `json:"sessionKey"`
	Disposition Disposition `json:"disposition"`
}
