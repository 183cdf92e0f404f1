package route

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"laneway/shared/model"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
)

// Sources of a session's choice of a model.
const (
	SourceUser    = "user"    // chosen by a person; also where nothing is said
	SourceAuto    = "auto"    // left behind by the gateway itself
	SourceDefault = "default" // the person asked for the default by name
)

// Question is what a chain depends on.
type Question struct {
	Agent string
	// Provider and Model are what the run asks for; empty: nothing.
	Provider, Model string
	// Fallbacks that the caller wants instead; nil: not said; empty: none.
	Fallbacks []string
	// The session's choice.
	SessionProvider, SessionModel, SessionSource string
}

// Candidates gives the models that may answer, the wanted one first (spec: runtime 7.5,
// a row a case).
func (s *Set) Candidates(_ context.Context, q Question) ([]model.Candidate, error) {
	refs, err := s.chain(q)
	if err != nil {
		return nil, err
	}
	out := make([]model.Candidate, 0, len(refs))
	for i, r := range refs {
		if r == s.primaryRef() && s.primary.Provider != nil {
			if p, ok := s.cat.Provider(r.provider); !ok || len(p.Models) == 0 && s.plain(p.ID) {
				out = append(out, model.Candidate{Selected: s.primary})
				continue
			}
		}
		c, err := s.candidate(r.provider, r.id)
		if err != nil {
			if i == 0 {
				return nil, err
			}
			continue // one that cannot be made must not end what others can answer
		}
		out = append(out, c)
	}
	return out, nil
}

// plain says that a provider has no profiles.
func (s *Set) plain(provider string) bool {
	list, _ := s.cat.ProfilesOf(provider)
	return len(list) == 0
}

type ref struct{ provider, id string }

func (s *Set) primaryRef() ref { return ref{s.primary.Name, s.primary.Model} }

// chain is the list of models, each once.
func (s *Set) chain(q Question) ([]ref, error) {
	var out []ref
	add := func(r ref) {
		if r.id != "" && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	all := func(names []string) {
		for _, n := range names {
			if provider, id, ok := s.cat.Find(n); ok {
				add(ref{provider, id})
			}
		}
	}
	agent := s.cat.Agents[q.Agent]
	configured := s.cat.Defaults.Fallbacks
	if agent.Fallbacks != nil {
		configured = agent.Fallbacks
	}
	strict := false // the configured fallbacks do not hold
	switch {
	case q.Model != "":
		r, err := s.named(q.Provider, q.Model)
		if err != nil {
			return nil, err
		}
		add(r)
		if q.Fallbacks == nil {
			all(configured)
			add(s.defaultOf(agent))
			return out, nil
		}
	case q.SessionModel != "" && q.SessionSource != SourceDefault:
		r, err := s.named(q.SessionProvider, q.SessionModel)
		if err != nil {
			return nil, err
		}
		add(r)
		strict = q.SessionSource != SourceAuto
	default:
		add(s.defaultOf(agent))
		strict = agent.Primary != "" && agent.Fallbacks == nil
	}
	switch {
	case q.Fallbacks != nil:
		all(q.Fallbacks)
	case !strict:
		all(configured)
	}
	return out, nil
}

// defaultOf is an agent's own model, else everybody's.
func (s *Set) defaultOf(agent catalog.Choice) ref {
	if provider, id, ok := s.cat.Find(agent.Primary); ok && agent.Primary != "" {
		return ref{provider, id}
	}
	return s.primaryRef()
}

// named is a model that a caller or a session names, with its provider or without.
func (s *Set) named(provider, id string) (ref, error) {
	if provider != "" {
		id = strings.TrimPrefix(id, provider+"/")
		if _, ok := s.cat.Provider(provider); ok {
			return ref{provider, id}, nil
		}
		return ref{}, unknown(provider, id)
	}
	if p, found, ok := s.cat.Find(id); ok {
		return ref{p, found}, nil
	}
	if s.primary.Name == "" || s.primary.Name == choose.Demo { // which would answer to any name
		return ref{}, unknown("", id)
	}
	return ref{s.primary.Name, id}, nil // an id that its provider does not list
}

func unknown(provider, id string) error {
	what := fmt.Sprintf("The model provider %q", clip(provider))
	if provider == "" {
		what = fmt.Sprintf("The model %q", clip(id))
	}
	return &model.Error{Class: model.ModelNotFound, Message: what + " is not configured here.", Provider: provider, Model: id}
}
