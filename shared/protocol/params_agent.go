package protocol

import (
	"encoding/json"
	"strings"
	"time"
)

// AgentParams starts a run. IdempotencyKey is its run id.
type AgentParams struct {
	Message                   string       `json:"message" wire:"required,min=1"`
	IdempotencyKey            string       `json:"idempotencyKey" wire:"required,key"`
	AgentID                   string       `json:"agentId,omitempty" wire:"min=1,max=128"`
	Provider                  string       `json:"provider,omitempty" wire:"max=256"`
	Model                     string       `json:"model,omitempty" wire:"max=512"`
	To                        string       `json:"to,omitempty" wire:"max=512"`
	ReplyTo                   string       `json:"replyTo,omitempty" wire:"max=512"`
	SessionID                 string       `json:"sessionId,omitempty" wire:"id,blank"`
	SessionKey                string       `json:"sessionKey,omitempty" wire:"id,blank"`
	ExpectedExistingSessionID string       `json:"expectedExistingSessionId,omitempty" wire:"id"`
	Thinking                  string       `json:"thinking,omitempty" wire:"max=64"`
	Deliver                   bool         `json:"deliver,omitempty"`
	Attachments               []Attachment `json:"attachments,omitempty" wire:"max=64"`
	Channel                   string       `json:"channel,omitempty" wire:"max=512"`
	ReplyChannel              string       `json:"replyChannel,omitempty" wire:"max=512"`
	AccountID                 string       `json:"accountId,omitempty" wire:"max=512"`
	ReplyAccountID            string       `json:"replyAccountId,omitempty" wire:"max=512"`
	ThreadID                  string       `json:"threadId,omitempty" wire:"max=512"`
	GroupID                   string       `json:"groupId,omitempty" wire:"max=512"`
	GroupChannel              string       `json:"groupChannel,omitempty" wire:"max=512"`
	GroupSpace                string       `json:"groupSpace,omitempty" wire:"max=512"`
	// Timeout is in seconds: 0 means no run timeout, absent the configured one.
	Timeout                  *int64 `json:"timeout,omitempty" wire:"min=0"`
	BestEffortDeliver        *bool  `json:"bestEffortDeliver,omitempty"`
	Lane                     string `json:"lane,omitempty" wire:"max=64"`
	Cwd                      string `json:"cwd,omitempty" wire:"min=1,max=4096"`
	CleanupBundleMcpOnRunEnd bool   `json:"cleanupBundleMcpOnRunEnd,omitempty"`
	ModelRun                 bool   `json:"modelRun,omitempty"`
	PromptMode               string `json:"promptMode,omitempty" wire:"enum=full|minimal|none"`
	ExtraSystemPrompt        string `json:"extraSystemPrompt,omitempty"`
	BootstrapContextMode     string `json:"bootstrapContextMode,omitempty" wire:"enum=full|lightweight"`
	BootstrapContextRunKind  string `json:"bootstrapContextRunKind,omitempty" wire:"enum=default|heartbeat|cron"`
	SourceReplyDeliveryMode  string `json:"sourceReplyDeliveryMode,omitempty" wire:"enum=automatic|message_tool_only"`
	DisableMessageTool       bool   `json:"disableMessageTool,omitempty"`
	VoiceWakeTrigger         string `json:"voiceWakeTrigger,omitempty" wire:"max=512"`
	Label                    string `json:"label,omitempty" wire:"min=1,max=512"`

	// The rest belongs to the reference's own backend. A caller could use it to speak
	// as the system, so it is refused by name.
	InternalEvents                         Refused `json:"internalEvents,omitzero"`
	InputProvenance                        Refused `json:"inputProvenance,omitzero"`
	SuppressPromptPersistence              Refused `json:"suppressPromptPersistence,omitzero"`
	SessionEffects                         Refused `json:"sessionEffects,omitzero"`
	AcpTurnSource                          Refused `json:"acpTurnSource,omitzero"`
	SwarmCollector                         Refused `json:"swarmCollector,omitzero"`
	SwarmOutputSchema                      Refused `json:"swarmOutputSchema,omitzero"`
	ForceRestartSafeTools                  Refused `json:"forceRestartSafeTools,omitzero"`
	ForceCodeModeTools                     Refused `json:"forceCodeModeTools,omitzero"`
	InternalRuntimeHandoffID               Refused `json:"internalRuntimeHandoffId,omitzero"`
	InternalExecutionIdentityRetry         Refused `json:"internalExecutionIdentityRetry,omitzero"`
	InternalExecutionIdentityRecoveryCount Refused `json:"internalExecutionIdentityRecoveryAttempt,omitzero"`
	ExecApprovalFollowupExpectedSessionID  Refused `json:"execApprovalFollowupExpectedSessionId,omitzero"`
}

func (p *AgentParams) check(at *problems) {
	if p.PromptMode == "none" && !p.ModelRun {
		at.member("promptMode", "none is allowed with modelRun only")
	}
	if p.Cwd != "" && !absolute(p.Cwd) {
		at.member("cwd", "must be an absolute path")
	}
	if p.ExpectedExistingSessionID != "" {
		if p.SessionKey == "" {
			at.member("expectedExistingSessionId", "needs sessionKey")
		} else if p.SessionID != "" && p.SessionID != p.ExpectedExistingSessionID {
			at.member("expectedExistingSessionId", "must not differ from sessionId")
		}
	}
	if p.Deliver && p.Channel == "" && p.ReplyChannel == "" {
		at.member("channel", "is required with deliver")
	}
}

// absolute knows the absolute paths of every system, because the gateway's own may
// be another one than the caller's.
func absolute(path string) bool {
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) {
		return true
	}
	return len(path) >= 3 && path[1] == ':' && (path[2] == '\\' || path[2] == '/') &&
		(path[0]|0x20) >= 'a' && (path[0]|0x20) <= 'z'
}

// Attachment is a file that comes with a message: inline, or put before by
// uploads.create and named by its upload id. Unknown members are ignored.
type Attachment struct {
	_         struct{}        `wire:"open"`
	UploadID  string          `json:"uploadId,omitempty" wire:"id"`
	Type      string          `json:"type,omitempty" wire:"max=128"`
	MimeType  string          `json:"mimeType,omitempty" wire:"max=256"`
	FileName  string          `json:"fileName,omitempty" wire:"max=512"`
	Content   json.RawMessage `json:"content,omitempty"`
	SizeBytes *float64        `json:"sizeBytes,omitempty"`
}

// AgentWaitParams waits for the end of a run.
type AgentWaitParams struct {
	RunID     string `json:"runId" wire:"required,id"`
	TimeoutMs *int64 `json:"timeoutMs,omitempty" wire:"min=0"`
}

// Windows of agent.wait. The longest one is what a client's timer can hold.
const (
	DefaultWait = 30 * time.Second
	MaxWait     = (1<<31 - 1) * time.Millisecond
)

// Window is how long to wait; 0 asks for the state of now.
func (p *AgentWaitParams) Window() time.Duration {
	if p.TimeoutMs == nil {
		return DefaultWait
	}
	return time.Duration(min(*p.TimeoutMs, int64(MaxWait/time.Millisecond))) * time.Millisecond
}
