package protocol

import "encoding/json"

// SessionRow is what clients see of a session.
type SessionRow struct {
	Key               string   `json:"key"`
	SessionID         string   `json:"sessionId,omitempty"`
	PreviousID        string   `json:"previousSessionId,omitempty"` // of the transcript before the session started over by itself
	AgentID           string   `json:"agentId,omitempty"`
	Kind              string   `json:"kind"` // direct, group, global, unknown
	Label             string   `json:"label,omitempty"`
	DisplayName       string   `json:"displayName,omitempty"`
	DerivedTitle      string   `json:"derivedTitle,omitempty"`
	LastMessage       string   `json:"lastMessagePreview,omitempty"`
	IsMain            bool     `json:"isMain,omitempty"`
	Archived          bool     `json:"archived,omitempty"`
	Pinned            bool     `json:"pinned,omitempty"`
	Category          string   `json:"category,omitempty"`
	ChatType          string   `json:"chatType,omitempty"`
	UpdatedAt         *int64   `json:"updatedAt"` // null: never
	CreatedAt         int64    `json:"createdAt,omitempty"`
	LastInteractionAt int64    `json:"lastInteractionAt,omitempty"`
	Status            string   `json:"status,omitempty"` // queued, running, done, failed, killed, timeout
	StartedAt         int64    `json:"startedAt,omitempty"`
	EndedAt           int64    `json:"endedAt,omitempty"`
	RuntimeMs         int64    `json:"runtimeMs,omitempty"`
	LastRunID         string   `json:"lastRunId,omitempty"`
	LastRunError      string   `json:"lastRunError,omitempty"`
	AbortedLastRun    bool     `json:"abortedLastRun,omitempty"`
	HasActiveRun      bool     `json:"hasActiveRun"`
	ActiveRunIDs      []string `json:"activeRunIds"`
	SpawnedBy         string   `json:"spawnedBy,omitempty"`
	ParentSessionKey  string   `json:"parentSessionKey,omitempty"`

	ModelProvider      string `json:"modelProvider,omitempty"`
	Model              string `json:"model,omitempty"`
	ThinkingLevel      string `json:"thinkingLevel,omitempty"`
	VerboseLevel       string `json:"verboseLevel,omitempty"`
	TraceLevel         string `json:"traceLevel,omitempty"`
	ReasoningLevel     string `json:"reasoningLevel,omitempty"`
	FastMode           any    `json:"fastMode,omitempty"` // bool or "auto"
	SendPolicy         string `json:"sendPolicy,omitempty"`
	QueueMode          string `json:"queueMode,omitempty"`
	EffectiveQueueMode string `json:"effectiveQueueMode,omitempty"`
	QueueDebounceMs    *int64 `json:"queueDebounceMs,omitempty"`
	QueueCap           *int64 `json:"queueCap,omitempty"`
	QueueDrop          string `json:"queueDrop,omitempty"`

	InputTokens      int64 `json:"inputTokens,omitempty"`
	OutputTokens     int64 `json:"outputTokens,omitempty"`
	TotalTokens      int64 `json:"totalTokens,omitempty"`
	TotalTokensFresh bool  `json:"totalTokensFresh"`
	ContextTokens    int64 `json:"contextTokens,omitempty"`
}

// MarshalJSON makes activeRunIds a list also when it is empty.
func (r SessionRow) MarshalJSON() ([]byte, error) {
	type plain SessionRow
	if r.ActiveRunIDs == nil {
		r.ActiveRunIDs = []string{}
	}
	return Marshal(plain(r))
}

// Subscribed is the reply of the subscribe and unsubscribe methods.
type Subscribed struct {
	Subscribed bool   `json:"subscribed"`
	Key        string `json:"key,omitempty"`
}

// SessionsList is the reply of sessions.list.
type SessionsList struct {
	TS           int64            `json:"ts"`
	Path         string           `json:"path"` // of the reference's store; a name here
	Count        int              `json:"count"`
	TotalCount   int              `json:"totalCount"`
	LimitApplied int              `json:"limitApplied,omitempty"`
	NextOffset   int              `json:"nextOffset,omitempty"`
	HasMore      bool             `json:"hasMore"`
	Defaults     *HistoryDefaults `json:"defaults,omitempty"`
	Sessions     []SessionRow     `json:"sessions"`
}

// SessionDescribed is the reply of sessions.describe: the row, or null.
type SessionDescribed struct {
	Session *SessionRow `json:"session"`
}

// SessionResolved is the reply of sessions.resolve; without a session and with
// allowMissing it is {ok:false}.
type SessionResolved struct {
	OK      bool   `json:"ok"`
	Key     string `json:"key,omitempty"`
	AgentID string `json:"agentId,omitempty"`
}

// SessionMessages is the reply of sessions.get.
type SessionMessages struct {
	Messages []HistoryRow `json:"messages"`
}

// SessionsPreview is the reply of sessions.preview.
type SessionsPreview struct {
	TS       int64            `json:"ts"`
	Previews []SessionPreview `json:"previews"`
}

// SessionPreview is the last few texts of one session.
type SessionPreview struct {
	Key    string        `json:"key"`
	Status string        `json:"status"` // ok, empty, missing, error
	Items  []PreviewItem `json:"items"`
}

// PreviewItem is one text.
type PreviewItem struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// SessionAborted is the reply of sessions.abort; abortedRunId is null when nothing
// ran.
type SessionAborted struct {
	OK           bool    `json:"ok"`
	AbortedRunID *string `json:"abortedRunId"`
	Status       string  `json:"status"` // "aborted"
}

// SessionChanged is the reply of sessions.patch, sessions.reset and sessions.create.
type SessionChanged struct {
	OK         bool           `json:"ok"`
	Path       string         `json:"path,omitempty"`
	Key        string         `json:"key"`
	SessionID  string         `json:"sessionId,omitempty"`
	Entry      any            `json:"entry"`
	RunStarted *bool          `json:"runStarted,omitempty"` // of sessions.create
	RunID      string         `json:"runId,omitempty"`
	Resolved   *ResolvedModel `json:"resolved,omitempty"`
}

// ResolvedModel is the model that a session uses now.
type ResolvedModel struct {
	ModelProvider string `json:"modelProvider"`
	Model         string `json:"model"`
}

// SessionDeleted is the reply of sessions.delete.
type SessionDeleted struct {
	OK       bool     `json:"ok"`
	Key      string   `json:"key"`
	Deleted  bool     `json:"deleted"`
	Archived []string `json:"archived"`
}

// SessionCompacted is the reply of sessions.compact.
type SessionCompacted struct {
	OK        bool              `json:"ok"`
	Key       string            `json:"key"`
	Compacted bool              `json:"compacted"`
	Reason    string            `json:"reason,omitempty"`
	Result    *CompactionResult `json:"result,omitempty"`
}

// CompactionResult is what a compaction did.
type CompactionResult struct {
	Summary          string `json:"summary"`
	FirstKeptEntryID string `json:"firstKeptEntryId,omitempty"`
	TokensBefore     int64  `json:"tokensBefore"`
	TokensAfter      int64  `json:"tokensAfter,omitempty"`
}

// AgentsList is the reply of agents.list. Without model.primary of the agents a
// browser says that no provider is configured.
type AgentsList struct {
	DefaultID         string     `json:"defaultId"`
	Ownership         string     `json:"ownership,omitempty"` // sole, explicit
	SelectionRequired bool       `json:"selectionRequired"`
	MainKey           string     `json:"mainKey"`
	Scope             string     `json:"scope"` // per-sender, global
	Agents            []AgentRow `json:"agents"`
}

// AgentRow is one agent.
type AgentRow struct {
	ID        string      `json:"id"`
	Kind      string      `json:"kind,omitempty"` // agent, system
	Name      string      `json:"name,omitempty"`
	Workspace string      `json:"workspace,omitempty"`
	Model     *AgentModel `json:"model,omitempty"`
}

// AgentModel is an agent's model and what takes its place.
type AgentModel struct {
	Primary   string   `json:"primary,omitempty"`
	Fallbacks []string `json:"fallbacks,omitempty"`
}

// ModelsList is the reply of models.list.
type ModelsList struct {
	Models []ModelRow `json:"models"`
}

// ModelRow is one model.
type ModelRow struct {
	ID                string   `json:"id"`
	Name              string   `json:"name"`
	Provider          string   `json:"provider"`
	Alias             string   `json:"alias,omitempty"`
	Tags              []string `json:"tags,omitempty"` // default
	Available         *bool    `json:"available,omitempty"`
	UnavailableReason string   `json:"unavailableReason,omitempty"` // missing-auth, auth-failed, cooldown
	UnavailableUntil  int64    `json:"unavailableUntil,omitempty"`
	ContextWindow     int64    `json:"contextWindow,omitempty"`
	Reasoning         *bool    `json:"reasoning,omitempty"`
	// ThinkingLevels are those that it takes. ThinkingDefault is what it gets where nobody
	// names one; empty: that is the provider's own.
	ThinkingLevels  []ThinkingLevel `json:"thinkingLevels,omitempty"`
	ThinkingDefault string          `json:"thinkingDefault,omitempty"`
	SupportsTools   *bool           `json:"supportsTools,omitempty"`
	Input           []string        `json:"input,omitempty"`
}

// ThinkingLevel is a level and its name for people.
type ThinkingLevel struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// CommandsList is the reply of commands.list.
type CommandsList struct {
	Commands []CommandRow `json:"commands"`
}

// CommandRow is one slash command.
type CommandRow struct {
	Name        string       `json:"name"`
	NativeName  string       `json:"nativeName,omitempty"`
	TextAliases []string     `json:"textAliases,omitempty"`
	Description string       `json:"description"`
	Category    string       `json:"category,omitempty"` // session, options, status, management, media, tools
	Source      string       `json:"source"`             // native, skill, plugin
	Scope       string       `json:"scope"`              // text, native, both
	AcceptsArgs bool         `json:"acceptsArgs"`
	Args        []CommandArg `json:"args,omitempty"`
}

// CommandArg is one argument of a command.
type CommandArg struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"` // string, number, boolean
	Required    bool   `json:"required,omitempty"`
}

// ChatMetadata is the reply of chat.metadata.
type ChatMetadata struct {
	Models   []ModelRow   `json:"models"`
	Commands []CommandRow `json:"commands"`
}

// QuestionsList is the reply of question.list.
type QuestionsList struct {
	Questions []json.RawMessage `json:"questions"`
}

// Replies of methods that have nothing to tell. The list of approvals is a bare
// array on the wire.
var (
	NoQuestions = json.RawMessage(`{"questions":[]}`)
	NoApprovals = json.RawMessage(`[]`)
)
