package protocol

// HealthParams asks whether the gateway works.
type HealthParams struct {
	Probe            *bool `json:"probe,omitempty"`
	IncludeSensitive *bool `json:"includeSensitive,omitempty"`
}

// StatusParams asks what the gateway is and does.
type StatusParams struct {
	IncludeChannelSummary *bool `json:"includeChannelSummary,omitempty"`
}

// ModelsListParams selects models.
type ModelsListParams struct {
	AgentID                     string `json:"agentId,omitempty" wire:"min=1,max=128"`
	SessionKey                  string `json:"sessionKey,omitempty" wire:"id"`
	AuthProfileID               string `json:"authProfileId,omitempty" wire:"min=1,max=256"`
	Provider                    string `json:"provider,omitempty" wire:"min=1,max=256"`
	IncludeDetails              bool   `json:"includeDetails,omitempty"`
	IncludeProviderCapabilities bool   `json:"includeProviderCapabilities,omitempty"`
	IncludeDefaultModels        bool   `json:"includeDefaultModels,omitempty"`
	PreparedOnly                bool   `json:"preparedOnly,omitempty"`
	Refresh                     bool   `json:"refresh,omitempty"`
	View                        string `json:"view,omitempty" wire:"enum=default|configured|provider-config|all"`
}

// ModelsAuthStatusParams asks which credentials work.
type ModelsAuthStatusParams struct {
	Refresh bool   `json:"refresh,omitempty"`
	AgentID string `json:"agentId,omitempty" wire:"max=128"`
}

// CommandsListParams selects slash commands.
type CommandsListParams struct {
	SessionKey  string `json:"sessionKey,omitempty" wire:"id"`
	AgentID     string `json:"agentId,omitempty" wire:"min=1,max=128"`
	Provider    string `json:"provider,omitempty" wire:"min=1,max=256"`
	Scope       string `json:"scope,omitempty" wire:"enum=text|native|both"`
	IncludeArgs *bool  `json:"includeArgs,omitempty"`
}

// RunsListParams selects runs that are not over.
type RunsListParams struct {
	AgentID    string `json:"agentId,omitempty" wire:"min=1,max=128"`
	SessionKey string `json:"sessionKey,omitempty" wire:"id"`
	Lane       string `json:"lane,omitempty" wire:"min=1,max=64"`
	State      string `json:"state,omitempty" wire:"enum=pending|running|sleeping"`
	Limit      *int64 `json:"limit,omitempty" wire:"min=1,max=1000"`
	Cursor     string `json:"cursor,omitempty" wire:"max=4096"`
}

// RunsAbortParams stops a run for certain, in whatever state it is.
type RunsAbortParams struct {
	RunID  string `json:"runId" wire:"required,id"`
	Reason string `json:"reason,omitempty" wire:"max=512"`
}

// RunsCostParams names a run: runs.cost.
type RunsCostParams struct {
	RunID string `json:"runId" wire:"required,id"`
}

// UploadsCreateParams asks for a place to put a file that is too large for a frame.
type UploadsCreateParams struct {
	SizeBytes int64  `json:"sizeBytes" wire:"required,min=1,max=5368709120"`
	SHA256    string `json:"sha256" wire:"required,min=64,max=64"` // lowercase hexadecimal
	FileName  string `json:"fileName,omitempty" wire:"min=1,max=512"`
	MimeType  string `json:"mimeType,omitempty" wire:"min=1,max=256"`
}

func (p *UploadsCreateParams) check(at *problems) {
	for _, c := range p.SHA256 {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			at.member("sha256", "must be 64 lowercase hexadecimal digits")
			return
		}
	}
}

// WakeParams puts a text before the agent, now or with its next heartbeat.
type WakeParams struct {
	Mode       string `json:"mode" wire:"required,enum=now|next-heartbeat"`
	Text       string `json:"text" wire:"required,min=1"`
	SessionKey string `json:"sessionKey,omitempty" wire:"id"`
	AgentID    string `json:"agentId,omitempty" wire:"min=1,max=128"`
}
