package protocol

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// CronSchedule says when a job runs; Kind decides which other members it has.
type CronSchedule struct {
	Kind      string `json:"kind" wire:"required,enum=at|every|cron"`
	At        string `json:"at,omitempty" wire:"min=1,max=128"`                   // of at: ISO 8601, UTC without a zone
	EveryMs   *int64 `json:"everyMs,omitempty" wire:"min=1,max=8640000000000000"` // of every
	AnchorMs  *int64 `json:"anchorMs,omitempty" wire:"min=0,max=8640000000000000"`
	Expr      string `json:"expr,omitempty" wire:"min=1,max=512"` // of cron: 5 or 6 fields
	TZ        string `json:"tz,omitempty" wire:"max=64"`
	StaggerMs *int64 `json:"staggerMs,omitempty" wire:"min=0,max=8640000000000000"`
}

func (s *CronSchedule) check(at *problems) {
	has := map[string]bool{
		"at": s.At != "", "everyMs": s.EveryMs != nil, "anchorMs": s.AnchorMs != nil,
		"expr": s.Expr != "", "tz": s.TZ != "", "staggerMs": s.StaggerMs != nil,
	}
	kindMembers(at, s.Kind, has, map[string]kindRule{
		"at":    {need: []string{"at"}, may: []string{"tz"}},
		"every": {need: []string{"everyMs"}, may: []string{"anchorMs"}},
		"cron":  {need: []string{"expr"}, may: []string{"tz", "staggerMs"}},
	}, true)
}

// CronPayload is what a job does.
type CronPayload struct {
	Kind                       string            `json:"kind" wire:"required,enum=systemEvent|agentTurn"`
	Text                       string            `json:"text,omitempty" wire:"min=1"`    // of systemEvent
	Message                    string            `json:"message,omitempty" wire:"min=1"` // of agentTurn
	Model                      Optional[string]  `json:"model,omitzero" wire:"max=512"`
	Fallbacks                  []string          `json:"fallbacks,omitzero" wire:"max=16;min=1,max=512"` // none given: the configured ones; []: none
	Thinking                   Optional[string]  `json:"thinking,omitzero" wire:"max=64"`
	TimeoutSeconds             Optional[float64] `json:"timeoutSeconds,omitzero" wire:"min=0"`
	AllowUnsafeExternalContent bool              `json:"allowUnsafeExternalContent,omitempty"`
	LightContext               *bool             `json:"lightContext,omitempty"`
	ToolsAllow                 []string          `json:"toolsAllow,omitempty" wire:"max=128;min=1,max=128"`
	ToolsAllowIsDefault        bool              `json:"toolsAllowIsDefault,omitempty"`
}

func (c *CronPayload) members() map[string]bool {
	return map[string]bool{
		"text": c.Text != "", "message": c.Message != "", "model": c.Model.Set, "fallbacks": c.Fallbacks != nil,
		"thinking": c.Thinking.Set, "timeoutSeconds": c.TimeoutSeconds.Set, "lightContext": c.LightContext != nil,
		"allowUnsafeExternalContent": c.AllowUnsafeExternalContent,
	}
}

// checkPayload is no check method, because a patch may leave out what a new job
// must have.
func (c *CronPayload) checkPayload(at *problems, complete bool) {
	kindMembers(at, c.Kind, c.members(), map[string]kindRule{
		"systemEvent": {need: []string{"text"}},
		"agentTurn": {
			need: []string{"message"},
			may:  []string{"model", "fallbacks", "thinking", "timeoutSeconds", "lightContext", "allowUnsafeExternalContent"},
		},
	}, complete)
}

type kindRule struct{ need, may []string }

// kindMembers checks the members of an object whose kind decides which it has.
func kindMembers(at *problems, kind string, has map[string]bool, rules map[string]kindRule, complete bool) {
	r := rules[kind]
	if complete {
		for _, name := range r.need {
			if !has[name] {
				at.lacks(name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if has[name] && !slices.Contains(r.need, name) && !slices.Contains(r.may, name) {
			at.member(name, "does not belong to kind '"+kind+"'")
		}
	}
}

// CronDelivery says where a job's result goes.
type CronDelivery struct {
	Mode                  string           `json:"mode,omitempty" wire:"enum=none|announce|webhook"`
	Channel               Optional[string] `json:"channel,omitzero" wire:"min=1,max=512"`
	To                    Optional[string] `json:"to,omitzero" wire:"min=1,max=2048"`
	ThreadID              *TextOrNumber    `json:"threadId,omitempty"`
	AccountID             Optional[string] `json:"accountId,omitzero" wire:"min=1,max=512"`
	BestEffort            *bool            `json:"bestEffort,omitempty"`
	FailureDestination    json.RawMessage  `json:"failureDestination,omitempty"`
	CompletionDestination json.RawMessage  `json:"completionDestination,omitempty"`
}

func (c *CronDelivery) check(at *problems) {
	if c.Mode != "webhook" {
		return
	}
	to := strings.ToLower(c.To.Value)
	if !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
		at.member("to", "must be an http or https URL with mode 'webhook'")
	}
}

// TextOrNumber is a string, or a number kept as its text.
type TextOrNumber string

// UnmarshalJSON reads the form of the wire.
func (t *TextOrNumber) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		s := scanner{b: raw}
		body, escaped, _ := s.str()
		*t = TextOrNumber(unquote(body, escaped))
		return nil
	}
	if _, ok := number(raw); !ok {
		return errors.New("must be string or number")
	}
	*t = TextOrNumber(raw)
	return nil
}

func (TextOrNumber) shape() map[string]any {
	return map[string]any{"type": []any{"string", "number"}}
}

// CronFailureAlert is false, or when and where repeated failures are told.
type CronFailureAlert struct {
	Off             bool
	After           *int64
	CooldownMs      *int64
	IncludeSkipped  *bool
	Channel, To     string
	Mode, AccountID string
}

type cronFailureAlert struct {
	After          *int64           `json:"after,omitempty" wire:"min=1"`
	CooldownMs     *int64           `json:"cooldownMs,omitempty" wire:"min=0"`
	IncludeSkipped *bool            `json:"includeSkipped,omitempty"`
	Channel        Optional[string] `json:"channel,omitzero" wire:"min=1,max=512"`
	To             Optional[string] `json:"to,omitzero" wire:"min=1,max=2048"`
	Mode           Optional[string] `json:"mode,omitzero" wire:"enum=announce|webhook"`
	AccountID      Optional[string] `json:"accountId,omitzero" wire:"min=1,max=512"`
}

// UnmarshalJSON reads the form of the wire.
func (f *CronFailureAlert) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case 'f':
		*f = CronFailureAlert{Off: true}
		return nil
	case '{':
	default:
		return errors.New("must be false or object")
	}
	w, err := Decode[cronFailureAlert]("", raw)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Message, "invalid  params: "))
	}
	*f = CronFailureAlert{
		After: w.After, CooldownMs: w.CooldownMs, IncludeSkipped: w.IncludeSkipped,
		Channel: w.Channel.Value, To: w.To.Value, Mode: w.Mode.Value, AccountID: w.AccountID.Value,
	}
	return nil
}

func (CronFailureAlert) shape() map[string]any {
	return map[string]any{"type": []any{"boolean", "object"}}
}

// MarshalJSON writes the form of the wire.
func (f CronFailureAlert) MarshalJSON() ([]byte, error) {
	if f.Off {
		return []byte("false"), nil
	}
	some := func(s string) Optional[string] { return Optional[string]{Set: s != "", Value: s} }
	return json.Marshal(cronFailureAlert{
		After: f.After, CooldownMs: f.CooldownMs, IncludeSkipped: f.IncludeSkipped,
		Channel: some(f.Channel), To: some(f.To), Mode: some(f.Mode), AccountID: some(f.AccountID),
	})
}

// CronAddParams makes a job.
type CronAddParams struct {
	Name           string            `json:"name" wire:"required,min=1,max=512"`
	DeclarationKey string            `json:"declarationKey,omitempty" wire:"min=1,max=200"`
	DisplayName    string            `json:"displayName,omitempty" wire:"min=1,max=200"`
	Description    string            `json:"description,omitempty" wire:"max=4096"`
	Owner          json.RawMessage   `json:"owner,omitempty" wire:"object"`
	AgentID        Optional[string]  `json:"agentId,omitzero" wire:"min=1,max=128"`
	SessionKey     Optional[string]  `json:"sessionKey,omitzero" wire:"id"`
	Enabled        *bool             `json:"enabled,omitempty"`
	DeleteAfterRun *bool             `json:"deleteAfterRun,omitempty"`
	Schedule       CronSchedule      `json:"schedule" wire:"required"`
	SessionTarget  string            `json:"sessionTarget,omitempty" wire:"min=1,max=512"`
	WakeMode       string            `json:"wakeMode,omitempty" wire:"enum=now|next-heartbeat"`
	Payload        CronPayload       `json:"payload" wire:"required"`
	Delivery       *CronDelivery     `json:"delivery,omitempty"`
	FailureAlert   *CronFailureAlert `json:"failureAlert,omitempty"`
	// Missed says what happens to slots that passed while nothing ran: skip, once
	// (one run for all of them), or within:<duration>.
	Missed string `json:"missed,omitempty" wire:"min=1,max=64"`
}

func (p *CronAddParams) check(at *problems) {
	at.push(step{name: "payload"})
	p.Payload.checkPayload(at, true)
	at.pop()
	checkTarget(p.SessionTarget, at)
}

func checkTarget(target string, at *problems) {
	switch target {
	case "", "main", "isolated", "current":
		return
	}
	if rest, ok := strings.CutPrefix(target, "session:"); !ok || rest == "" {
		at.member("sessionTarget", "must be equal to one of the allowed values: main, isolated, current, session:<id>")
	}
}

// CronPatch changes a job. Absent members stay; null takes one back to its default.
type CronPatch struct {
	Name           string                     `json:"name,omitempty" wire:"min=1,max=512"`
	DisplayName    Optional[string]           `json:"displayName,omitzero" wire:"min=1,max=200"`
	Description    Optional[string]           `json:"description,omitzero" wire:"max=4096"`
	AgentID        Optional[string]           `json:"agentId,omitzero" wire:"min=1,max=128"`
	SessionKey     Optional[string]           `json:"sessionKey,omitzero" wire:"id"`
	Enabled        *bool                      `json:"enabled,omitempty"`
	DeleteAfterRun *bool                      `json:"deleteAfterRun,omitempty"`
	Schedule       *CronSchedule              `json:"schedule,omitempty"`
	SessionTarget  string                     `json:"sessionTarget,omitempty" wire:"min=1,max=512"`
	WakeMode       string                     `json:"wakeMode,omitempty" wire:"enum=now|next-heartbeat"`
	Payload        *CronPayload               `json:"payload,omitempty"`
	Delivery       *CronDelivery              `json:"delivery,omitempty"`
	FailureAlert   Optional[CronFailureAlert] `json:"failureAlert,omitzero"`
	Missed         Optional[string]           `json:"missed,omitzero" wire:"min=1,max=64"`
}

func (p *CronPatch) check(at *problems) {
	if p.Payload != nil {
		at.push(step{name: "payload"})
		p.Payload.checkPayload(at, false)
		at.pop()
	}
	checkTarget(p.SessionTarget, at)
}

// CronUpdateParams changes a job that is named by id (or jobId, an older name).
type CronUpdateParams struct {
	ID                     string    `json:"id,omitempty" wire:"id"`
	JobID                  string    `json:"jobId,omitempty" wire:"id"`
	Patch                  CronPatch `json:"patch" wire:"required"`
	ExpectedConfigRevision string    `json:"expectedConfigRevision,omitempty" wire:"min=1,max=128"`
}

func (p *CronUpdateParams) check(at *problems) { oneID(&p.ID, &p.JobID, at) }

// CronJobParams names a job: cron.get, cron.remove.
type CronJobParams struct {
	ID    string `json:"id,omitempty" wire:"id"`
	JobID string `json:"jobId,omitempty" wire:"id"`
}

func (p *CronJobParams) check(at *problems) { oneID(&p.ID, &p.JobID, at) }

// CronRunParams runs a job out of turn.
type CronRunParams struct {
	ID                        string `json:"id,omitempty" wire:"id"`
	JobID                     string `json:"jobId,omitempty" wire:"id"`
	Mode                      string `json:"mode,omitempty" wire:"enum=due|force|if-enabled"`
	ExpectedProcessInstanceID string `json:"expectedProcessInstanceId,omitempty" wire:"min=1,max=512"`
}

func (p *CronRunParams) check(at *problems) { oneID(&p.ID, &p.JobID, at) }

// oneID makes the two names of a job's id one: after it, id is set.
func oneID(id, jobID *string, at *problems) {
	switch {
	case *id == "" && *jobID == "":
		at.lacks("id")
	case *id == "":
		*id = *jobID
	case *jobID != "" && *jobID != *id:
		at.member("jobId", "must not differ from id")
	}
}

// CronListParams selects jobs.
type CronListParams struct {
	AgentID                 string `json:"agentId,omitempty" wire:"min=1,max=128"`
	SessionKey              string `json:"sessionKey,omitempty" wire:"id"`
	SessionAgentID          string `json:"sessionAgentId,omitempty" wire:"min=1,max=128"`
	IncludeDisabled         bool   `json:"includeDisabled,omitempty"`
	IncludeDeliveryPreviews bool   `json:"includeDeliveryPreviews,omitempty"`
	Compact                 bool   `json:"compact,omitempty"`
	Limit                   *int64 `json:"limit,omitempty" wire:"min=1,max=200"`
	Offset                  *int64 `json:"offset,omitempty" wire:"min=0"`
	Query                   string `json:"query,omitempty" wire:"max=512"`
	Enabled                 string `json:"enabled,omitempty" wire:"enum=all|enabled|disabled"`
	ScheduleKind            string `json:"scheduleKind,omitempty" wire:"enum=all|at|every|cron|on-exit|stream"`
	LastRunStatus           string `json:"lastRunStatus,omitempty" wire:"enum=all|ok|error|skipped|unknown"`
	Trigger                 string `json:"trigger,omitempty" wire:"enum=all|conditional|unconditional"`
	SortBy                  string `json:"sortBy,omitempty" wire:"enum=nextRunAtMs|updatedAtMs|name"`
	SortDir                 string `json:"sortDir,omitempty" wire:"enum=asc|desc"`
}

// CronRunsParams selects past runs, of one job or of all.
type CronRunsParams struct {
	AgentID          string   `json:"agentId,omitempty" wire:"min=1,max=128"`
	Scope            string   `json:"scope,omitempty" wire:"enum=job|all"`
	ID               string   `json:"id,omitempty" wire:"id"`
	JobID            string   `json:"jobId,omitempty" wire:"id"`
	RunID            string   `json:"runId,omitempty" wire:"id"`
	Limit            *int64   `json:"limit,omitempty" wire:"min=1,max=200"`
	Offset           *int64   `json:"offset,omitempty" wire:"min=0"`
	Status           string   `json:"status,omitempty" wire:"enum=all|ok|error|skipped"`
	Statuses         []string `json:"statuses,omitempty" wire:"min=1,max=3;enum=ok|error|skipped"`
	DeliveryStatus   string   `json:"deliveryStatus,omitempty" wire:"enum=delivered|not-delivered|unknown|not-requested"`
	DeliveryStatuses []string `json:"deliveryStatuses,omitempty" wire:"min=1,max=4;enum=delivered|not-delivered|unknown|not-requested"`
	Query            string   `json:"query,omitempty" wire:"max=512"`
	SortDir          string   `json:"sortDir,omitempty" wire:"enum=asc|desc"`
}

func (p *CronRunsParams) check(at *problems) {
	if p.ID != "" || p.JobID != "" {
		oneID(&p.ID, &p.JobID, at)
	}
}
