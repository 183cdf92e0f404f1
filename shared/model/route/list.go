package route

import (
	"strings"

	"laneway/shared/model"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
	"laneway/shared/model/retry"
)

// Primary is the model of runs that choose none.
func (s *Set) Primary() model.Selected { return s.primary }

// Catalog is the configuration with what the environment adds to it.
func (s *Set) Catalog() *catalog.Catalog { return s.cat }

// Retry are the limits of retries: what the configuration says over the given ones.
func (s *Set) Retry(c retry.Config) retry.Config {
	r := s.cat.Retry
	if r.MaxRetries != nil {
		if c.MaxRetries = *r.MaxRetries; c.MaxRetries == 0 {
			c.MaxRetries = -1 // none; 0 would be the built-in limit
		}
	}
	if r.MaxDelay != nil {
		if c.MaxDelay = *r.MaxDelay; c.MaxDelay == 0 {
			c.MaxDelay = -1 // any
		}
	}
	return c
}

// Infos are the models for models.list, the primary one first.
func (s *Set) Infos() []model.Info { return s.infos }

// Default is the model of an agent's runs that choose none, and what takes its place.
func (s *Set) Default(agent string) (sel model.Selected, fallbacks []string, level string) {
	c := s.cat.Agents[agent]
	r := s.defaultOf(c)
	sel = s.primary
	if r != s.primaryRef() {
		sel = s.complete(model.Selected{Name: r.provider, Model: r.id})
	}
	refs, err := s.chain(Question{Agent: agent})
	if err == nil && len(refs) > 1 {
		for _, r := range refs[1:] {
			fallbacks = append(fallbacks, catalog.Ref(r.provider, r.id))
		}
	}
	if level = c.Thinking; level == "" {
		level = s.cat.Defaults.Thinking
	}
	return sel, fallbacks, level
}

// list puts all models together, each once: the primary one, those of the
// configuration, those that the environment knows of.
func (s *Set) list() []model.Info {
	var (
		out  []model.Info
		seen = map[ref]bool{}
	)
	add := func(provider, id, name string) {
		r := ref{provider, id}
		if id == "" || seen[r] {
			return
		}
		seen[r] = true
		p, _ := s.cat.Provider(provider)
		m := p.Model(id)
		sel := s.complete(model.Selected{Name: provider, Model: id})
		i := model.Info{
			ID: id, Name: name, Provider: provider, ContextWindow: sel.ContextWindow, MaxTokens: sel.MaxTokens, API: sel.API,
			Alias: m.Alias, Reasons: sel.Reasons, Plain: sel.Plain, Images: m.Images != nil && *m.Images, Price: m.Price,
		}
		if m.Name != "" {
			i.Name = m.Name
		}
		if i.Name == "" {
			i.Name = id
		}
		out = append(out, i)
	}
	add(s.primary.Name, s.primary.Model, "")
	for _, p := range s.cat.Providers {
		if p.ID == choose.Demo {
			continue
		}
		for _, m := range p.Models {
			add(p.ID, m.ID, m.Name)
		}
	}
	if s.cfg.Make != nil {
		// What the environment chose keeps the list that its server gave.
		if known, err := choose.Known(s.environment()); err == nil {
			for _, i := range append(s.infos, known...) {
				add(i.Provider, i.ID, i.Name)
			}
		}
	}
	return out
}

// environment is the environment without a choice of its own.
func (s *Set) environment() choose.Config {
	env := s.cfg.Env
	env.Selector = choose.Demo
	return env
}

// Credential is what models.authStatus tells of one.
type Credential struct {
	Profile  string // empty: the provider's only key
	Provider string
	Type     string
	Needed   bool // the provider does not work without
	Present  bool
}

// Credentials lists the credentials of all providers that want some.
func (s *Set) Credentials() []Credential {
	var out []Credential
	for _, p := range s.cat.Providers {
		profiles, _ := s.cat.ProfilesOf(p.ID)
		for _, f := range profiles {
			out = append(out, Credential{Profile: f.ID, Provider: p.ID, Type: string(f.Type), Needed: true, Present: s.secret(f.Key) != ""})
		}
		if len(profiles) > 0 || p.ID == choose.Demo {
			continue
		}
		switch {
		case p.API == catalog.Bedrock:
			out = append(out, Credential{Provider: p.ID, Type: "aws", Needed: true, Present: s.cfg.Env.AWS})
		case p.Key.Zero() && !s.lacksKey(&p):
			out = append(out, Credential{Provider: p.ID, Type: "none", Present: true})
		default:
			out = append(out, Credential{Provider: p.ID, Type: string(catalog.APIKey), Needed: true, Present: s.secret(p.Key) != ""})
		}
	}
	return out
}

// SplitList reads a list as LANEWAY_FALLBACKS has it; nil where nothing was said.
func SplitList(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if strings.EqualFold(strings.TrimSpace(text), "none") {
		return []string{}
	}
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
