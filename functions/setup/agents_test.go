package setup

import (
	"context"
	"iter"
	"strings"
	"testing"

	"laneway/shared/model"
	"laneway/shared/model/catalog"
	"laneway/shared/model/route"
	"laneway/shared/session"
	"laneway/shared/table/tabletest"
	"laneway/shared/wiring"
)

type silent struct{ spec route.Spec }

func (silent) Stream(context.Context, model.Request) iter.Seq2[model.Part, error] { return nil }

// The models of a stack are those that its config table configures; keys come from the
// stack's secret, and only to the function that calls models.
func TestAgents_ModelsOfTheConfigTable(t *testing.T) {
	t.Parallel()
	store := tabletest.NewModel()
	text := `{"providers": {"corp": {"api": "openai-completions", "baseUrl": "https://h/v1", "apiKey": {"secret": "corp-key"}, "models": [{"id": "big"}]}},
		"defaults": {"model": {"primary": "corp/big", "fallbacks": ["anthropic/claude-x"]}}}`
	if err := catalog.Save(t.Context(), store, session.DefaultTenant, []byte(text)); err != nil {
		t.Fatal(err)
	}
	f := &Function{Env: Env{Workspace: t.TempDir()}, Core: &wiring.Core{Ports: wiring.Ports{Store: store}}}
	lists, err := f.Agents(t.Context(), false) // the gateway has no key and no adapter
	if err != nil {
		t.Fatal(err)
	}
	agents, err := lists.Directory().Agents(t.Context(), session.DefaultTenant)
	if err != nil || agents[0].Model != "big" || len(agents[0].Fallbacks) != 1 {
		t.Errorf("%+v, %v", agents, err)
	}
	f.Make = func(_ context.Context, s route.Spec) (model.Provider, error) { return silent{s}, nil }
	if _, err := f.Agents(t.Context(), true); err == nil || !strings.Contains(err.Error(), "anthropic") && !strings.Contains(err.Error(), "defaults.model.fallbacks[0]") {
		t.Errorf("a fallback without a key: %v", err)
	}
	f.Secrets = Secrets{AnthropicKey: "a", All: map[string]string{"corp-key": "c", "ANTHROPIC_API_KEY": "a"}}
	calls, err := f.Agents(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := calls.Routes.Primary().Provider.(silent); !ok || p.spec.Key != "c" {
		t.Errorf("%+v", calls.Routes.Primary())
	}
}
