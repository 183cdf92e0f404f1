package protocol

import "encoding/json"

// ChatSent is the reply of chat.send and sessions.send.
type ChatSent struct {
	RunID       string       `json:"runId"`
	Status      string       `json:"status"`
	MessageSeq  int64        `json:"messageSeq,omitempty"`           // when the user row is stored already
	Interrupted bool         `json:"interruptedActiveRun,omitempty"` // it ended the run that was at work
	Disposition *Disposition `json:"disposition,omitempty"`
}

// ChatAborted is the reply of chat.abort. Nothing to abort is no error.
type ChatAborted struct {
	OK      bool     `json:"ok"`
	Aborted bool     `json:"aborted"`
	RunIDs  []string `json:"runIds"`
}

// NewChatAborted is the reply for the runs that were stopped.
func NewChatAborted(runIDs ...string) ChatAborted {
	return ChatAborted{OK: true, Aborted: len(runIDs) > 0, RunIDs: append([]string{}, runIDs...)}
}

// ChatInjected is the reply of chat.inject.
type ChatInjected struct {
	OK        bool   `json:"ok"`
	MessageID string `json:"messageId"`
}

// History is the reply of chat.history and chat.startup. An unknown session has no
// messages and no session id; it is no error.
type History struct {
	SessionKey    string           `json:"sessionKey"`
	SessionID     string           `json:"sessionId,omitempty"`
	Messages      []HistoryRow     `json:"messages"` // oldest first
	PendingInputs PendingInputs    `json:"pendingInputs"`
	DeltaCursor   string           `json:"deltaCursor,omitempty"`
	HasMore       bool             `json:"hasMore"` // older ones exist
	NextOffset    int64            `json:"nextOffset,omitempty"`
	TotalMessages int64            `json:"totalMessages"`
	Defaults      *HistoryDefaults `json:"defaults,omitempty"`
	SessionInfo   *SessionRow      `json:"sessionInfo,omitempty"`
	InFlightRun   *InFlightRun     `json:"inFlightRun,omitempty"`
}

// HistoryDelta is the reply of chat.history to a cursor (the DeltaCursor of an
// earlier reply): what came after it.
type HistoryDelta struct {
	Kind          string        `json:"kind"` // "delta"
	Messages      []HistoryRow  `json:"messages"`
	DeltaCursor   string        `json:"deltaCursor"`
	SessionInfo   *SessionRow   `json:"sessionInfo"`
	PendingInputs PendingInputs `json:"pendingInputs"`
}

// HistoryReset is the reply to a cursor from which nothing goes on: the client reads
// the history anew.
type HistoryReset struct {
	Kind string `json:"kind"` // "reset"
}

// HistoryDefaults is the model of sessions that choose none.
type HistoryDefaults struct {
	ModelProvider string `json:"modelProvider,omitempty"`
	Model         string `json:"model,omitempty"`
	ContextTokens int64  `json:"contextTokens,omitempty"`
}

// InFlightRun is the text that the active run has streamed so far.
type InFlightRun struct {
	RunID string `json:"runId"`
	Text  string `json:"text"`
}

// PendingInputs lists messages that were accepted and are not in the transcript.
type PendingInputs struct {
	Items []PendingInput `json:"items"`
	Total int            `json:"total"`
}

// PendingInput is one of them.
type PendingInput struct {
	RunID     string `json:"runId"`
	Text      string `json:"text"`
	Timestamp int64  `json:"timestamp"`
}

// HistoryRow is a message of the transcript.
type HistoryRow struct {
	Role string `json:"role"` // user, assistant, toolResult
	// Content is a string, or a list of ContentPart.
	Content        json.RawMessage `json:"content"`
	Timestamp      int64           `json:"timestamp"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty"` // "<runId>:user" of a user row, "<runId>:assistant" of what a stopped run left
	ToolCallID     string          `json:"toolCallId,omitempty"`
	ToolName       string          `json:"toolName,omitempty"`
	IsError        bool            `json:"isError,omitempty"`
	Provider       string          `json:"provider,omitempty"`
	Model          string          `json:"model,omitempty"`
	Usage          *Usage          `json:"usage,omitempty"`
	StopReason     string          `json:"stopReason,omitempty"`
	ErrorMessage   string          `json:"errorMessage,omitempty"`
	OpenclawAbort  *AbortMark      `json:"openclawAbort,omitempty"`
	Openclaw       RowMark         `json:"__openclaw"`
}

// RowMark says where a row is and which run wrote it.
type RowMark struct {
	ID        string `json:"id"`
	Seq       int64  `json:"seq"`
	RunID     string `json:"runId,omitempty"`
	Truncated bool   `json:"truncated,omitempty"` // content was cut to fit the reply
}

// AbortMark is the provenance of a text that a stopped run left.
type AbortMark struct {
	Aborted bool   `json:"aborted"`
	Origin  string `json:"origin"` // what stopped it: rpc, timeout, ...
	RunID   string `json:"runId"`
}

// UserRowKey is the idempotency key of the user row of a run. A transcript has at
// most one row of a key.
func UserRowKey(runID string) string { return runID + ":user" }

// ContentPart is a piece of a message: text, thinking, toolCall, image.
type ContentPart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	ID        string          `json:"id,omitempty"`   // of toolCall
	Name      string          `json:"name,omitempty"` // of toolCall
	Arguments json.RawMessage `json:"arguments,omitempty"`
	MimeType  string          `json:"mimeType,omitempty"`
}

// MarshalJSON keeps "text" also when it is empty: clients read it from every part
// of type text.
func (c ContentPart) MarshalJSON() ([]byte, error) {
	if c.Type == "text" {
		return Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{c.Type, c.Text})
	}
	type plain ContentPart
	return Marshal(plain(c))
}

// TextContent is a content list of one text.
func TextContent(text string) json.RawMessage {
	b := append([]byte(nil), `[{"type":"text","text":`...)
	b = AppendString(b, text)
	return append(b, "}]"...)
}

// StringContent is a content that is the text itself, as user rows have it.
func StringContent(text string) json.RawMessage { return AppendString(nil, text) }
