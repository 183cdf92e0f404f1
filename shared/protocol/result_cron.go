package protocol

import "encoding/json"

// CronJob is a scheduled job as clients see it.
type CronJob struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	DeclarationKey string            `json:"declarationKey,omitempty"`
	DisplayName    string            `json:"displayName,omitempty"`
	Description    string            `json:"description,omitempty"`
	Owner          json.RawMessage   `json:"owner,omitempty"`
	AgentID        string            `json:"agentId,omitempty"`
	SessionKey     string            `json:"sessionKey,omitempty"` // that "current" stands for
	Enabled        bool              `json:"enabled"`
	DeleteAfterRun bool              `json:"deleteAfterRun,omitempty"`
	CreatedAtMs    int64             `json:"createdAtMs"`
	UpdatedAtMs    int64             `json:"updatedAtMs"`
	ConfigRevision string            `json:"configRevision"` // changes with every change of the job, not with its runs
	Schedule       CronSchedule      `json:"schedule"`
	SessionTarget  string            `json:"sessionTarget"`
	WakeMode       string            `json:"wakeMode"`
	Payload        CronPayload       `json:"payload"`
	Delivery       *CronDelivery     `json:"delivery,omitempty"`
	FailureAlert   *CronFailureAlert `json:"failureAlert,omitempty"`
	Missed         string            `json:"missed"`
	State          CronState         `json:"state"`
	// WebhookSecret signs the job's webhooks; it is shown to admins only.
	WebhookSecret string `json:"webhookSecret,omitempty"`
}

// CronState is what became of a job's runs. Times are milliseconds since the epoch.
type CronState struct {
	NextRunAtMs        int64             `json:"nextRunAtMs,omitempty"`
	RunningAtMs        int64             `json:"runningAtMs,omitempty"`
	RunningRunID       string            `json:"runningRunId,omitempty"`
	LastRunAtMs        int64             `json:"lastRunAtMs,omitempty"`
	LastRunStatus      string            `json:"lastRunStatus,omitempty"` // ok, error, skipped
	LastError          string            `json:"lastError,omitempty"`
	LastErrorReason    string            `json:"lastErrorReason,omitempty"`
	LastDurationMs     int64             `json:"lastDurationMs,omitempty"`
	ConsecutiveErrors  int               `json:"consecutiveErrors,omitempty"`
	ConsecutiveSkipped int               `json:"consecutiveSkipped,omitempty"`
	ScheduleErrorCount int               `json:"scheduleErrorCount,omitempty"`
	AutoDisabled       *CronAutoDisabled `json:"autoDisabled,omitempty"`
	LastDelivered      *bool             `json:"lastDelivered,omitempty"`
	LastDeliveryStatus string            `json:"lastDeliveryStatus,omitempty"` // delivered, not-delivered, unknown, not-requested
}

// CronAutoDisabled says why a job was switched off by itself.
type CronAutoDisabled struct {
	Reason            string `json:"reason"` // consecutive-failures, schedule-errors
	AtMs              int64  `json:"atMs"`
	ConsecutiveErrors int    `json:"consecutiveErrors"`
}

// CronList is the answer of cron.list. SnapshotRevision is the same as long as no job
// was added, changed or removed.
type CronList struct {
	Jobs             []CronJob `json:"jobs"`
	Total            int       `json:"total"`
	Offset           int       `json:"offset"`
	Limit            int       `json:"limit"`
	HasMore          bool      `json:"hasMore"`
	NextOffset       *int      `json:"nextOffset"`
	SnapshotRevision string    `json:"snapshotRevision"`
}

// CronStatus is the answer of cron.status.
type CronStatus struct {
	Enabled      bool          `json:"enabled"`
	Jobs         int           `json:"jobs"`
	NextWakeAtMs *int64        `json:"nextWakeAtMs"`
	Running      []CronRunning `json:"running"`
}

// CronRunning is a job whose run has not ended: which run, and for how long.
type CronRunning struct {
	JobID string `json:"jobId"`
	RunID string `json:"runId"`
	AgeMs int64  `json:"ageMs"`
}

// CronRunResult is the answer of cron.run: a run was accepted, or why not. With
// already-running, RunID and AgeMs are those of the run that is under way.
type CronRunResult struct {
	OK       bool   `json:"ok"`
	Enqueued bool   `json:"enqueued,omitempty"`
	Ran      *bool  `json:"ran,omitempty"`
	Reason   string `json:"reason,omitempty"` // already-running, not-due, disabled, invalid-spec
	RunID    string `json:"runId,omitempty"`
	AgeMs    *int64 `json:"ageMs,omitempty"`
}

// CronRemoved is the answer of cron.remove.
type CronRemoved struct {
	OK      bool `json:"ok"`
	Removed bool `json:"removed"`
}

// CronEntry is a past run of a job, or slots that passed without one.
type CronEntry struct {
	TS             int64  `json:"ts"` // when it was recorded
	JobID          string `json:"jobId"`
	JobName        string `json:"jobName,omitempty"`
	Action         string `json:"action"`           // finished
	Status         string `json:"status,omitempty"` // ok, error, skipped
	Error          string `json:"error,omitempty"`
	ErrorReason    string `json:"errorReason,omitempty"`
	Summary        string `json:"summary,omitempty"`
	RunID          string `json:"runId,omitempty"`
	SessionKey     string `json:"sessionKey,omitempty"`
	SessionID      string `json:"sessionId,omitempty"`
	RunAtMs        int64  `json:"runAtMs,omitempty"` // of a skipped slot: when it was due
	DurationMs     int64  `json:"durationMs,omitempty"`
	NextRunAtMs    int64  `json:"nextRunAtMs,omitempty"`
	Model          string `json:"model,omitempty"`
	Provider       string `json:"provider,omitempty"`
	Usage          *Usage `json:"usage,omitempty"`
	DeliveryStatus string `json:"deliveryStatus,omitempty"`
	DeliveryError  string `json:"deliveryError,omitempty"`
	Slots          int64  `json:"slots,omitempty"` // how many slots an entry of skipped ones stands for, if more than one
}

// CronRuns is the answer of cron.runs.
type CronRuns struct {
	Entries    []CronEntry `json:"entries"`
	Total      int         `json:"total"`
	Offset     int         `json:"offset"`
	Limit      int         `json:"limit"`
	HasMore    bool        `json:"hasMore"`
	NextOffset *int        `json:"nextOffset"`
}

// Woken is the answer of wake.
type Woken struct {
	OK    bool   `json:"ok"`
	RunID string `json:"runId,omitempty"`
}

// CronJobNotFound refuses a job id that is unknown.
func CronJobNotFound(jobID string) *Error {
	return Invalid("cron job not found: "+shorten(jobID, maxNameRunes)).With("code", "CRON_JOB_NOT_FOUND").With("jobId", shorten(jobID, maxNameRunes))
}
