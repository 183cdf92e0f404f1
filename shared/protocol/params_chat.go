package protocol

import (
	"encoding/json"
	"errors"
	"strings"
)

// Queue modes: what becomes of a message that arrives while a run is active.
const (
	QueueSteer     = "steer"
	QueueFollowup  = "followup"
	QueueCollect   = "collect"
	QueueInterrupt = "interrupt"
)

// ChatSendParams sends a message into a session. IdempotencyKey is the run id.
// Message is clean (see CleanChatText) after Decode.
type ChatSendParams struct {
	SessionKey     string       `json:"sessionKey" wire:"required,id"`
	Message        string       `json:"message" wire:"required"`
	IdempotencyKey string       `json:"idempotencyKey" wire:"required,key"`
	AgentID        string       `json:"agentId,omitempty" wire:"min=1,max=128"`
	SessionID      string       `json:"sessionId,omitempty" wire:"id"`
	Thinking       string       `json:"thinking,omitempty" wire:"max=64"`
	FastMode       *FastMode    `json:"fastMode,omitempty"`
	FastAutoOn     *int64       `json:"fastAutoOnSeconds,omitempty" wire:"min=1"`
	QueueMode      string       `json:"queueMode,omitempty" wire:"enum=steer|followup|collect|interrupt"`
	Deliver        bool         `json:"deliver,omitempty"`
	TimeoutMs      *int64       `json:"timeoutMs,omitempty" wire:"min=0"` // execution budget
	Attachments    []Attachment `json:"attachments,omitempty" wire:"max=64"`

	ReplyToID            string          `json:"replyToId,omitempty" wire:"min=1,max=512"`
	OriginatingChannel   string          `json:"originatingChannel,omitempty" wire:"max=512"`
	OriginatingTo        string          `json:"originatingTo,omitempty" wire:"max=512"`
	OriginatingAccountID string          `json:"originatingAccountId,omitempty" wire:"max=512"`
	OriginatingThreadID  string          `json:"originatingThreadId,omitempty" wire:"max=512"`
	Mentions             json.RawMessage `json:"mentions,omitempty" wire:"array"`
	WorkContext          json.RawMessage `json:"workContext,omitempty" wire:"object"`
	Intent               json.RawMessage `json:"intent,omitempty" wire:"object"`
	ToolBindings         json.RawMessage `json:"toolBindings,omitempty" wire:"object"`

	// SuppressCommandInterpretation sends a text that looks like a command to the model.
	SuppressCommandInterpretation bool                      `json:"suppressCommandInterpretation,omitempty"`
	ExpectedLeafEntryID           Optional[string]          `json:"expectedLeafEntryId,omitzero" wire:"min=1,max=512"`
	ExpectedRoutingContract       string                    `json:"expectedSessionRoutingContract,omitempty" wire:"min=1,max=512"`
	ExpectedPermissionMode        Optional[string]          `json:"expectedPermissionMode,omitzero" wire:"enum=read-only|guarded|workspace|full"`
	ExpectedToolOverrides         Optional[json.RawMessage] `json:"expectedToolOverrides,omitzero" wire:"object"`

	SystemInputProvenance   Refused `json:"systemInputProvenance,omitzero"`
	SystemProvenanceReceipt Refused `json:"systemProvenanceReceipt,omitzero"`
}

func (p *ChatSendParams) check(at *problems) {
	p.Message = cleanMember(p.Message, at)
	needText(p.Message, len(p.Attachments), at)
}

// cleanMember cleans the member "message" of the object at hand.
func cleanMember(text string, at *problems) string {
	clean, err := CleanChatText(text)
	if err != nil {
		at.member("message", err.Error())
	}
	return clean
}

func needText(text string, attachments int, at *problems) {
	if attachments == 0 && strings.TrimSpace(text) == "" {
		at.refuse(Invalid("message or attachment required"))
	}
}

// FastMode is true, false or "auto".
type FastMode struct{ On, Auto bool }

// UnmarshalJSON reads the form of the wire.
func (f *FastMode) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case "true":
		*f = FastMode{On: true}
	case "false":
		*f = FastMode{}
	case `"auto"`:
		*f = FastMode{Auto: true}
	default:
		return errors.New("must be boolean or 'auto'")
	}
	return nil
}

func (FastMode) shape() map[string]any {
	return map[string]any{"enum": []any{true, false, "auto"}}
}

// MarshalJSON writes the form that clients send.
func (f FastMode) MarshalJSON() ([]byte, error) {
	if f.Auto {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(f.On)
}

// ChatAbortParams stops one run of a session, or all that it has.
type ChatAbortParams struct {
	SessionKey       string `json:"sessionKey" wire:"required,id"`
	AgentID          string `json:"agentId,omitempty" wire:"min=1,max=128"`
	RunID            string `json:"runId,omitempty" wire:"id"`
	PreserveSideRuns bool   `json:"preserveSideRuns,omitempty"`
}

// ChatHistoryParams reads a session's messages, newest page first.
type ChatHistoryParams struct {
	SessionKey    string   `json:"sessionKey" wire:"required,id"`
	AgentID       string   `json:"agentId,omitempty" wire:"min=1,max=128"`
	SessionID     string   `json:"sessionId,omitempty" wire:"id"`
	Cursor        string   `json:"cursor,omitempty" wire:"max=4096"`
	Limit         *int64   `json:"limit,omitempty" wire:"min=1,max=1000"`
	MaxBytes      *int64   `json:"maxBytes,omitempty" wire:"min=1024"`
	MaxChars      *int64   `json:"maxChars,omitempty" wire:"min=1,max=500000"`
	Offset        *int64   `json:"offset,omitempty" wire:"min=0"`
	MessageID     string   `json:"messageId,omitempty" wire:"id"`
	PendingBefore *int64   `json:"pendingBefore,omitempty" wire:"min=1"`
	InputRunIDs   []string `json:"inputRunIds,omitempty" wire:"min=1,max=50;id"`
}

// ChatStartupParams is what a browser asks first: a history by session key or by
// short id.
type ChatStartupParams struct {
	SessionKey    string   `json:"sessionKey,omitempty" wire:"id"`
	ShortID       string   `json:"shortId,omitempty" wire:"id"`
	SlugHint      string   `json:"slugHint,omitempty" wire:"min=1,max=512"`
	AgentID       string   `json:"agentId,omitempty" wire:"min=1,max=128"`
	SessionID     string   `json:"sessionId,omitempty" wire:"id"`
	Cursor        string   `json:"cursor,omitempty" wire:"max=4096"`
	Limit         *int64   `json:"limit,omitempty" wire:"min=1,max=1000"`
	MaxBytes      *int64   `json:"maxBytes,omitempty" wire:"min=1024"`
	MaxChars      *int64   `json:"maxChars,omitempty" wire:"min=1,max=500000"`
	Offset        *int64   `json:"offset,omitempty" wire:"min=0"`
	MessageID     string   `json:"messageId,omitempty" wire:"id"`
	PendingBefore *int64   `json:"pendingBefore,omitempty" wire:"min=1"`
	InputRunIDs   []string `json:"inputRunIds,omitempty" wire:"min=1,max=50;id"`
}

func (p *ChatStartupParams) check(at *problems) {
	if p.SessionKey == "" && p.ShortID == "" {
		at.lacks("sessionKey")
	}
	if p.SessionKey != "" && p.ShortID != "" {
		at.member("shortId", "must not come with sessionKey")
	}
	if p.ShortID != "" && p.AgentID == "" {
		at.lacks("agentId")
	}
}

// History is the same question by session key.
func (p *ChatStartupParams) History() ChatHistoryParams {
	return ChatHistoryParams{
		SessionKey: p.SessionKey, AgentID: p.AgentID, SessionID: p.SessionID, Cursor: p.Cursor, Limit: p.Limit, MaxBytes: p.MaxBytes,
		MaxChars: p.MaxChars, Offset: p.Offset, MessageID: p.MessageID, PendingBefore: p.PendingBefore, InputRunIDs: p.InputRunIDs,
	}
}

// ChatInjectParams writes an assistant message into a session without a run.
type ChatInjectParams struct {
	SessionKey string `json:"sessionKey" wire:"required,id"`
	AgentID    string `json:"agentId,omitempty" wire:"min=1,max=128"`
	Message    string `json:"message" wire:"required,min=1"`
	Label      string `json:"label,omitempty" wire:"max=100"`
}

func (p *ChatInjectParams) check(at *problems) {
	p.Message = cleanMember(p.Message, at)
	if p.Message == "" {
		at.member("message", "must not have fewer than 1 characters")
	}
}

// ChatMetadataParams asks for the models and commands that a session can use.
type ChatMetadataParams struct {
	AgentID       string `json:"agentId,omitempty" wire:"min=1,max=128"`
	SessionKey    string `json:"sessionKey,omitempty" wire:"id"`
	AuthProfileID string `json:"authProfileId,omitempty" wire:"min=1,max=256"`
}
