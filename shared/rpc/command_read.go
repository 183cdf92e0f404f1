package rpc

import (
	"context"
	"errors"
	"strings"

	"laneway/shared/model/thinking"
	"laneway/shared/protocol"
	"laneway/shared/queueing"
	"laneway/shared/run"
	"laneway/shared/session"
)

// asked is what a message asks of the gateway. To read it changes nothing, but for an
// agent call of nothing but /stop: so a message can be refused as a whole.
type asked struct {
	stop    bool                   // it is a stop word, and nothing else
	reason  string                 // the session starts over first: new, reset; empty: it does not
	alone   bool                   // nothing is left for the model: answer is all that comes of it
	text    string                 // what is left
	levels  levels                 // of this message alone
	queue   queueing.Words         // likewise
	changes []func(*session.Entry) // what the session keeps of it
	answer  string                 // the gateway's own, to what stands alone or to shortcuts beside a text
}

// made makes the changes to a session's preferences.
func (a *asked) made(e *session.Entry) {
	if e.Deleted {
		*e = session.Entry{}
	}
	if a.alone { // it makes a session by itself
		e.CreatedVia = orElse(e.CreatedVia, viaOperator)
	}
	for _, change := range a.changes {
		change(e)
	}
}

// over is a session as it is when what the message asks for is done.
func (a *asked) over(v *view) {
	a.made(&v.e)
	if a.reason != "" {
		v.m.TokensIn, v.m.TokensOut, v.m.Active, v.m.Pending = 0, 0, "", nil
	}
}

// keep notes something that the session keeps.
func (a *asked) keep(change func(*session.Entry)) {
	if change != nil {
		a.changes = append(a.changes, change)
	}
}

// read says what a message asks for beside an answer of the model (spec: loop 8,
// runtime 2.3, 3.3). A message with files says more than its text.
func (g *Gateway) read(ctx context.Context, r *Request, ref session.Ref, message string, files bool) (asked, error) {
	a := asked{text: message}
	words := !files && r.Method != methodAgent // a call of agent stops nothing by a mere word
	if !strings.Contains(message, "/") {
		a.stop = words && isStop(message)
		return a, nil
	}
	isModel, err := g.modelWords(ctx, ref.Tenant)
	if err != nil {
		return a, err
	}
	found, rest := []said(nil), message
	if reason, after := resetCommand(message); reason != "" {
		a.reason, rest = reason, after
		if word, after := cutWord(rest); reason == reasonNew && isModel(word) && !listWords[strings.ToLower(word)] {
			found, rest = []said{{name: dirModel, level: word, word: word, known: true}}, after
		}
	}
	more, rest := cutDirectives(rest, isModel)
	found = append(found, more...)
	if a.reason == "" {
		if a.stop = words && isStop(rest); a.stop {
			return a, nil
		}
		if reason, after := resetCommand(rest); reason != "" {
			a.reason, rest = reason, after
		}
	}
	if a.reason != "" && !r.Admin() {
		return a, protocol.MissingScope(protocol.ScopeAdmin)
	}
	d, after, queued, problem := queueDirective(rest)
	switch {
	case problem != nil:
		return asked{alone: true, answer: problem.Error()}, nil //nolint:nilerr // it is a text for the user
	case queued:
		a.queue, rest = d, after
	case len(found) == 0 && !files && rest != "":
		text, ok, err := g.card(ctx, r, ref, &a, rest)
		if err != nil {
			return a, err
		}
		if ok {
			a.answer, rest = text, ""
		}
	}
	a.text, a.alone = rest, strings.TrimSpace(rest) == "" && !files
	if !a.alone {
		err := g.besideText(ctx, r, ref, &a, found)
		return a, err
	}
	if len(found) > 0 || queued {
		if ok, err := g.keepAll(ctx, r, ref, &a, found, queued); err != nil || !ok {
			return a, err
		}
	}
	if a.reason != "" {
		a.answer = strings.TrimSpace(resetNotices[a.reason] + "\n" + a.answer)
	}
	return a, nil
}

// refuse leaves nothing of a message but a hint why.
func (a *asked) refuse(hint string) { *a = asked{alone: true, answer: hint} }

// modelWords says what names a model, or is behind /model in the place of one.
func (g *Gateway) modelWords(ctx context.Context, tenant string) (func(string) bool, error) {
	infos, err := g.Directory.Models(ctx, tenant)
	if err != nil {
		return nil, err
	}
	creds, err := g.configuredCredentials(ctx, tenant)
	return func(word string) bool {
		name, _ := cutProfile(word, creds)
		_, _, ok := modelNamed(infos, name)
		return ok || listWords[strings.ToLower(word)]
	}, err
}

// besideText is what directives and shortcuts mean beside a text: levels hold for it alone,
// a model is kept in the session.
func (g *Gateway) besideText(ctx context.Context, r *Request, ref session.Ref, a *asked, found []said) error {
	if len(found) == 0 {
		return nil
	}
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return err
	}
	e, answers := v.prefs(), make([]string, len(found))
	for i, s := range found {
		if s.word == "" || !s.known {
			continue // a shortcut, or beside files: it says nothing
		}
		switch s.name {
		case dirModel:
			change, text, err := g.modelCommand(ctx, r, ref, s)
			switch {
			case err != nil:
				return err
			case change != nil:
				a.keep(change)
				a.made(&e)
			case shows(s):
				answers[i] = text
			default:
				a.refuse(text)
				return nil
			}
		case dirThink:
			a.levels.thinking = thinking.Nearest(s.level, levelsOf(e, agents, infos, session.AgentOf(ref.Key)))
		case dirVerbose:
			a.levels.verbose = s.level
		case dirReasoning:
			a.levels.reasoning = s.level
		case dirFast:
			a.levels.fast = s.level
		}
	}
	if err := g.shortcuts(ctx, r, ref, a, found, answers); err != nil {
		return err
	}
	a.answer = joinSaid(answers, "\n\n")
	return nil
}

// joinSaid joins the answers that there are.
func joinSaid(answers []string, sep string) string {
	var said []string
	for _, s := range answers {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, sep)
}

// recorded says whether a key has a record already. What was done once is not done again,
// least of all after another choice.
func (g *Gateway) recorded(ctx context.Context, tenant, runID string) (st run.Status, known bool, err error) {
	st, err = run.Load(ctx, g.Store, run.RefOf(tenant, runID))
	if errors.Is(err, run.ErrUnknown) {
		return st, false, nil
	}
	return st, err == nil, err
}
