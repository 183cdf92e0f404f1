package rpc

import (
	"context"
	"fmt"
	"strings"

	"laneway/shared/model"
	"laneway/shared/model/thinking"
	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/setting"
)

// judging reads what directives are judged by.
func (g *Gateway) judging(ctx context.Context, ref session.Ref) (v view, agents []Agent, infos []model.Info, err error) {
	if v, err = g.view(ctx, ref); err != nil {
		return v, nil, nil, err
	}
	if agents, err = g.Directory.Agents(ctx, ref.Tenant); err != nil {
		return v, nil, nil, err
	}
	infos, err = g.Directory.Models(ctx, ref.Tenant)
	return v, agents, infos, err
}

// levelsOf are the thinking levels of the model that the session's next run uses.
func levelsOf(e session.Entry, agents []Agent, infos []model.Info, agent string) []string {
	used := modelOf(e, agents, agent)
	return levelsKnown(used.ModelProvider, used.Model, infos)
}

// levelsKnown are the thinking levels that a model takes.
func levelsKnown(provider, id string, infos []model.Info) []string {
	m := thinking.Model{ID: id, API: thinking.APIOf(provider)}
	for _, i := range infos {
		if i.Provider == provider && i.ID == id {
			if i.API != "" {
				m.API = i.API
			}
			if i.Reasons || i.Plain {
				m.Reasoning = &i.Reasons
			}
		}
	}
	return thinking.Levels(m)
}

// keepAll is what a message of nothing but directives asks for: each is kept in the
// session, or shown where it says no level. One that is wrong changes nothing, and
// neither does anything beside it: then ok is false, and a hint is the answer.
func (g *Gateway) keepAll(ctx context.Context, r *Request, ref session.Ref, a *asked, found []said, queued bool) (ok bool, err error) {
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return false, err
	}
	e, agent := v.prefs(), session.AgentOf(ref.Key)
	answers := make([]string, len(found)+1) // the last is that to /queue
	for i, s := range found {
		if s.name == dirVerbose && s.known && !r.Admin() {
			return false, protocol.MissingScope(protocol.ScopeAdmin)
		}
		if hint := wrong(s, e, agents, infos, agent); hint != "" {
			a.refuse(hint)
			return false, nil
		}
		var change func(*session.Entry)
		switch {
		case s.shortcut():
		case s.name == dirModel:
			change, answers[i], err = g.modelCommand(ctx, r, ref, s)
			if err == nil && change == nil && !shows(s) {
				a.refuse(answers[i])
				return false, nil
			}
		case s.word == "":
			answers[i], err = g.showLevel(ctx, s, e, agents, infos, agent)
		default:
			change, answers[i] = s.keep, acknowledged(s)
		}
		if err != nil {
			return false, err
		}
		a.keep(change)
		a.made(&e)
	}
	if d := a.queue; queued && d.Any {
		a.keep(func(e *session.Entry) { keepQueue(e, &d) })
		a.made(&e)
	}
	if err := g.shortcuts(ctx, r, ref, a, found, answers); err != nil {
		return false, err
	}
	if queued {
		answers[len(found)] = g.queueText(ref, e, a.queue.Any)
	}
	a.answer = joinSaid(answers, "\n")
	return true, nil
}

// wrong is a hint about a level that is none, or not one of the model's.
func wrong(s said, e session.Entry, agents []Agent, infos []model.Info, agent string) string {
	if s.name == dirModel || s.word == "" || s.shortcut() {
		return ""
	}
	known := levelsOf(e, agents, infos, agent)
	if !s.known {
		return fmt.Sprintf("Unrecognized %s %q. Valid levels: %s.", s.title(), setting.Clip(s.word), s.options(known))
	}
	if s.name == dirThink && !supported(s.level, known) {
		used := modelOf(e, agents, agent)
		return fmt.Sprintf("Thinking level %q is not supported for %s/%s. Valid levels: %s.", s.level, used.ModelProvider, used.Model, strings.Join(known, ", "))
	}
	return ""
}

// showLevel answers a directive without a level with the one that holds.
func (g *Gateway) showLevel(ctx context.Context, s said, e session.Entry, agents []Agent, infos []model.Info, agent string) (string, error) {
	pre, err := g.preferred(ctx, agents, agent)
	if err != nil {
		return "", err
	}
	now := ""
	switch s.name {
	case dirThink:
		now = orElse(orElse(e.ThinkingLevel, pre.thinking), "default")
	case dirVerbose:
		now = orElse(orElse(e.VerboseLevel, pre.verbose), "off")
	case dirTrace:
		now = orElse(e.TraceLevel, "off")
	case dirReasoning:
		now = orElse(orElse(e.ReasoningLevel, pre.reasoning), "off")
	case dirFast:
		now = orElse(orElse(e.FastMode, pre.fast), "off")
	}
	return fmt.Sprintf("Current %s: %s.\nOptions: %s.", s.title(), now, s.options(levelsOf(e, agents, infos, agent))), nil
}

// preferred is what holds where the session says nothing.
func (g *Gateway) preferred(ctx context.Context, agents []Agent, agent string) (levels, error) {
	var l levels
	for _, a := range agents {
		if a.ID == agent {
			l.thinking = a.Thinking
		}
	}
	if d, ok := g.Directory.(Preferences); ok {
		p, err := d.Preferences(ctx, "")
		if err != nil {
			return l, err
		}
		l.verbose, l.reasoning, l.fast = p.Verbose, p.Reasoning, p.Fast
	}
	return l, nil
}

// keep writes a level into the session. off is kept as such: it is not the same as to
// say nothing.
func (s said) keep(e *session.Entry) {
	switch s.name {
	case dirThink:
		e.ThinkingLevel = s.level
	case dirVerbose:
		e.VerboseLevel = s.level
	case dirTrace:
		e.TraceLevel = s.level
	case dirReasoning:
		e.ReasoningLevel = s.level
	case dirFast:
		e.FastMode = s.level
	}
}

// acknowledged says what was kept.
func acknowledged(s said) string {
	switch {
	case s.name == dirThink && s.clear:
		return "Thinking level reset to the default."
	case s.name == dirThink && s.level == thinking.Off:
		return "Thinking disabled."
	case s.name == dirThink:
		return "Thinking level set to " + s.level + "."
	case s.name == dirVerbose:
		return map[string]string{"on": "Verbose logging enabled.", "full": "Verbose logging set to full.", "off": "Verbose logging disabled."}[s.level]
	case s.name == dirTrace:
		return map[string]string{"on": "Plugin trace enabled.", "off": "Plugin trace disabled."}[s.level]
	case s.name == dirReasoning:
		return map[string]string{"on": "Reasoning visibility enabled.", "stream": "Reasoning stream enabled.", "off": "Reasoning visibility disabled."}[s.level]
	case s.clear:
		return "Fast mode reset to the default."
	}
	return map[string]string{"on": "Fast mode enabled.", "off": "Fast mode disabled.", "auto": "Fast mode set to auto."}[s.level]
}
