package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"laneway/shared/meter"
	"laneway/shared/model"
	"laneway/shared/table"
)

// State is where a run is.
type State string

// The states. A steered message becomes delivered when the run that took it wrote
// it into the transcript; then it shares that run's outcome.
const (
	Pending   State = "pending"
	Started   State = "started"
	Steered   State = "steered"
	Delivered State = "delivered"
	Ended     State = "ended"
)

// Input is what a caller asked for. It is stored with the record until it is in
// the transcript (A4).
type Input struct {
	Message      string          `json:"message"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	ExtraPrompt  string          `json:"extraSystemPrompt,omitempty"`
	PromptMode   string          `json:"promptMode,omitempty"`
	RunKind      string          `json:"runKind,omitempty"` // heartbeat, cron; empty: an ordinary run
	Thinking     string          `json:"thinking,omitempty"`
	Provider     string          `json:"provider,omitempty"`
	Model        string          `json:"model,omitempty"`
	Fallbacks    []string        `json:"fallbacks,omitzero"`  // instead of the configured ones; nil: not said; empty: none
	Verbose      string          `json:"verbose,omitempty"`   // of this message: on, full, off
	Reasoning    string          `json:"reasoning,omitempty"` // of this message: on, off, stream
	Fast         string          `json:"fast,omitempty"`      // of this message: on, off, auto
	Cards        string          `json:"cards,omitempty"`     // what the gateway itself answers to the message, before the model
	TimeoutMs    int64           `json:"timeoutMs,omitempty"` // of the run; -1: none; 0: the default
	Cwd          string          `json:"cwd,omitempty"`
	Label        string          `json:"label,omitempty"`
	QueueMode    string          `json:"queueMode,omitempty"`
	SessionID    string          `json:"sessionId,omitempty"`   // asked for; empty: the current one
	ResetReason  string          `json:"resetReason,omitempty"` // why SessionID is another one: daily, idle
	SuppressUser bool            `json:"suppressPromptPersistence,omitempty"`
	Overflow     Overflow        `json:"overflow,omitzero"` // of an overflow summary
}

// Overflow is what a summary of dropped messages knows of them.
type Overflow struct {
	Count int      `json:"count"`
	Lines []string `json:"lines"` // the newest, oldest first
	Runs  []string `json:"runs"`  // short ids of all of them
}

// Waiter is a client that waits for a reply.
type Waiter struct {
	ConnectionID string `json:"c"`
	Callback     string `json:"cb,omitempty"` // management endpoint of its connection
	RequestID    string `json:"r"`
	Kind         string `json:"k"` // WaitFinal or WaitSnapshot
}

// What a waiter is answered with.
const (
	WaitFinal    = "final" // the second reply of agent
	WaitSnapshot = "wait"  // the reply of agent.wait
	WaitNone     = "none"  // gets events only (chat.send)
)

// Disposition is what became of an arriving message.
type Disposition struct {
	Kind     string `json:"kind"` // started, queued, steered, collected, superseded, summarised, dropped
	Position int    `json:"position,omitempty"`
	RunID    string `json:"runId,omitempty"`
	Step     int64  `json:"step,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Status is the record of a run.
type Status struct {
	Ref
	RunID       string // the caller's idempotency key, whole
	SessionKey  string
	AgentID     string
	Lane        string
	Method      string // agent, chat.send, cron
	Seq         int64  // accept sequence in its session
	RequestHash string // of method and params: tells a repeat from a conflict
	WriteID     string // of the accept: settles a lost answer
	Input       Input
	Origin      *Waiter // the caller of the accept
	Token       string  // id of the stored token that the run depends on; empty: none
	State       State
	Disposition Disposition
	AcceptedAt  int64
	StartedAt   int64
	EndedAt     int64
	Attempt     int64  // last attempt that wrote here
	SessionID   string // transcript it ran in
	UserSeq     int64  // transcript row of the message; 0: not there yet
	Into        string // short id of the run that a steered message went into
	NextEvent   int64  // event numbers below are used or reserved
	TermEvent   int64  // first event number of the terminal batch
	Checkpoint  []byte // the loop's own, JSON
	Outcome     *Outcome
	OriginLease int64 // ms: until then the holder of the terminal answers the origin
	ExpiresAt   int64 // s; 0 while the run lives
}

// OutcomeKind is how a run ended.
type OutcomeKind string

// The outcomes.
const (
	OK      OutcomeKind = "ok"
	Failed  OutcomeKind = "error"
	Aborted OutcomeKind = "aborted"
	Timeout OutcomeKind = "timeout"
)

// StopStuck is the stop reason of a run that was ended from outside because it made
// no progress.
const StopStuck = "stuck_recovery"

// StopStop is the stop reason of a run that somebody stopped by a message.
const StopStop = "stop"

// StopSuperseded is the stop reason of a run that a newer message took the place of.
const StopSuperseded = "superseded"

// StopRevoked is the stop reason of a run whose token was removed or has expired.
const StopRevoked = "auth-revoked"

// Payload is a piece of the reply.
type Payload struct {
	Text     string  `json:"text,omitempty"`
	MediaURL *string `json:"mediaUrl"`
	IsError  bool    `json:"isError,omitempty"`
	Notice   bool    `json:"isStatusNotice,omitempty"` // said by the gateway, not by a model
	// Reasoning says that it is what the model thought, not what it answered.
	Reasoning bool `json:"isReasoning,omitempty"`
	// Summary says that it tells of a tool call.
	Summary bool `json:"isSummary,omitempty"`
}

// beside says whether a payload has a place of its own beside the reply.
func (p *Payload) beside() bool { return p.Reasoning || p.Summary }

// Outcome is the one end of a run; Wire gives its forms on the wire.
type Outcome struct {
	Kind            OutcomeKind  `json:"kind"`
	StopReason      string       `json:"stopReason,omitempty"`  // stop, rpc, timeout, superseded, ...
	Error           string       `json:"error,omitempty"`       // text that a user may see
	ErrorKind       string       `json:"errorKind,omitempty"`   // class: rate_limit, timeout, step_too_long, ...
	ErrorStatus     int          `json:"errorStatus,omitempty"` // HTTP, of a model's failure
	TimeoutPhase    string       `json:"timeoutPhase,omitempty"`
	ProviderStarted bool         `json:"providerStarted,omitempty"`
	Liveness        string       `json:"livenessState,omitempty"`
	Payloads        []Payload    `json:"payloads,omitempty"`
	Text            string       `json:"-"`             // visible reply, whole, see Said
	Cut             bool         `json:"cut,omitempty"` // the payload is only the start of Text
	Provider        string       `json:"provider,omitempty"`
	Model           string       `json:"model,omitempty"`
	Usage           *model.Usage `json:"usage,omitempty"`
	Steps           int64        `json:"steps,omitempty"`
	ToolCalls       int64        `json:"toolCalls,omitempty"`
	DurationMs      int64        `json:"durationMs,omitempty"`
	// Used is what the run has used up to its end, by what it is billed by.
	Used map[meter.Name]float64 `json:"used,omitempty"`
	// TokenPrice is the model's as it was configured; nil: the list's.
	TokenPrice *model.Price `json:"tokenPrice,omitempty"`
}

// Attributes of STATUS that other writers address one by one.
const (
	AttrState       = "state"
	AttrOutcome     = "out"
	AttrEnded       = "endedAt"
	AttrStarted     = "startedAt"
	AttrAttempt     = "att"
	AttrSessionID   = "sid"
	AttrUserSeq     = "userSeq"
	AttrInto        = "into"
	AttrNextEvent   = "evNext"
	AttrTermEvent   = "evTerm"
	AttrCheckpoint  = "chk"
	AttrOriginLease = "orgLease"
	AttrDisposition = "disp"
	AttrWrite       = "wid"
	AttrInput       = "in"
	AttrToken       = "tok"
)

// Item is the record as a table item's attributes.
func (s *Status) Item() (table.Attrs, error) {
	in, err := json.Marshal(s.Input)
	if err != nil {
		return nil, err
	}
	a := table.Attrs{
		"run": s.RunID, "key": s.SessionKey, "agent": s.AgentID, "lane": s.Lane, "method": s.Method,
		"seq": s.Seq, "hash": s.RequestHash, AttrWrite: s.WriteID, AttrInput: in,
		AttrState: string(s.State), "at": s.AcceptedAt,
	}
	for k, v := range map[string]int64{
		AttrStarted: s.StartedAt, AttrEnded: s.EndedAt, AttrAttempt: s.Attempt, AttrUserSeq: s.UserSeq,
		AttrNextEvent: s.NextEvent, AttrTermEvent: s.TermEvent, AttrOriginLease: s.OriginLease, table.TTLAttr: s.ExpiresAt,
	} {
		if v != 0 {
			a[k] = v
		}
	}
	for k, v := range map[string]string{AttrSessionID: s.SessionID, AttrInto: s.Into, AttrToken: s.Token} {
		if v != "" {
			a[k] = v
		}
	}
	if s.Disposition.Kind != "" {
		if a[AttrDisposition], err = json.Marshal(s.Disposition); err != nil {
			return nil, err
		}
	}
	if s.Origin != nil {
		if a["org"], err = json.Marshal(s.Origin); err != nil {
			return nil, err
		}
	}
	if len(s.Checkpoint) > 0 {
		a[AttrCheckpoint] = s.Checkpoint
	}
	if s.Outcome != nil {
		b, err := json.Marshal(s.Outcome)
		if err != nil {
			return nil, err
		}
		a[AttrOutcome] = b
	}
	return a, nil
}

// Decode reads a record.
func Decode(ref Ref, it table.Item) (Status, error) {
	a := it.Attrs
	s := Status{
		Ref: ref, RunID: a.Str("run"), SessionKey: a.Str("key"), AgentID: a.Str("agent"), Lane: a.Str("lane"),
		Method: a.Str("method"), Seq: a.Int("seq"), RequestHash: a.Str("hash"), WriteID: a.Str(AttrWrite),
		State: State(a.Str(AttrState)), AcceptedAt: a.Int("at"), StartedAt: a.Int(AttrStarted), EndedAt: a.Int(AttrEnded),
		Attempt: a.Int(AttrAttempt), SessionID: a.Str(AttrSessionID), UserSeq: a.Int(AttrUserSeq), Into: a.Str(AttrInto),
		NextEvent: a.Int(AttrNextEvent), TermEvent: a.Int(AttrTermEvent), Checkpoint: a.Bytes(AttrCheckpoint),
		OriginLease: a.Int(AttrOriginLease), Token: a.Str(AttrToken), ExpiresAt: a.Int(table.TTLAttr),
	}
	var org Waiter
	var out Outcome
	for _, f := range []struct {
		raw  []byte
		into any
		set  func()
	}{
		{a.Bytes(AttrInput), &s.Input, func() {}},
		{a.Bytes(AttrDisposition), &s.Disposition, func() {}},
		{a.Bytes("org"), &org, func() { s.Origin = &org }},
		{a.Bytes(AttrOutcome), &out, func() { s.Outcome = &out }},
	} {
		if len(f.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(f.raw, f.into); err != nil {
			return s, fmt.Errorf("run record: %w", err)
		}
		f.set()
	}
	if s.Outcome != nil {
		s.Outcome.Text = s.Outcome.Said()
	}
	return s, nil
}

// Said is the reply of a run that ended ok as one text: its payloads but for those that
// have places of their own.
func (o *Outcome) Said() string {
	if o.Kind != OK {
		return ""
	}
	return o.joined()
}

func (o *Outcome) joined() string {
	var texts []string
	for i := range o.Payloads {
		if p := &o.Payloads[i]; !p.beside() {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// ErrUnknown is a run id without a record under the tenant.
var ErrUnknown = errors.New("run: unknown")

// Load reads a record; ErrUnknown where there is none.
func Load(ctx context.Context, t table.Store, ref Ref) (Status, error) {
	it, err := t.Get(ctx, ref.StatusKey())
	if errors.Is(err, table.ErrNotFound) {
		return Status{}, ErrUnknown
	}
	if err != nil {
		return Status{}, fmt.Errorf("read run: %w", err)
	}
	return Decode(ref, it)
}

// Done says whether the run has its outcome.
func (s *Status) Done() bool { return s.Outcome != nil }
