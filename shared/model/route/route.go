// Package route finds the models that may answer a run: the wanted one and, by where
// that choice came from, those that take its place (spec: runtime 7.5).
//
// Guarantees: the same configuration and the same question give the same chain; a
// model is in it once; nothing is sent, and a key is looked up only where it is used;
// errors name the path or the variable that is wrong and never show a key. It links no
// SDK: what makes adapters is handed in.
package route

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"laneway/shared/model"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
	"laneway/shared/model/demo"
	"laneway/shared/model/watch"
)

// Spec is what an adapter is made of.
type Spec struct {
	API     catalog.API
	Name    string // provider id
	BaseURL string
	Region  string
	Key     string
	Header  http.Header
}

// Config of a Set. Fields without a note are required.
type Config struct {
	Catalog *catalog.Catalog // nil: the environment alone
	Env     choose.Config
	// Fallbacks of the configured default, as LANEWAY_FALLBACKS names them; nil: those
	// of the catalog.
	Fallbacks []string
	// Make makes adapters of the catalog, Makers those of the environment. A process
	// that calls no model has neither and may only list.
	Make   func(context.Context, Spec) (model.Provider, error)
	Makers choose.Makers
	// Secret gives what a key's holder has in it; nil: nothing.
	Secret func(catalog.Key) string
}

// Set is the models of a process.
type Set struct {
	cfg     Config
	cat     *catalog.Catalog
	primary model.Selected
	infos   []model.Info

	mu   sync.Mutex
	made map[string]model.Provider // by provider and profile
}

// Open checks the configuration whole and finds the model that is used where nothing
// else is chosen. A server that the environment names without a model is asked for one.
func Open(ctx context.Context, cfg Config) (*Set, error) {
	s := &Set{cfg: cfg, made: map[string]model.Provider{}}
	s.cat = merge(cfg.Catalog, cfg.Env)
	if cfg.Fallbacks != nil {
		s.cat.Defaults.Fallbacks = cfg.Fallbacks
		for _, ref := range cfg.Fallbacks {
			if _, _, ok := s.cat.Find(ref); !ok {
				return nil, errors.New("LANEWAY_FALLBACKS names a model whose provider is not configured: use provider/id, separated by commas")
			}
		}
	}
	if err := s.cat.Refer(); err != nil {
		return nil, err
	}
	if err := s.first(ctx); err != nil {
		return nil, err
	}
	s.infos = s.list()
	return s, nil
}

// first finds the primary model: LANEWAY_MODEL, the catalog's, the environment's.
func (s *Set) first(ctx context.Context) error {
	if provider, id, ok := s.configured(); ok {
		c, err := s.candidate(provider, id)
		if err != nil {
			return err
		}
		if c.Missing && s.cfg.Make != nil {
			p, _ := s.cat.Provider(provider)
			return fmt.Errorf("the model %s needs a key: %s", catalog.Ref(provider, id), wants(&p))
		}
		s.primary = c.Selected
		return nil
	}
	if s.cfg.Make == nil {
		return nil // which provider has a key is known where models are called
	}
	sel, infos, err := choose.Select(ctx, s.cfg.Env, s.cfg.Makers)
	if err != nil {
		return err
	}
	s.primary, s.infos = s.complete(sel), infos
	s.made[sel.Name+"\x00"] = sel.Provider
	return nil
}

// wants says where a provider's key is looked for.
func wants(p *catalog.Provider) string {
	switch p.Key.Source {
	case catalog.FromEnv:
		return "the environment variable " + p.Key.Name + " is not set"
	case catalog.FromSecret:
		return "the secret " + p.Key.Name + " is empty or missing"
	}
	return "providers." + p.ID + ".apiKey names none"
}

// configured is the primary model if a configuration names it.
func (s *Set) configured() (provider, id string, ok bool) {
	want := s.cfg.Env.Selector
	if want == "" {
		want = s.cat.Defaults.Primary
	} else if s.cfg.Catalog == nil {
		return "", "", false
	}
	if want == "" {
		return "", "", false
	}
	if provider, id, ok = s.cat.Find(want); ok {
		// What the environment alone configures keeps its own rules.
		if s.cfg.Catalog != nil {
			if _, mine := s.cfg.Catalog.Provider(provider); mine {
				return provider, id, true
			}
		}
		return provider, id, s.cfg.Env.Selector == ""
	}
	if p, known := s.cat.Provider(want); known && len(p.Models) > 0 {
		return p.ID, p.Models[0].ID, true
	}
	return "", "", false
}

// merge adds the providers that the environment configures, and what it says of those
// that the file leaves open.
func merge(file *catalog.Catalog, env choose.Config) *catalog.Catalog {
	c := &catalog.Catalog{Order: map[string][]string{}, Agents: map[string]catalog.Choice{}}
	if file != nil {
		*c = *file
		c.Providers = append([]catalog.Provider(nil), file.Providers...)
	}
	add := func(id string, there bool, p catalog.Provider) {
		for i := range c.Providers {
			mine := &c.Providers[i]
			if mine.ID != id {
				continue
			}
			if profiles, _ := c.ProfilesOf(id); mine.Key.Zero() && len(profiles) == 0 {
				mine.Key = p.Key
			}
			if mine.BaseURL == "" {
				mine.BaseURL = p.BaseURL
			}
			return
		}
		if there {
			p.ID = id
			c.Providers = append(c.Providers, p)
		}
	}
	key := func(value, name string) catalog.Key {
		if value == "" {
			return catalog.Key{}
		}
		return catalog.Key{Source: catalog.FromEnv, Name: name}
	}
	add(choose.Anthropic, env.AnthropicKey != "", catalog.Provider{
		API: catalog.Anthropic, BaseURL: env.AnthropicURL, Key: key(env.AnthropicKey, "ANTHROPIC_API_KEY"),
	})
	add(choose.OpenAI, env.OpenAIKey != "" || env.OpenAIBaseURL != "", catalog.Provider{
		API: catalog.OpenAI, BaseURL: env.OpenAIBaseURL, Key: key(env.OpenAIKey, "OPENAI_API_KEY"),
	})
	add(choose.Bedrock, env.AWS, catalog.Provider{API: catalog.Bedrock})
	add(choose.Demo, true, catalog.Provider{Models: []catalog.Model{{ID: demo.ID}}})
	return c
}

// complete adds what the configuration knows of a model.
func (s *Set) complete(sel model.Selected) model.Selected {
	p, _ := s.cat.Provider(sel.Name)
	m := p.Model(sel.Model)
	sel.API, sel.Timeout, sel.MaxTokens, sel.Price = string(p.API), p.Timeout, m.MaxTokens, m.Price
	if m.ContextWindow > 0 {
		sel.ContextWindow = m.ContextWindow
	} else if sel.ContextWindow == 0 {
		sel.ContextWindow = choose.ContextWindow(sel.Model)
	}
	if m.Reasoning != nil {
		sel.Reasons, sel.Plain = *m.Reasoning, !*m.Reasoning
	}
	return sel
}

// candidate is a model with its credentials.
func (s *Set) candidate(provider, id string) (model.Candidate, error) {
	p, ok := s.cat.Provider(provider)
	if !ok {
		return model.Candidate{}, &model.Error{Class: model.ModelNotFound, Message: fmt.Sprintf("The model provider %q is not configured here.", clip(provider)), Provider: provider, Model: id}
	}
	c := model.Candidate{Selected: s.complete(model.Selected{Name: p.ID, Model: id})}
	c.Endpoint = watch.Class(watch.Target{Provider: p.ID, Model: id, BaseURL: p.BaseURL, APIKey: s.secret(p.Key)})
	if p.ID == choose.Demo {
		c.Endpoint = model.Local
	}
	var profiles []catalog.Profile
	profiles, c.Ordered = s.cat.ProfilesOf(p.ID)
	for _, f := range profiles {
		c.Profiles = append(c.Profiles, model.Credential{ID: f.ID, Provider: f.Provider, Type: string(f.Type), Present: s.secret(f.Key) != ""})
	}
	c.Open = func(profile string) (model.Provider, error) { return s.provider(p, profile) }
	if len(profiles) > 0 {
		c.Missing = true
		for _, f := range c.Profiles {
			c.Missing = c.Missing && !f.Present
		}
		return c, nil
	}
	if c.Missing = s.lacksKey(&p); c.Missing || s.cfg.Make == nil {
		return c, nil
	}
	var err error
	c.Provider, err = s.provider(p, "")
	return c, err
}

// lacksKey says of a provider without profiles that a key is named that is not there, or
// needed and not named.
func (s *Set) lacksKey(p *catalog.Provider) bool {
	if !p.Key.Zero() {
		return s.secret(p.Key) == ""
	}
	return p.API == catalog.Anthropic || p.API == catalog.OpenAI && p.BaseURL == ""
}

// secret gives a key. A process that calls no model has none and must not say of them
// that they are missing.
func (s *Set) secret(k catalog.Key) string {
	if s.cfg.Make == nil && s.cfg.Secret == nil && !k.Zero() {
		return "elsewhere"
	}
	if s.cfg.Secret == nil || k.Zero() {
		return ""
	}
	return s.cfg.Secret(k)
}

// provider makes the adapter that uses a profile, once.
func (s *Set) provider(p catalog.Provider, profile string) (model.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := p.ID + "\x00" + profile
	if made := s.made[at]; made != nil {
		return made, nil
	}
	if p.ID == choose.Demo {
		made := model.Provider(demo.New(demo.Config{}))
		if s.cfg.Makers.Demo != nil {
			made = s.cfg.Makers.Demo()
		}
		s.made[at] = made
		return made, nil
	}
	if s.cfg.Make == nil {
		return nil, errors.New("route: this process calls no model")
	}
	spec := Spec{API: p.API, Name: p.ID, BaseURL: p.BaseURL, Region: p.Region, Key: s.secret(p.Key), Header: http.Header{}}
	for _, f := range s.cat.Profiles {
		if f.ID == profile && f.Provider == p.ID {
			spec.Key = s.secret(f.Key)
		}
	}
	for _, h := range p.Headers {
		v := h.Value
		if !h.From.Zero() {
			v = strings.TrimSpace(s.secret(h.From))
		}
		spec.Header.Set(h.Name, v)
	}
	made, err := s.cfg.Make(context.Background(), spec)
	if err != nil {
		return nil, fmt.Errorf("providers.%s: %w", p.ID, err)
	}
	s.made[at] = made
	return made, nil
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
