// Package loop is one turn of an agent: it takes the claim that a wake-up leads to,
// and goes model, tools, model … until the answer is there.
//
// Guarantees: a step is in the tables before the next begins (L1); a tool that is
// not idempotent is begun at most once, and where its outcome is unknown the model
// is told so (L2); the end of a run is one transaction, made once (L3, L4), after
// which its ends are told and the lane goes on (L5); nothing is started while the
// claim is not fresh (C3); an abort is seen within the poll of the claim; nothing
// outlives Handle but tools and model calls that do not end when they are told to: they
// are left behind without the right to write.
package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/model/profile"
	"laneway/shared/model/retry"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/timeout"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// Models chooses the model of a run.
type Models interface {
	Select(ctx context.Context, in run.Input, e session.Entry) (model.Selected, error)
}

// Agents gives what belongs to an agent: its system prompt and its tools.
type Agents interface {
	Prompt(ctx context.Context, p PromptInput) (string, error)
	// Tools gives the tools of scope.AgentID, and fills in the workspace.
	Tools(ctx context.Context, scope *tool.Scope) (*tool.Registry, error)
}

// PromptInput is what a system prompt depends on.
type PromptInput struct {
	Scope    tool.Scope
	Model    model.Selected
	Input    run.Input
	Thinking string
	Tools    []tool.Spec
	Now      time.Time
}

// Ends tells the end of a run to everybody who waits, beside the run's own stream.
type Ends interface {
	lane.Finisher
	// Waiters answers the clients that wait apart from the run's origin.
	Waiters(ctx context.Context, st run.Status) error
	// Final is the second reply to an agent call; nil where the origin wants none.
	Final(st run.Status) []byte
	// Late takes what could not be posted in time of a run's events and reply.
	Late(ctx context.Context, st run.Status, unsent []stream.Unsent) error
}

// Files gives the files of a message as a model sees them.
type Files interface {
	Blocks(ctx context.Context, attachments json.RawMessage) ([]model.Block, error)
}

// Config of a Runner. Fields without a note are required.
type Config struct {
	Store  table.Store
	Lanes  *lane.Service
	Claims *claim.Service
	Log    *transcript.Log
	Stream *stream.Service
	Models Models
	Agents Agents
	Ends   Ends

	Chains    Chains    // nil: the model that Models selects, alone
	Cooldowns Cooldowns // nil: nothing is remembered of credentials
	// Tokens says whether the tokens that runs depend on are still granted; nil: they
	// always are.
	Tokens Tokens
	// Skips are fallbacks that a session passes by for a while; nil: none.
	Skips *profile.Skips
	// Preferred is what holds for an agent's runs where nothing else is said; nil: nothing.
	Preferred func(agentID string) Preferred

	// Measure is told of every run that this runner ended, once its end is in the
	// tables; it must not block. nil: nobody is.
	Measure func(run.Status)

	Files  Files        // nil: files of messages are left out
	Clock  clock.Clock  // nil: the machine's
	NewID  id.Source    // nil: UUIDs
	Logger *slog.Logger // nil: the default logger

	RunTimeout time.Duration // of a run that names none; 0: 48 h; negative: none
	StepNeed   time.Duration // R1: a step is not begun with less left of the invocation; 0: 30 s
	Reserve    time.Duration // kept for the last writes of an invocation; 0: 5 s
	MemoryMB   int           // of the function that it runs in, for what it costs; 0: no function
	MaxSteps   int64         // model calls of one run; 0: 1000
	Retry      retry.Config
}

// Runner handles wake-ups.
type Runner struct{ Config }

// New checks a Config and fills its defaults.
func New(c Config) (*Runner, error) {
	if c.Store == nil || c.Lanes == nil || c.Claims == nil || c.Log == nil || c.Stream == nil || c.Models == nil || c.Agents == nil || c.Ends == nil {
		return nil, errors.New("loop: store, lanes, claims, log, stream, models, agents and ends are required")
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.NewID == nil {
		c.NewID = id.UUID
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.RunTimeout = cmp.Or(c.RunTimeout, timeout.Run)
	c.StepNeed = cmp.Or(c.StepNeed, 30*time.Second)
	c.Reserve = cmp.Or(c.Reserve, 5*time.Second)
	c.MaxSteps = cmp.Or(c.MaxSteps, 1000)
	return &Runner{c}, nil
}
