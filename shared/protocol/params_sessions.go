package protocol

import (
	"encoding/json"
	"errors"
)

// NoParams is for methods that take none.
type NoParams struct{}

// SessionKeyParams names a session: sessions.messages.unsubscribe, sessions.explain.
type SessionKeyParams struct {
	Key     string `json:"key" wire:"required,id"`
	AgentID string `json:"agentId,omitempty" wire:"min=1,max=128"`
}

// SessionsMessagesSubscribeParams asks for the events of one session.
type SessionsMessagesSubscribeParams struct {
	Key              string `json:"key" wire:"required,id"`
	AgentID          string `json:"agentId,omitempty" wire:"min=1,max=128"`
	IncludeApprovals bool   `json:"includeApprovals,omitempty"`
}

// SessionsListParams selects sessions. sessions.subscribe takes the same, since it
// may answer with a list.
type SessionsListParams struct {
	Limit                  *int64          `json:"limit,omitempty" wire:"min=1"`
	Offset                 *int64          `json:"offset,omitempty" wire:"min=0"`
	AgentID                string          `json:"agentId,omitempty" wire:"min=1,max=128"`
	Label                  string          `json:"label,omitempty" wire:"min=1,max=512"`
	Search                 string          `json:"search,omitempty" wire:"max=512"`
	Group                  string          `json:"group,omitempty" wire:"max=512"`
	SpawnedBy              string          `json:"spawnedBy,omitempty" wire:"id"`
	ActiveMinutes          *int64          `json:"activeMinutes,omitempty" wire:"min=1"`
	ActiveOnly             bool            `json:"activeOnly,omitempty"`
	SortBy                 string          `json:"sortBy,omitempty" wire:"enum=updatedAt|lastInteractionAt|activity"`
	Archived               *ArchivedFilter `json:"archived,omitempty"`
	Pinned                 *bool           `json:"pinned,omitempty"`
	IncludeGlobal          bool            `json:"includeGlobal,omitempty"`
	IncludeUnknown         bool            `json:"includeUnknown,omitempty"`
	IncludeDerivedTitles   bool            `json:"includeDerivedTitles,omitempty"`
	IncludeLastMessage     bool            `json:"includeLastMessage,omitempty"`
	IncludeActivitySummary bool            `json:"includeActivitySummary,omitempty"`
	IncludePeople          bool            `json:"includePeople,omitempty"`
	ExcludeSubagents       bool            `json:"excludeSubagents,omitempty"`
	ExcludeCron            bool            `json:"excludeCron,omitempty"`
	ExcludeSystem          bool            `json:"excludeSystem,omitempty"`
	ConfiguredAgentsOnly   bool            `json:"configuredAgentsOnly,omitempty"`
	RequireLastInteraction bool            `json:"requireLastInteraction,omitempty"`
	BoardFace              string          `json:"boardFace,omitempty" wire:"enum=chat|dashboard"`
	HasBoard               *bool           `json:"hasBoard,omitempty"`
	ProjectID              string          `json:"projectId,omitempty" wire:"id"`
	WorkspaceDir           string          `json:"workspaceDir,omitempty" wire:"min=1,max=4096"`
	CreatorID              string          `json:"creatorId,omitempty" wire:"id"`
	OwnerID                string          `json:"ownerId,omitempty" wire:"id"`
	OwnerFirst             bool            `json:"ownerFirst,omitempty"`
	InvolvingMe            bool            `json:"involvingMe,omitempty"`
	InvolvingProfileID     string          `json:"involvingProfileId,omitempty" wire:"id"`
	ProfileRelation        json.RawMessage `json:"profileRelation,omitempty" wire:"object"`
}

// ArchivedFilter is true, false or "all".
type ArchivedFilter struct{ Archived, All bool }

// UnmarshalJSON reads the form of the wire.
func (f *ArchivedFilter) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case "true":
		*f = ArchivedFilter{Archived: true}
	case "false":
		*f = ArchivedFilter{}
	case `"all"`:
		*f = ArchivedFilter{All: true}
	default:
		return errors.New("must be boolean or 'all'")
	}
	return nil
}

func (ArchivedFilter) shape() map[string]any {
	return map[string]any{"enum": []any{true, false, "all"}}
}

// MarshalJSON writes the form that clients send.
func (f ArchivedFilter) MarshalJSON() ([]byte, error) {
	if f.All {
		return []byte(`"all"`), nil
	}
	return json.Marshal(f.Archived)
}

// SessionsDescribeParams asks for one session's row.
type SessionsDescribeParams struct {
	Key                  string `json:"key" wire:"required,id"`
	AgentID              string `json:"agentId,omitempty" wire:"min=1,max=128"`
	IncludeDerivedTitles bool   `json:"includeDerivedTitles,omitempty"`
	IncludeLastMessage   bool   `json:"includeLastMessage,omitempty"`
}

// SessionsResolveParams finds a session by one of its names.
type SessionsResolveParams struct {
	Key            string          `json:"key,omitempty" wire:"id"`
	SessionID      string          `json:"sessionId,omitempty" wire:"id"`
	Label          string          `json:"label,omitempty" wire:"min=1,max=512"`
	ShortID        string          `json:"shortId,omitempty" wire:"id"`
	SlugHint       string          `json:"slugHint,omitempty" wire:"min=1,max=512"`
	Reference      json.RawMessage `json:"reference,omitempty" wire:"object"`
	AgentID        string          `json:"agentId,omitempty" wire:"min=1,max=128"`
	SpawnedBy      string          `json:"spawnedBy,omitempty" wire:"id"`
	IncludeGlobal  bool            `json:"includeGlobal,omitempty"`
	IncludeUnknown bool            `json:"includeUnknown,omitempty"`
	AllowMissing   bool            `json:"allowMissing,omitempty"`
}

func (p *SessionsResolveParams) check(at *problems) {
	if p.Key == "" && p.SessionID == "" && p.Label == "" && p.ShortID == "" && p.Reference == nil {
		at.is("must have one of key, sessionId, label, shortId")
	}
}

// SessionsGetParams reads the messages of a session.
type SessionsGetParams struct {
	Key     string `json:"key" wire:"required,id"`
	AgentID string `json:"agentId,omitempty" wire:"min=1,max=128"`
	Limit   *int64 `json:"limit,omitempty" wire:"min=1,max=1000"`
}

// SessionsPreviewParams reads the last few messages of several sessions.
type SessionsPreviewParams struct {
	Keys     []string `json:"keys" wire:"required,min=1,max=64;id"`
	Limit    *int64   `json:"limit,omitempty" wire:"min=1"`
	MaxChars *int64   `json:"maxChars,omitempty" wire:"min=20"`
}

// SessionsAbortParams stops what a session does, or one run.
type SessionsAbortParams struct {
	Key         string `json:"key,omitempty" wire:"id"`
	RunID       string `json:"runId,omitempty" wire:"id"`
	AgentID     string `json:"agentId,omitempty" wire:"min=1,max=128"`
	ClearQueued *bool  `json:"clearQueued,omitempty"`
}

func (p *SessionsAbortParams) check(at *problems) {
	if p.Key == "" && p.RunID == "" {
		at.is("must have one of key, runId")
	}
}

// SessionsResetParams starts a session over.
type SessionsResetParams struct {
	Key               string `json:"key" wire:"required,id"`
	AgentID           string `json:"agentId,omitempty" wire:"min=1,max=128"`
	Reason            string `json:"reason,omitempty" wire:"enum=new|reset"`
	ExpectedSessionID string `json:"expectedSessionId,omitempty" wire:"id"`
}

// SessionsDeleteParams removes a session.
type SessionsDeleteParams struct {
	Key                       string   `json:"key" wire:"required,id"`
	AgentID                   string   `json:"agentId,omitempty" wire:"min=1,max=128"`
	DeleteTranscript          *bool    `json:"deleteTranscript,omitempty"`
	ArchivedOnly              bool     `json:"archivedOnly,omitempty"`
	EmitLifecycleHooks        *bool    `json:"emitLifecycleHooks,omitempty"`
	ExpectedSessionID         string   `json:"expectedSessionId,omitempty" wire:"id"`
	ExpectedLifecycleRevision string   `json:"expectedLifecycleRevision,omitempty" wire:"min=1,max=512"`
	ExpectedSessionUpdatedAt  *float64 `json:"expectedSessionUpdatedAt,omitempty" wire:"min=0"`
}

// SessionsPatchParams changes preferences of a session; null takes one back to its
// default.
type SessionsPatchParams struct {
	Key                       string             `json:"key" wire:"required,id"`
	AgentID                   string             `json:"agentId,omitempty" wire:"min=1,max=128"`
	ExpectedSessionID         string             `json:"expectedSessionId,omitempty" wire:"id"`
	ExpectedLifecycleRevision string             `json:"expectedLifecycleRevision,omitempty" wire:"min=1,max=512"`
	Label                     Optional[string]   `json:"label,omitzero" wire:"min=1,max=512"`
	AutoLabel                 Optional[string]   `json:"autoLabel,omitzero" wire:"min=1,max=512"`
	Icon                      Optional[string]   `json:"icon,omitzero" wire:"max=512"`
	Color                     Optional[string]   `json:"color,omitzero" wire:"max=512"`
	Category                  Optional[string]   `json:"category,omitzero" wire:"min=1,max=512"`
	StatusNote                Optional[string]   `json:"statusNote,omitzero" wire:"max=120"`
	Archived                  *bool              `json:"archived,omitempty"`
	Pinned                    *bool              `json:"pinned,omitempty"`
	Unread                    *bool              `json:"unread,omitempty"`
	Model                     Optional[string]   `json:"model,omitzero" wire:"min=1,max=512"`
	AgentRuntime              Optional[string]   `json:"agentRuntime,omitzero" wire:"min=1,max=128"`
	ContextWindow             Optional[string]   `json:"contextWindow,omitzero" wire:"min=1,max=128"`
	ThinkingLevel             Optional[string]   `json:"thinkingLevel,omitzero" wire:"min=1,max=64"`
	FastMode                  Optional[FastMode] `json:"fastMode,omitzero"`
	VerboseLevel              Optional[string]   `json:"verboseLevel,omitzero" wire:"min=1,max=64"`
	TraceLevel                Optional[string]   `json:"traceLevel,omitzero" wire:"min=1,max=64"`
	ReasoningLevel            Optional[string]   `json:"reasoningLevel,omitzero" wire:"min=1,max=64"`
	ElevatedLevel             Optional[string]   `json:"elevatedLevel,omitzero" wire:"min=1,max=64"`
	ResponseUsage             Optional[string]   `json:"responseUsage,omitzero" wire:"enum=off|tokens|full|on"`
	SendPolicy                Optional[string]   `json:"sendPolicy,omitzero" wire:"enum=allow|deny"`
	GroupActivation           Optional[string]   `json:"groupActivation,omitzero" wire:"enum=mention|always"`
	PermissionMode            Optional[string]   `json:"permissionMode,omitzero" wire:"enum=read-only|guarded|workspace|full"`
	ExecHost                  Optional[string]   `json:"execHost,omitzero" wire:"min=1,max=128"`
	ExecSecurity              Optional[string]   `json:"execSecurity,omitzero" wire:"min=1,max=128"`
	ExecAsk                   Optional[string]   `json:"execAsk,omitzero" wire:"min=1,max=128"`
	ExecNode                  Optional[string]   `json:"execNode,omitzero" wire:"min=1,max=128"`
	// The reference sets these by /queue only.
	QueueMode       Optional[string] `json:"queueMode,omitzero" wire:"enum=steer|followup|collect|interrupt"`
	QueueDebounceMs Optional[int64]  `json:"queueDebounceMs,omitzero" wire:"min=0"`
	QueueCap        Optional[int64]  `json:"queueCap,omitzero" wire:"min=1"`
	QueueDrop       Optional[string] `json:"queueDrop,omitzero" wire:"enum=old|new|summarize"`
}

// SessionsCreateParams makes a session, and starts a run if there is a message.
type SessionsCreateParams struct {
	Key              string          `json:"key,omitempty" wire:"id"`
	IdempotencyKey   string          `json:"idempotencyKey,omitempty" wire:"key"`
	AgentID          string          `json:"agentId,omitempty" wire:"min=1,max=128"`
	Label            string          `json:"label,omitempty" wire:"min=1,max=512"`
	DisplayName      string          `json:"displayName,omitempty" wire:"min=1,max=500"`
	Category         string          `json:"category,omitempty" wire:"min=1,max=512"`
	TitleSource      string          `json:"titleSource,omitempty" wire:"max=1000"`
	Model            string          `json:"model,omitempty" wire:"min=1,max=512"`
	AgentRuntime     string          `json:"agentRuntime,omitempty" wire:"min=1,max=128"`
	ContextWindow    string          `json:"contextWindow,omitempty" wire:"min=1,max=128"`
	ThinkingLevel    string          `json:"thinkingLevel,omitempty" wire:"min=1,max=64"`
	FastMode         *FastMode       `json:"fastMode,omitempty"`
	PermissionMode   string          `json:"permissionMode,omitempty" wire:"enum=read-only|guarded|workspace|full"`
	ToolOverrides    json.RawMessage `json:"toolOverrides,omitempty" wire:"object"`
	Visibility       string          `json:"visibility,omitempty" wire:"enum=shared|read-only|suggest|draft"`
	ParentSessionKey string          `json:"parentSessionKey,omitempty" wire:"id"`
	SpawnDepth       *int64          `json:"spawnDepth,omitempty" wire:"min=1"`
	EmitCommandHooks *bool           `json:"emitCommandHooks,omitempty"`
	SucceedsParent   *bool           `json:"succeedsParent,omitempty"`
	Task             string          `json:"task,omitempty"`
	Message          string          `json:"message,omitempty"`
	Attachments      []Attachment    `json:"attachments,omitempty" wire:"max=64"`
	Mentions         json.RawMessage `json:"mentions,omitempty" wire:"array"`
	TimeoutMs        *int64          `json:"timeoutMs,omitempty" wire:"min=0"`
	Cwd              string          `json:"cwd,omitempty" wire:"min=1,max=4096"`
	Incognito        bool            `json:"incognito,omitempty"`
	Fork             bool            `json:"fork,omitempty"`
}

func (p *SessionsCreateParams) check(at *problems) {
	p.Message = cleanMember(p.Message, at)
	if p.Cwd != "" && !absolute(p.Cwd) {
		at.member("cwd", "must be an absolute path")
	}
}

// SessionsSendParams is chat.send by session key; without IdempotencyKey the
// gateway makes the run id.
type SessionsSendParams struct {
	Key            string          `json:"key" wire:"required,id"`
	AgentID        string          `json:"agentId,omitempty" wire:"min=1,max=128"`
	Message        string          `json:"message" wire:"required"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty" wire:"key"`
	Thinking       string          `json:"thinking,omitempty" wire:"max=64"`
	TimeoutMs      *int64          `json:"timeoutMs,omitempty" wire:"min=0"`
	Attachments    []Attachment    `json:"attachments,omitempty" wire:"max=64"`
	Mentions       json.RawMessage `json:"mentions,omitempty" wire:"array"`
}

func (p *SessionsSendParams) check(at *problems) {
	p.Message = cleanMember(p.Message, at)
	needText(p.Message, len(p.Attachments), at)
}

// SessionsCompactParams shortens a session's past now.
type SessionsCompactParams struct {
	Key      string `json:"key" wire:"required,id"`
	AgentID  string `json:"agentId,omitempty" wire:"min=1,max=128"`
	MaxLines *int64 `json:"maxLines,omitempty" wire:"min=1"`
}
