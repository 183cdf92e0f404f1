package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/model/thinking"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// directed carries out the directives of a message. text is the answer to a message that
// was nothing else; otherwise rest is what is left of it, and l holds for it alone. What
// chooses a model is kept in the session either way. A message with files says more
// than its text.
func (g *Gateway) directed(ctx context.Context, r *Request, ref session.Ref, message string, files bool) (l levels, rest, text string, err error) {
	infos, err := g.Directory.Models(ctx, ref.Tenant)
	if err != nil {
		return l, message, "", err
	}
	creds, err := g.configuredCredentials(ctx, ref.Tenant)
	if err != nil {
		return l, message, "", err
	}
	found, rest := cutDirectives(message, func(word string) bool {
		name, _ := cutProfile(word, creds)
		_, _, ok := modelNamed(infos, name)
		return ok || listWords[strings.ToLower(word)]
	})
	if len(found) == 0 && files {
		return l, message, "", nil
	}
	if len(found) == 0 {
		card, ok, err := g.card(ctx, r, ref, message)
		if ok || err != nil {
			return l, "", card, err
		}
		return l, message, "", nil
	}
	if strings.TrimSpace(rest) == "" && !files {
		text, err = g.keepAll(ctx, r, ref, found)
		return l, "", text, err
	}
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return l, message, "", err
	}
	for _, s := range found {
		if s.word == "" || !s.known {
			continue // beside files: it says nothing
		}
		switch s.name {
		case dirModel:
			if _, err := g.setModel(ctx, r, ref, s); err != nil {
				return l, "", "", err
			}
		case dirThink:
			known := levelsOf(v.prefs(), agents, infos, session.AgentOf(ref.Key))
			l.thinking = thinking.Nearest(s.level, known)
		case dirVerbose:
			l.verbose = s.level
		case dirReasoning:
			l.reasoning = s.level
		case dirFast:
			l.fast = s.level
		}
	}
	return l, rest, "", nil
}

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
	m := thinking.Model{ID: used.Model, API: thinking.APIOf(used.ModelProvider)}
	for _, i := range infos {
		if i.Provider == used.ModelProvider && i.ID == used.Model {
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

// keepAll carries out a message of nothing but directives: each is kept in the session,
// or shown where it says no level. One that is wrong changes nothing, and neither does
// anything beside it.
func (g *Gateway) keepAll(ctx context.Context, r *Request, ref session.Ref, found []said) (string, error) {
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return "", err
	}
	e, agent := v.prefs(), session.AgentOf(ref.Key)
	for _, s := range found {
		if s.name == dirVerbose && s.known && !r.Admin() {
			return "", protocol.MissingScope(protocol.ScopeAdmin)
		}
		if hint := wrong(s, e, agents, infos, agent); hint != "" {
			return hint, nil
		}
	}
	var answers []string
	for _, s := range found {
		var answer string
		switch {
		case s.name == dirModel:
			answer, err = g.modelCommand(ctx, r, ref, s)
		case s.word == "":
			answer, err = g.showLevel(ctx, s, e, agents, infos, agent)
		default:
			answer, err = acknowledged(s), g.keepLevel(ctx, ref, s)
		}
		if err != nil {
			return "", err
		}
		answers = append(answers, answer)
	}
	return strings.Join(answers, "\n"), nil
}

// wrong is a hint about a level that is none, or not one of the model's.
func wrong(s said, e session.Entry, agents []Agent, infos []model.Info, agent string) string {
	if s.name == dirModel || s.word == "" {
		return ""
	}
	known := levelsOf(e, agents, infos, agent)
	if !s.known {
		return fmt.Sprintf("Unrecognized %s %q. Valid levels: %s.", s.title(), clipWord(s.word), s.options(known))
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

// keepLevel writes a level into the session. off is kept as such: it is not the same as
// to say nothing.
func (g *Gateway) keepLevel(ctx context.Context, ref session.Ref, s said) error {
	return g.keepEntry(ctx, ref, func(e *session.Entry) {
		switch s.name {
		case dirThink:
			e.ThinkingLevel = s.level
		case dirVerbose:
			e.VerboseLevel = s.level
		case dirReasoning:
			e.ReasoningLevel = s.level
		case dirFast:
			e.FastMode = s.level
		}
	})
}

// keepEntry changes the entry of a session, which is made if it was never used.
func (g *Gateway) keepEntry(ctx context.Context, ref session.Ref, change func(*session.Entry)) error {
	if err := g.ensure(ctx, ref); err != nil {
		return err
	}
	_, err := session.UpdateEntry(ctx, g.Store, ref, func(e *session.Entry) error {
		if e.Deleted {
			*e = session.Entry{}
		}
		e.CreatedVia = orElse(e.CreatedVia, viaOperator)
		change(e)
		return nil
	})
	if err == nil {
		g.announce(ctx, ref, "patch")
	}
	return err
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
	case s.name == dirReasoning:
		return map[string]string{"on": "Reasoning visibility enabled.", "stream": "Reasoning stream enabled.", "off": "Reasoning visibility disabled."}[s.level]
	case s.clear:
		return "Fast mode reset to the default."
	}
	return map[string]string{"on": "Fast mode enabled.", "off": "Fast mode disabled.", "auto": "Fast mode set to auto."}[s.level]
}

// agentDirected carries out the directives of an agent call. A call of nothing else has
// ended and is answered at once; its record is kept like that of any run (A3).
func (g *Gateway) agentDirected(ctx context.Context, r *Request, ref session.Ref, hash string, p *protocol.AgentParams) (l levels, done bool, err error) {
	if !strings.Contains(p.Message, "/") {
		return l, false, nil
	}
	if st, err := run.Load(ctx, g.Store, run.RefOf(ref.Tenant, p.IdempotencyKey)); err == nil {
		return l, true, g.afterAccept(ctx, r, lane.Accepted{Status: st, Repeat: true}, conflict(st, hash))
	} else if !errors.Is(err, run.ErrUnknown) {
		return l, false, err
	}
	l, rest, text, err := g.directed(ctx, r, ref, p.Message, len(p.Attachments) > 0)
	if err != nil || text == "" {
		// A run of its own right has no queue mode: what says one is not for the model either.
		if _, message, found, problem := queueDirective(rest); found && problem == nil && message != "" {
			rest = message
		}
		p.Message = rest
		return l, false, err
	}
	st, ops, err := g.noticed(ref, over{method: r.Method, runID: p.IdempotencyKey, hash: hash, text: text})
	if err != nil {
		return l, true, err
	}
	_, err = g.Store.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) { // a call with the same key was faster
		if st, err = run.Load(ctx, g.Store, run.RefOf(ref.Tenant, p.IdempotencyKey)); err == nil {
			return l, true, g.afterAccept(ctx, r, lane.Accepted{Status: st, Repeat: true}, conflict(st, hash))
		}
	}
	if err != nil {
		return l, true, err
	}
	return l, true, g.replyFinal(r, st)
}
