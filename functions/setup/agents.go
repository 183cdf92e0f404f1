package setup

import (
	"laneway/shared/agent"
	"laneway/shared/model"
	"laneway/shared/model/choose"
	"laneway/shared/session"
)

// Choice is what the environment says about models.
func (f *Function) Choice() choose.Config {
	return choose.Config{
		Selector: f.Env.Model, AnthropicKey: f.Secrets.AnthropicKey, OpenAIKey: f.Secrets.OpenAIKey,
		OpenAIBaseURL: f.Secrets.OpenAIURL, AWS: true,
	}
}

// Agents makes the agents of the stack around a model.
func (f *Function) Agents(sel model.Selected, models []model.Info) (*agent.Set, error) {
	return agent.New(agent.Config{
		Agents: []agent.Spec{{ID: session.DefaultAgent, Name: "main", Workspace: f.Env.Workspace + "/" + session.DefaultAgent}},
		Model:  sel, Models: models,
	})
}
