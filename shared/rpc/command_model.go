package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/setting"
)

// Sources of a session's model: see route.SourceUser and its fellows.
const (
	sourceUser    = "user"
	sourceDefault = "default"
)

// listWords show something instead of naming a model.
var listWords = map[string]bool{"list": true, "status": true}

// shows says whether /model shows something.
func shows(s said) bool { return s.word == "" || listWords[strings.ToLower(s.word)] }

// maxListed bounds the models that an answer lists.
const maxListed = 50

// modelCommand is /model as a message of its own: it shows, lists, sets or resets.
func (g *Gateway) modelCommand(ctx context.Context, r *Request, ref session.Ref, s said) (change func(*session.Entry), text string, err error) {
	switch strings.ToLower(s.word) {
	case "", "status":
		text, err = g.modelShown(ctx, ref)
		return nil, text, err
	case "list":
		text, err = g.modelsListed(ctx, ref)
		return nil, text, err
	}
	return g.chosenModel(ctx, r, ref, s)
}

// chosenModel is the change that keeps a model in the session, or takes the choice back,
// and what is said of it; nil where there is no such model.
func (g *Gateway) chosenModel(ctx context.Context, r *Request, ref session.Ref, s said) (change func(*session.Entry), text string, err error) {
	agents, err := g.Directory.Agents(ctx, ref.Tenant)
	if err != nil {
		return nil, "", err
	}
	if s.clear {
		used := modelOf(session.Entry{}, agents, session.AgentOf(ref.Key))
		return func(e *session.Entry) { e.ModelProvider, e.ModelOverride, e.ModelSource = "", "", sourceDefault },
			fmt.Sprintf("Model reset to default (%s/%s).", used.ModelProvider, used.Model), nil
	}
	creds, err := g.configuredCredentials(ctx, ref.Tenant)
	if err != nil {
		return nil, "", err
	}
	name, pin := cutProfile(s.word, creds)
	provider, id, err := g.findModel(ctx, r, name)
	if perr, unknown := errors.AsType[*protocol.Error](err); unknown && perr.Code == protocol.CodeInvalidRequest {
		return nil, fmt.Sprintf("Unknown model %q. Use /model list to see what there is.", setting.Clip(s.word)), nil
	}
	if err != nil {
		return nil, "", err
	}
	if pin != "" && !opens(creds, pin, provider) {
		return nil, fmt.Sprintf("The credential %s is not one of %s.", pin, provider), nil
	}
	text = fmt.Sprintf("Model set to %s/%s.", provider, id)
	if pin != "" {
		text = fmt.Sprintf("Model set to %s/%s with the credential %s.", provider, id, pin)
	}
	return func(e *session.Entry) {
		e.ModelProvider, e.ModelOverride, e.ModelSource = provider, id, sourceUser
		switch {
		case pin != "":
			e.AuthProfile, e.AuthProfileSource, e.AuthProfileFor = pin, sourceUser, ""
		case !opens(creds, e.AuthProfile, provider):
			e.AuthProfile, e.AuthProfileSource, e.AuthProfileFor = "", "", ""
		}
	}, text, nil
}

// configuredCredentials lists the credentials that a configuration names.
func (g *Gateway) configuredCredentials(ctx context.Context, tenant string) ([]Credential, error) {
	if d, ok := g.Directory.(Credentials); ok {
		return d.Credentials(ctx, tenant)
	}
	return nil, nil
}

// cutProfile takes a credential off a model's name: provider/id@profile. Names of models
// may hold an @ of their own.
func cutProfile(word string, creds []Credential) (name, profile string) {
	for _, c := range creds {
		if rest, ok := strings.CutSuffix(word, "@"+c.Profile); ok && c.Profile != "" && rest != "" {
			return rest, c.Profile
		}
	}
	return word, ""
}

// opens says whether a credential is one of a provider.
func opens(creds []Credential, profile, provider string) bool {
	for _, c := range creds {
		if c.Profile == profile && c.Provider == provider {
			return true
		}
	}
	return false
}

func (g *Gateway) modelShown(ctx context.Context, ref session.Ref) (string, error) {
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return "", err
	}
	e, agent := v.prefs(), session.AgentOf(ref.Key)
	used, usual := modelOf(e, agents, agent), modelOf(session.Entry{}, agents, agent)
	lines := []string{
		fmt.Sprintf("Current: %s/%s", used.ModelProvider, used.Model),
		fmt.Sprintf("Default: %s/%s", usual.ModelProvider, usual.Model),
	}
	for _, a := range agents {
		if a.ID == agent && len(a.Fallbacks) > 0 {
			lines = append(lines, "Fallbacks: "+strings.Join(a.Fallbacks, ", "))
		}
	}
	if n := e.Fallback; n != nil {
		lines = append(lines, fmt.Sprintf("Answering now: %s (%s)", n.Active, strings.ReplaceAll(n.Reason, "_", " ")))
	}
	return strings.Join(append(lines,
		"Thinking levels: "+strings.Join(levelsOf(e, agents, infos, agent), ", "),
		"Switch: /model <provider/id>; back: /model default; all: /model list"), "\n"), nil
}

func (g *Gateway) modelsListed(ctx context.Context, ref session.Ref) (string, error) {
	infos, err := g.Directory.Models(ctx, ref.Tenant)
	if err != nil {
		return "", err
	}
	lines := []string{"Models:"}
	for i, m := range infos {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("… and %d more", len(infos)-i))
			break
		}
		line := "- " + m.Provider + "/" + m.ID
		if m.Alias != "" {
			line += " (" + m.Alias + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}
