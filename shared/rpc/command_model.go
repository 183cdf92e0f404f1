package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"laneway/shared/protocol"
	"laneway/shared/session"
)

// Sources of a session's model: see route.SourceUser and its fellows.
const (
	sourceUser    = "user"
	sourceDefault = "default"
)

// listWords show something instead of naming a model.
var listWords = map[string]bool{"list": true, "status": true}

// maxListed bounds the models that an answer lists.
const maxListed = 50

// modelCommand serves /model as a message of its own: it shows, lists, sets or resets.
func (g *Gateway) modelCommand(ctx context.Context, r *Request, ref session.Ref, s said) (string, error) {
	switch strings.ToLower(s.word) {
	case "", "status":
		return g.modelShown(ctx, ref)
	case "list":
		return g.modelsListed(ctx, ref)
	}
	return g.setModel(ctx, r, ref, s)
}

// setModel keeps a model in the session, or takes the choice back.
func (g *Gateway) setModel(ctx context.Context, r *Request, ref session.Ref, s said) (string, error) {
	agents, err := g.Directory.Agents(ctx, ref.Tenant)
	if err != nil {
		return "", err
	}
	if s.clear {
		err := g.keepEntry(ctx, ref, func(e *session.Entry) {
			e.ModelProvider, e.ModelOverride, e.ModelSource = "", "", sourceDefault
		})
		used := modelOf(session.Entry{}, agents, session.AgentOf(ref.Key))
		return fmt.Sprintf("Model reset to default (%s/%s).", used.ModelProvider, used.Model), err
	}
	provider, id, err := g.findModel(ctx, r, s.word)
	if perr, unknown := errors.AsType[*protocol.Error](err); unknown && perr.Code == protocol.CodeInvalidRequest {
		return fmt.Sprintf("Unknown model %q. Use /model list to see what there is.", clipWord(s.word)), nil
	}
	if err != nil {
		return "", err
	}
	err = g.keepEntry(ctx, ref, func(e *session.Entry) {
		e.ModelProvider, e.ModelOverride, e.ModelSource = provider, id, sourceUser
	})
	return fmt.Sprintf("Model set to %s/%s.", provider, id), err
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
