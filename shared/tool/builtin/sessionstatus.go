package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/model"
	"laneway/shared/tool"
)

// RunInfo is what is known of the run that asks for its status. Empty and zero
// fields are left out of the answer.
type RunInfo struct {
	Model     string // provider/model
	Thinking  string
	Lane      string
	StartedAt time.Time
	Usage     model.Usage // of the run so far
	// ContextWindow of the model in tokens and what of it the last call used.
	ContextWindow, ContextUsed int64
	Queued                     int // messages that wait behind this run
	Compactions                int
}

// RunInfoSource knows the run of a call's scope.
type RunInfoSource interface {
	RunInfo(ctx context.Context, scope tool.Scope) (RunInfo, error)
}

// SessionStatus is the tool that tells the time and what is known of the session.
// Runs may be nil: then only time, session and run are told. A nil Zone is UTC.
type SessionStatus struct {
	Clock clock.Clock
	Zone  *time.Location
	Runs  RunInfoSource
}

// Spec describes the tool.
func (s SessionStatus) Spec() tool.Spec {
	return tool.Spec{
		Name:        "session_status",
		Description: "Tell the current date and time, this session, its model and token use.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"sessionKey":{"type":"string","description":"This session if not given"}}}`),
		Effect: tool.ReadOnly,
	}
}

// Run makes the card.
func (s SessionStatus) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := decode[struct {
		SessionKey string `json:"sessionKey"`
	}](call)
	if err != nil {
		return tool.Result{}, err
	}
	if k := args.SessionKey; k != "" && k != "current" && k != call.Scope.SessionKey {
		return tool.Result{}, fmt.Errorf("session %s cannot be seen from here: only this session, %s", k, call.Scope.SessionKey)
	}
	var info RunInfo
	if s.Runs != nil {
		if info, err = s.Runs.RunInfo(ctx, call.Scope); err != nil {
			return tool.Result{}, fmt.Errorf("session status: %w", err)
		}
	}
	now := s.Clock.Now().In(cmp.Or(s.Zone, time.UTC))
	r := tool.TextResult(statusCard(now, call.Scope, info))
	r.Details = map[string]any{"sessionKey": call.Scope.SessionKey, "now": now.Format(time.RFC3339)}
	r.Meta = "session status"
	return r, nil
}

func statusCard(now time.Time, scope tool.Scope, info RunInfo) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	line("Time", now.Format("Monday, 2006-01-02 15:04:05 -07:00")+" ("+now.Location().String()+")")
	line("Session", scope.SessionKey)
	line("Session id", scope.SessionID)
	line("Agent", scope.AgentID)
	line("Run", scope.RunID)
	line("Lane", info.Lane)
	if !info.StartedAt.IsZero() {
		line("Running for", now.Sub(info.StartedAt).Round(time.Second).String())
	}
	line("Model", info.Model)
	line("Thinking", info.Thinking)
	if u := info.Usage; u != (model.Usage{}) {
		line("Tokens of this run", fmt.Sprintf("%d in, %d out, %d from cache", u.Input, u.Output, u.CacheRead))
	}
	if info.ContextWindow > 0 && info.ContextUsed > 0 {
		line("Context", fmt.Sprintf("%d of %d tokens (%d%%)", info.ContextUsed, info.ContextWindow, 100*info.ContextUsed/info.ContextWindow))
	}
	if info.Compactions > 0 {
		line("Compactions", strconv.Itoa(info.Compactions))
	}
	if info.Queued > 0 {
		line("Waiting messages", strconv.Itoa(info.Queued))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
