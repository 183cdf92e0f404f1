package setup

import (
	"context"

	"laneway/shared/agent"
	"laneway/shared/model"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
	"laneway/shared/model/route"
	"laneway/shared/session"
)

// Choice is what the environment says about models.
func (f *Function) Choice() choose.Config {
	return choose.Config{
		Selector: f.Env.Model, AnthropicKey: f.Secrets.AnthropicKey, OpenAIKey: f.Secrets.OpenAIKey,
		OpenAIBaseURL: f.Secrets.OpenAIURL, AWS: true,
	}
}

// Agents makes the agents of the stack around its models: those that the config table
// configures, and what the environment adds. A process that calls no model gives no
// makers, and lists alone.
func (f *Function) Agents(ctx context.Context, call bool) (*agent.Set, error) {
	configured, err := catalog.Load(ctx, f.Core.Store, session.DefaultTenant)
	if err != nil {
		return nil, err
	}
	cfg := agent.Config{
		Agents: []agent.Spec{{ID: session.DefaultAgent, Name: "main", Workspace: f.Env.Workspace + "/" + session.DefaultAgent}},
	}
	if !call && configured == nil {
		// It has no provider's key, and lists the model that was named by name alone.
		ref, err := choose.Named(f.Env.Model)
		if err != nil {
			return nil, err
		}
		if ref.ID != "" {
			cfg.Model = model.Selected{Name: ref.Provider, Model: ref.ID}
			cfg.Models = []model.Info{{ID: ref.ID, Name: ref.ID, Provider: ref.Provider}}
		}
		return agent.New(cfg)
	}
	r := route.Config{Catalog: configured, Env: f.Choice(), Fallbacks: route.SplitList(f.Env.Fallbacks)}
	if !call { // keys are where the models are called
		r.Env.AnthropicKey, r.Env.OpenAIKey = "elsewhere", "elsewhere"
	}
	if call {
		r.Make, r.Makers, r.Secret = f.Make, f.Makers, f.secret
	}
	if cfg.Routes, err = route.Open(ctx, r); err != nil {
		return nil, err
	}
	cfg.Model, cfg.Models = cfg.Routes.Primary(), cfg.Routes.Infos()
	return agent.New(cfg)
}

// secret looks a key up in the stack's secret, by whichever name it goes.
func (f *Function) secret(k catalog.Key) string { return f.Secrets.All[k.Name] }
