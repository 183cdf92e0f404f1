// Package agent is who answers: the configured agents with their workspaces, tools
// and system prompts, and the model that they use.
//
// Guarantees: the set of agents is fixed while a process lives; an agent's tools
// work in its own workspace and nowhere else; the prompt of a run depends on
// nothing but its input, the workspace's files and the date.
package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/model/route"
	"laneway/shared/prompt"
	"laneway/shared/rpc"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/tool"
	"laneway/shared/tool/builtin"
	"laneway/shared/workspace"
)

// Spec is a configured agent.
type Spec struct {
	ID        string // session.DefaultAgent among them
	Name      string
	Workspace string // directory, made where it is missing
}

// Config of a Set.
type Config struct {
	Agents []Spec
	Model  model.Selected
	Models []model.Info
	// Routes has the models of a configuration; nil: Model and Models alone.
	Routes *route.Set
	Clock  clock.Clock    // nil: the machine's
	Zone   *time.Location // of dates in prompts; nil: UTC
	// Shell gives agents the tools write and exec, which change things.
	Shell bool
	Runs  builtin.RunInfoSource // what session_status tells of a run; nil: little
}

// Set is the agents of a process.
type Set struct {
	Config
	byID  map[string]Spec
	tools *tool.Registry
}

// New checks c, makes the workspaces and compiles the tools.
func New(c Config) (*Set, error) {
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	c.Agents = slices.Clone(c.Agents) // the caller's list stays as it is
	s := &Set{Config: c, byID: make(map[string]Spec)}
	for i, a := range c.Agents {
		_, twice := s.byID[a.ID]
		switch {
		case !session.ValidAgent(a.ID):
			return nil, fmt.Errorf("agent id %q must match [a-z0-9][a-z0-9_-]{0,63}", a.ID)
		case twice:
			return nil, fmt.Errorf("agent %s is configured twice", a.ID)
		case a.Workspace == "":
			return nil, fmt.Errorf("workspace of agent %s is missing", a.ID)
		}
		dir, err := filepath.Abs(a.Workspace)
		if err != nil {
			return nil, fmt.Errorf("workspace of agent %s: %w", a.ID, err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("workspace of agent %s: %w", a.ID, err)
		}
		a.Workspace = dir
		s.Agents[i], s.byID[a.ID] = a, a
	}
	if _, ok := s.byID[session.DefaultAgent]; !ok {
		return nil, fmt.Errorf("agent %s is missing", session.DefaultAgent)
	}
	tools := []tool.Tool{builtin.Read{}, builtin.Ls{}, builtin.SessionStatus{Clock: c.Clock, Zone: c.Zone, Runs: c.Runs}}
	if c.Shell {
		tools = append(tools, builtin.Write{}, builtin.Exec{Environ: os.Environ()}) //nolint:forbidigo // a person's commands get that person's environment, of which exec passes on only what it names
	}
	var err error
	s.tools, err = tool.NewRegistry(tools...)
	return s, err
}

// ErrUnknown is an agent that is not configured.
var ErrUnknown = errors.New("agent: unknown")

// Tools implements loop.Agents.
func (s *Set) Tools(_ context.Context, scope *tool.Scope) (*tool.Registry, error) {
	a, ok := s.byID[scope.AgentID]
	if !ok {
		return nil, ErrUnknown
	}
	scope.Workspace = a.Workspace
	return s.tools, nil
}

// Prompt implements loop.Agents.
func (s *Set) Prompt(_ context.Context, p loop.PromptInput) (string, error) {
	a, ok := s.byID[p.Scope.AgentID]
	if !ok {
		return "", ErrUnknown
	}
	in := prompt.Input{
		Mode: prompt.Mode(p.Input.PromptMode), AgentName: a.Name, Workspace: a.Workspace, WorkDir: p.Input.Cwd,
		Now: p.Now, Zone: s.Zone, Extra: p.Input.ExtraPrompt,
		Runtime: prompt.Runtime{
			Agent: a.ID, Session: p.Scope.SessionKey, SessionID: p.Scope.SessionID,
			OS: runtime.GOOS, Arch: runtime.GOARCH, Model: p.Model.Name + "/" + p.Model.Model, Thinking: p.Thinking,
		},
	}
	for _, t := range p.Tools {
		in.Tools = append(in.Tools, prompt.Tool{Name: t.Name, Summary: t.Description})
	}
	if in.Mode != prompt.None {
		dir, err := workspace.Open(a.Workspace)
		if err != nil {
			return "", err
		}
		defer func() { _ = dir.Close() }()
		if in.Files, err = prompt.Load(dir, kindOf(p.Scope.SessionKey)); err != nil {
			return "", err
		}
		in.Files = present(in.Files)
	}
	return prompt.Build(in).String(), nil
}

// present leaves out files that are expected and missing where there is none at
// all: a plain folder is not told what it lacks.
func present(files []prompt.File) []prompt.File {
	for _, f := range files {
		if !f.Missing {
			return files
		}
	}
	return nil
}

func kindOf(key string) prompt.Kind {
	switch {
	case strings.Contains(key, ":subagent:"):
		return prompt.Subagent
	case strings.Contains(key, ":cron:"):
		return prompt.Cron
	case strings.Contains(key, ":group:"), strings.Contains(key, ":channel:"):
		return prompt.Group
	}
	return prompt.Main
}

// Select implements loop.Models: the configured model, under another id where the
// run or the session asks for one of the same provider.
func (s *Set) Select(_ context.Context, in run.Input, e session.Entry) (model.Selected, error) {
	sel := s.Model
	provider, id := in.Provider, in.Model
	if id == "" {
		provider, id = e.ModelProvider, e.ModelOverride
	}
	if id == "" {
		return sel, nil
	}
	if p, rest, ok := strings.Cut(id, "/"); ok && provider == "" && p == sel.Name {
		provider, id = p, rest
	}
	if provider != "" && provider != sel.Name {
		return sel, &model.Error{Class: model.ModelNotFound, Message: fmt.Sprintf("The model provider %q is not configured here.", provider)}
	}
	sel.Model = id
	return sel, nil
}

// Candidates implements loop.Chains: the models that may answer a run, by the
// configuration; without one the model of Select alone.
func (s *Set) Candidates(ctx context.Context, in run.Input, e session.Entry, agentID string) ([]model.Candidate, error) {
	if s.Routes == nil {
		sel, err := s.Select(ctx, in, e)
		return []model.Candidate{{Selected: sel}}, err
	}
	return s.Routes.Candidates(ctx, route.Question{
		Agent: agentID, Provider: in.Provider, Model: in.Model, Fallbacks: in.Fallbacks,
		SessionProvider: e.ModelProvider, SessionModel: e.ModelOverride, SessionSource: e.ModelSource,
	})
}

// Preferred is what the configuration says for an agent's runs that say nothing.
func (s *Set) Preferred(agentID string) loop.Preferred {
	if s.Routes == nil {
		return loop.Preferred{}
	}
	_, _, level := s.Routes.Default(agentID)
	d := s.Routes.Catalog().Defaults
	return loop.Preferred{Thinking: level, Verbose: d.Verbose, Reasoning: d.Reasoning, Fast: d.Fast, Timeout: d.Timeout}
}

// Directory is the set as the gateway lists it: every tenant has the same agents.
func (s *Set) Directory() rpc.Directory { return directory{s} }

type directory struct{ s *Set }

func (d directory) Models(context.Context, string) ([]model.Info, error) {
	if r := d.s.Routes; r != nil {
		return r.Infos(), nil
	}
	return d.s.Config.Models, nil
}

func (d directory) Agents(context.Context, string) ([]rpc.Agent, error) {
	s := d.s
	out := make([]rpc.Agent, len(s.Config.Agents))
	for i, a := range s.Config.Agents {
		out[i] = rpc.Agent{
			ID: a.ID, Name: a.Name, Workspace: a.Workspace,
			Provider: s.Model.Name, Model: s.Model.Model, ContextTokens: int64(s.Model.ContextWindow),
		}
		if s.Routes != nil {
			sel, fallbacks, level := s.Routes.Default(a.ID)
			out[i].Provider, out[i].Model, out[i].ContextTokens = sel.Name, sel.Model, int64(sel.ContextWindow)
			out[i].Fallbacks, out[i].Thinking = fallbacks, level
		}
	}
	return out, nil
}

// Credentials implements rpc.Credentials: what opens the providers, and whether it is
// there.
func (d directory) Credentials(context.Context, string) ([]rpc.Credential, error) {
	if d.s.Routes == nil {
		return nil, nil
	}
	list := d.s.Routes.Credentials()
	out := make([]rpc.Credential, len(list))
	for i, c := range list {
		out[i] = rpc.Credential(c)
	}
	return out, nil
}

// Preferences implements rpc.Preferences: what holds where a session says nothing.
func (d directory) Preferences(context.Context, string) (rpc.Preferred, error) {
	if d.s.Routes == nil {
		return rpc.Preferred{}, nil
	}
	c := d.s.Routes.Catalog().Defaults
	return rpc.Preferred{Verbose: c.Verbose, Reasoning: c.Reasoning, Fast: c.Fast, RunTimeout: c.Timeout}, nil
}
