package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/agent"
	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func selected() model.Selected {
	return model.Selected{Name: "fake", Model: "fake-1", ContextWindow: 1000}
}

// set is the agents main and helper, each with a workspace of its own.
func set(t *testing.T, shell bool) (s *agent.Set, root string) {
	t.Helper()
	root = t.TempDir()
	s, err := agent.New(agent.Config{
		Agents: []agent.Spec{{ID: "main", Name: "Main", Workspace: filepath.Join(root, "main")}, {ID: "helper", Workspace: filepath.Join(root, "helper")}},
		Model:  selected(), Shell: shell,
	})
	must(t, err)
	return s, root
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	ok := agent.Spec{ID: "main", Workspace: dir}
	for want, specs := range map[string][]agent.Spec{
		"agent main is missing":         {{ID: "other", Workspace: dir}},
		`agent id "No"`:                 {ok, {ID: "No", Workspace: dir}},
		"configured twice":              {ok, ok},
		"workspace of agent main is":    {{ID: "main"}},
		"workspace of agent helper: mk": {ok, {ID: "helper", Workspace: filepath.Join(file, "below")}},
	} {
		if _, err := agent.New(agent.Config{Agents: specs, Model: selected()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestNew_LeavesTheCallersListAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/a/../b"
	specs := []agent.Spec{{ID: "main", Workspace: dir}}
	s, err := agent.New(agent.Config{Agents: specs, Model: selected()})
	must(t, err)
	if specs[0].Workspace != dir || s.Agents[0].Workspace != filepath.Clean(dir) {
		t.Errorf("given %s, kept %s", specs[0].Workspace, s.Agents[0].Workspace)
	}
}

func TestTools_AreThoseOfTheAgent(t *testing.T) {
	t.Parallel()
	for _, shell := range []bool{false, true} {
		s, root := set(t, shell)
		scope := tool.Scope{AgentID: "helper"}
		tools, err := s.Tools(t.Context(), &scope)
		must(t, err)
		if scope.Workspace != filepath.Join(root, "helper") {
			t.Errorf("workspace %s", scope.Workspace)
		}
		if _, ok := tools.Lookup("exec"); ok != shell {
			t.Errorf("shell %v: exec is there: %v", shell, ok)
		}
		if _, err := s.Tools(t.Context(), &tool.Scope{AgentID: "nobody"}); !errors.Is(err, agent.ErrUnknown) {
			t.Errorf("an unknown agent: %v", err)
		}
	}
}

func TestPrompt_DependsOnInputFilesAndDateAlone(t *testing.T) {
	t.Parallel()
	s, root := set(t, false)
	must(t, os.WriteFile(filepath.Join(root, "main", "AGENTS.md"), []byte("Speak in rhymes."), 0o600))
	in := loop.PromptInput{
		Scope: tool.Scope{AgentID: "main", SessionKey: "agent:main:main", SessionID: "sid"}, Model: selected(),
		Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	a, err := s.Prompt(t.Context(), in)
	must(t, err)
	b, err := s.Prompt(t.Context(), in)
	must(t, err)
	if a != b || !strings.Contains(a, "Speak in rhymes.") {
		t.Errorf("prompts of %d and %d bytes", len(a), len(b))
	}
	in.Scope.AgentID = "helper"
	other, err := s.Prompt(t.Context(), in)
	must(t, err)
	if strings.Contains(other, "rhymes") {
		t.Error("an agent reads the files of another")
	}
	in.Scope.AgentID = "nobody"
	if _, err := s.Prompt(t.Context(), in); !errors.Is(err, agent.ErrUnknown) {
		t.Errorf("an unknown agent: %v", err)
	}
}

func TestSelect_TheModelThatWasAskedFor(t *testing.T) {
	t.Parallel()
	s, _ := set(t, false)
	for _, c := range []struct {
		name  string
		in    run.Input
		entry session.Entry
		want  string // empty: refused
	}{
		{"nothing", run.Input{}, session.Entry{}, "fake-1"},
		{"by the run", run.Input{Model: "fake-2"}, session.Entry{}, "fake-2"},
		{"by the session", run.Input{}, session.Entry{ModelOverride: "fake-3"}, "fake-3"},
		{"the run before the session", run.Input{Model: "fake-2"}, session.Entry{ModelOverride: "fake-3"}, "fake-2"},
		{"with its provider", run.Input{Provider: "fake", Model: "fake-2"}, session.Entry{}, "fake-2"},
		{"as one word", run.Input{Model: "fake/fake-2"}, session.Entry{}, "fake-2"},
		{"a slash of its own", run.Input{Model: "org/fake-2"}, session.Entry{}, "org/fake-2"},
		{"of another provider", run.Input{Provider: "other", Model: "m"}, session.Entry{}, ""},
	} {
		got, err := s.Select(t.Context(), c.in, c.entry)
		me, refused := errors.AsType[*model.Error](err)
		if refused != (c.want == "") || refused && me.Class != model.ModelNotFound || !refused && got.Model != c.want {
			t.Errorf("%s: %q, %v", c.name, got.Model, err)
		}
	}
}
