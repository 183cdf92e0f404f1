// Package choose finds the provider and the model from the environment's settings.
//
// Guarantees: LANEWAY_MODEL wins, split at its first slash into provider and id;
// else Anthropic if its key is there, else OpenAI or a server like it, else the
// built-in demo. Errors name the variable that is wrong or missing and never show
// a value that may be a secret. The package links no SDK: the adapters are handed
// in, so that a function that only lists models stays small.
package choose

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"laneway/shared/model"
	"laneway/shared/model/demo"
	"laneway/shared/model/watch"
)

// The provider ids.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Bedrock   = "bedrock"
	Demo      = demo.ID
)

// Config is what the environment says, each field under its variable.
type Config struct {
	Selector      string // LANEWAY_MODEL: provider/id, or a provider alone
	AnthropicKey  string // ANTHROPIC_API_KEY
	AnthropicURL  string // ANTHROPIC_BASE_URL; empty: Anthropic's own
	OpenAIKey     string // OPENAI_API_KEY
	OpenAIBaseURL string // OPENAI_BASE_URL; empty: OpenAI's own
	// AWS says that credentials for AWS are there.
	AWS bool
}

// Lister is a provider that can say which models it has.
type Lister interface {
	model.Provider
	ListModels(ctx context.Context) ([]model.Info, error)
}

// Makers make the adapters. One that is nil is not built in: choosing it is an
// error that says so.
type Makers struct {
	Anthropic func(Config) (model.Provider, error)
	OpenAI    func(Config) (Lister, error)
	Bedrock   func(context.Context) (model.Provider, error)
	Demo      func() model.Provider // nil: the demo with its defaults
}

// Ref is a provider and a model's id there. ID is empty for a server that must be
// asked which models it has.
type Ref struct{ Provider, ID string }

// Decide applies the rules; nothing is made or asked.
func Decide(cfg Config) (Ref, error) {
	if cfg.Selector != "" {
		provider, id, _ := strings.Cut(cfg.Selector, "/")
		return cfg.selected(provider, id)
	}
	switch {
	case cfg.AnthropicKey != "":
		return cfg.selected(Anthropic, "")
	case cfg.OpenAIKey != "" || cfg.OpenAIBaseURL != "":
		return cfg.selected(OpenAI, "")
	}
	return cfg.selected(Demo, "")
}

// Named is the model that LANEWAY_MODEL alone names, for a process that lists models
// and has no keys. It is zero where the selector is empty: which provider has a key
// is then known only to the process that holds them.
func Named(selector string) (Ref, error) {
	if selector == "" {
		return Ref{}, nil
	}
	// Keys and credentials are assumed to be where the models are called.
	return Decide(Config{Selector: selector, AnthropicKey: "elsewhere", OpenAIKey: "elsewhere", AWS: true})
}

func (cfg Config) selected(provider, id string) (Ref, error) {
	r := Ref{provider, id}
	switch provider {
	case Anthropic:
		if cfg.AnthropicKey == "" {
			return Ref{}, errors.New("LANEWAY_MODEL asks for anthropic, but ANTHROPIC_API_KEY is not set")
		}
		if id == "" {
			r.ID = DefaultAnthropic
		}
	case OpenAI:
		if cfg.OpenAIKey == "" && cfg.OpenAIBaseURL == "" {
			return Ref{}, errors.New("LANEWAY_MODEL asks for openai, but neither OPENAI_API_KEY nor OPENAI_BASE_URL is set")
		}
		if id == "" && cfg.OpenAIBaseURL == "" {
			r.ID = DefaultOpenAI
		}
	case Bedrock:
		if id == "" {
			return Ref{}, errors.New("LANEWAY_MODEL=bedrock needs a model id behind it: bedrock/<model id>")
		}
		if !cfg.AWS {
			return Ref{}, errors.New("LANEWAY_MODEL asks for bedrock, but there are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
		}
	case Demo:
		if id != "" && id != demo.ID {
			return Ref{}, errors.New("LANEWAY_MODEL=demo takes no model id")
		}
		r.ID = demo.ID
	default:
		// The value is shown in part only: people paste keys into wrong variables.
		return Ref{}, fmt.Errorf("LANEWAY_MODEL names an unknown provider%s: use openai/<id>, anthropic/<id>, bedrock/<id> or demo", plain(provider))
	}
	return r, nil
}

// plain is a provider's name for an error if it is nothing but a short word.
func plain(name string) string {
	if name == "" || len(name) > 16 {
		return ""
	}
	for _, r := range name {
		if r < 'a' || r > 'z' {
			return ""
		}
	}
	return " " + name
}

// Select decides and makes the provider. A server under OPENAI_BASE_URL without a
// model id is asked for its models, and the first one is taken; that is the only
// case in which something is sent. The list is for models.list, the selected model
// first.
func Select(ctx context.Context, cfg Config, m Makers) (model.Selected, []model.Info, error) {
	ref, err := Decide(cfg)
	if err != nil {
		return model.Selected{}, nil, err
	}
	p, more, err := provide(ctx, cfg, m, &ref)
	if err != nil {
		return model.Selected{}, nil, err
	}
	s := model.Selected{Provider: p, Name: ref.Provider, Model: ref.ID, ContextWindow: ContextWindow(ref.ID), Endpoint: endpoint(cfg, ref)}
	return s, merge(cfg, ref, more), nil
}

// provide makes the adapter and completes ref.
func provide(ctx context.Context, cfg Config, m Makers, ref *Ref) (model.Provider, []model.Info, error) {
	missing := fmt.Errorf("LANEWAY_MODEL asks for %s, which is not built in here", ref.Provider)
	switch ref.Provider {
	case Anthropic:
		if m.Anthropic == nil {
			return nil, nil, missing
		}
		p, err := m.Anthropic(cfg)
		return p, nil, named(err, "ANTHROPIC_BASE_URL")
	case Bedrock:
		if m.Bedrock == nil {
			return nil, nil, missing
		}
		p, err := m.Bedrock(ctx)
		return p, nil, named(err, "AWS_REGION or AWS_PROFILE")
	case OpenAI:
		if m.OpenAI == nil {
			return nil, nil, missing
		}
		p, err := m.OpenAI(cfg)
		if err != nil || ref.ID != "" {
			return p, nil, named(err, "OPENAI_BASE_URL")
		}
		list, err := p.ListModels(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("ask the server at OPENAI_BASE_URL for its models (or name one: LANEWAY_MODEL=openai/<id>): %w", err)
		}
		if len(list) == 0 {
			return nil, nil, errors.New("the server at OPENAI_BASE_URL lists no models: name one with LANEWAY_MODEL=openai/<id>")
		}
		ref.ID = list[0].ID
		return p, list, nil
	}
	if m.Demo != nil {
		return m.Demo(), nil, nil
	}
	return demo.New(demo.Config{}), nil, nil
}

func named(err error, variable string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("check %s: %w", variable, err)
}

func endpoint(cfg Config, ref Ref) model.Endpoint {
	t := watch.Target{Provider: ref.Provider, Model: ref.ID}
	switch ref.Provider {
	case OpenAI:
		t.BaseURL, t.APIKey = cfg.OpenAIBaseURL, cfg.OpenAIKey
	case Anthropic:
		t.BaseURL = cfg.AnthropicURL
	case Demo:
		return model.Local
	}
	return watch.Class(t)
}

// Known is the list for models.list without making or asking anything: the
// selected model and the defaults of what else is configured. A server's own
// models are not in it, since only the server knows them.
func Known(cfg Config) ([]model.Info, error) {
	ref, err := Decide(cfg)
	if err != nil {
		return nil, err
	}
	return merge(cfg, ref, nil), nil
}

// merge puts the lists together, each model once.
func merge(cfg Config, ref Ref, more []model.Info) []model.Info {
	all := []model.Info{{ID: ref.ID, Provider: ref.Provider}}
	all = append(all, more...)
	if cfg.AnthropicKey != "" {
		all = append(all, model.Info{ID: DefaultAnthropic, Provider: Anthropic})
	}
	if cfg.OpenAIKey != "" && cfg.OpenAIBaseURL == "" {
		all = append(all, model.Info{ID: DefaultOpenAI, Provider: OpenAI})
	}
	all = append(all, demo.Info())
	var (
		out  []model.Info
		seen = make(map[Ref]bool)
	)
	for _, i := range all {
		r := Ref{i.Provider, i.ID}
		if i.ID == "" || seen[r] {
			continue
		}
		seen[r] = true
		if r.Provider == Demo {
			i = demo.Info()
		}
		if i.Name == "" {
			i.Name = i.ID
		}
		if i.ContextWindow == 0 {
			i.ContextWindow = ContextWindow(i.ID)
		}
		out = append(out, i)
	}
	return out
}
