package rpc

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"laneway/shared/id"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/setting"
)

// viaOperator says who made a session.
const viaOperator = "operator"

// sessionsPatch changes preferences of a session, which is made if it was never used.
func (g *Gateway) sessionsPatch(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsPatchParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if scope := protocol.PatchScope(&p); !protocol.ScopeSatisfied(r.Conn.Scopes, scope) {
		return protocol.MissingScope(scope)
	}
	if name := unsupported(&p); name != "" {
		return protocol.InvalidParams(r.Method, "at /"+name+": is not supported")
	}
	ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	v, err := g.view(ctx, ref)
	if err != nil {
		return err
	}
	if err := expected(&v, p.ExpectedSessionID); err != nil {
		return err
	}
	if err := g.checkLevels(ctx, r, ref, &v, &p); err != nil {
		return err
	}
	var provider, name string
	if p.Model.Set && !p.Model.Null {
		if provider, name, err = g.findModel(ctx, r, p.Model.Value); err != nil {
			return err
		}
	}
	if err := g.ensure(ctx, ref); err != nil {
		return err
	}
	_, err = session.UpdateEntry(ctx, g.Store, ref, func(e *session.Entry) error {
		if e.Deleted {
			*e = session.Entry{}
		}
		e.CreatedVia = orElse(e.CreatedVia, viaOperator)
		patch(e, &p)
		if p.Model.Set {
			e.ModelProvider, e.ModelOverride, e.ModelSource = provider, name, sourceUser
			if name == "" {
				e.ModelSource = ""
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.replyChanged(ctx, r, ref, "patch", protocol.SessionChanged{Path: "laneway"})
}

// checkLevels refuses a level that is none, or not one of the session's model, and puts
// the others as they are stored.
func (g *Gateway) checkLevels(ctx context.Context, r *Request, ref session.Ref, v *view, p *protocol.SessionsPatchParams) error {
	for _, f := range []struct {
		member string
		dir    string
		value  *protocol.Optional[string]
	}{{"thinkingLevel", dirThink, &p.ThinkingLevel}, {"verboseLevel", dirVerbose, &p.VerboseLevel}, {"traceLevel", dirTrace, &p.TraceLevel}, {"reasoningLevel", dirReasoning, &p.ReasoningLevel}} {
		if !f.value.Set || f.value.Null {
			continue
		}
		if f.dir == dirVerbose && !r.Admin() { // as for the command
			return protocol.MissingScope(protocol.ScopeAdmin)
		}
		_, agents, infos, err := g.judging(ctx, ref)
		if err != nil {
			return err
		}
		e := v.prefs()
		if p.Model.Set && !p.Model.Null {
			if e.ModelProvider, e.ModelOverride, err = g.findModel(ctx, r, p.Model.Value); err != nil {
				return err
			}
		}
		s := said{name: f.dir}.read(f.value.Value)
		known := levelsOf(e, agents, infos, session.AgentOf(ref.Key))
		if s.clear || !s.known || f.dir == dirThink && !supported(s.level, known) {
			return protocol.InvalidParams(r.Method, "at /"+f.member+": must be one of "+s.options(known))
		}
		f.value.Value = s.level
	}
	return nil
}

// unsupported names a member of a patch that would have no effect here: saying so is
// better than to look as if it had one.
func unsupported(p *protocol.SessionsPatchParams) string {
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"agentRuntime", p.AgentRuntime.Set && !p.AgentRuntime.Null},
		{"contextWindow", p.ContextWindow.Set && !p.ContextWindow.Null},
		{"elevatedLevel", p.ElevatedLevel.Set && !p.ElevatedLevel.Null},
		{"responseUsage", p.ResponseUsage.Set && !p.ResponseUsage.Null},
		{"groupActivation", p.GroupActivation.Set && !p.GroupActivation.Null},
		{"permissionMode", p.PermissionMode.Set && !p.PermissionMode.Null},
		{"execHost", p.ExecHost.Set && !p.ExecHost.Null},
		{"execSecurity", p.ExecSecurity.Set && !p.ExecSecurity.Null},
		{"execAsk", p.ExecAsk.Set && !p.ExecAsk.Null},
		{"execNode", p.ExecNode.Set && !p.ExecNode.Null},
	} {
		if m.set {
			return m.name
		}
	}
	return ""
}

// patch writes what was given into the entry; null takes a preference back.
func patch(e *session.Entry, p *protocol.SessionsPatchParams) {
	for _, f := range []struct {
		from protocol.Optional[string]
		into *string
	}{
		{p.Label, &e.Label},
		{p.AutoLabel, &e.DisplayName},
		{p.Icon, &e.Icon},
		{p.Color, &e.Color},
		{p.Category, &e.Category},
		{p.StatusNote, &e.StatusNote},
		{p.ThinkingLevel, &e.ThinkingLevel},
		{p.VerboseLevel, &e.VerboseLevel},
		{p.TraceLevel, &e.TraceLevel},
		{p.ReasoningLevel, &e.ReasoningLevel},
		{p.SendPolicy, &e.SendPolicy},
		{p.QueueMode, &e.QueueMode},
		{p.QueueDrop, &e.QueueDrop},
	} {
		if f.from.Set {
			*f.into = f.from.Value
		}
	}
	for _, f := range []struct {
		from protocol.Optional[int64]
		into **int64
	}{{p.QueueDebounceMs, &e.QueueDebounce}, {p.QueueCap, &e.QueueCap}} {
		switch {
		case f.from.Null:
			*f.into = nil
		case f.from.Set:
			n := f.from.Value
			*f.into = &n
		}
	}
	for _, f := range []struct{ from, into *bool }{{p.Archived, &e.Archived}, {p.Pinned, &e.Pinned}, {p.Unread, &e.Unread}} {
		if f.from != nil {
			*f.into = *f.from
		}
	}
	if p.FastMode.Set {
		e.FastMode = fastMode(p.FastMode.Value)
		if p.FastMode.Null {
			e.FastMode = ""
		}
	}
}

func fastMode(f protocol.FastMode) string {
	switch {
	case f.Auto:
		return "auto"
	case f.On:
		return "on"
	}
	return "off"
}

// findModel finds a model by "provider/id", by its alias, or by its id alone.
func (g *Gateway) findModel(ctx context.Context, r *Request, name string) (provider, id string, err error) {
	models, err := g.Directory.Models(ctx, r.Tenant())
	if err != nil {
		return "", "", err
	}
	provider, id, ok := modelNamed(models, name)
	if !ok {
		return "", "", protocol.InvalidParams(r.Method, fmt.Sprintf("at /model: unknown model %q", setting.Clip(name)))
	}
	return provider, id, nil
}

func modelNamed(models []model.Info, name string) (provider, id string, ok bool) {
	for i := range models {
		m := &models[i]
		if name == m.Provider+"/"+m.ID || name == m.ID || m.Alias != "" && strings.EqualFold(name, m.Alias) {
			return m.Provider, m.ID, true
		}
	}
	// A provider may serve more models than it lists.
	if provider, id, ok := strings.Cut(name, "/"); ok && isModelID(id) {
		for i := range models {
			if models[i].Provider == provider {
				return provider, id, true
			}
		}
	}
	return "", "", false
}

// maxModelID is the longest id of a model, in bytes, as it is in models.json.
const maxModelID = 512

// isModelID says whether a provider could know a model by this. What is kept of it goes
// into every status of the session and, with each call, to the provider.
func isModelID(id string) bool {
	return id != "" && len(id) <= maxModelID && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) })
}

// entryView is the entry as replies have it.
type entryView struct {
	session.Entry

	SessionID string `json:"sessionId,omitempty"`
	UpdatedAt int64  `json:"updatedAt,omitempty"`
	CreatedAt int64  `json:"createdAt,omitempty"`
}

// replyChanged answers a change with the session as it is now, and tells others.
func (g *Gateway) replyChanged(ctx context.Context, r *Request, ref session.Ref, reason string, out protocol.SessionChanged) error {
	out, err := g.changed(ctx, ref, out)
	if err != nil {
		return err
	}
	if err := r.Reply(out); err != nil {
		return err
	}
	g.announce(ctx, ref, reason)
	return nil
}

func (g *Gateway) changed(ctx context.Context, ref session.Ref, out protocol.SessionChanged) (protocol.SessionChanged, error) {
	v, err := g.view(ctx, ref)
	if err != nil {
		return out, err
	}
	agents, err := g.Directory.Agents(ctx, ref.Tenant)
	if err != nil {
		return out, err
	}
	used := modelOf(v.prefs(), agents, session.AgentOf(ref.Key))
	out.OK, out.Key, out.SessionID, out.Resolved = true, ref.Key, v.m.SessionID, &used
	out.Entry = entryView{v.prefs(), v.m.SessionID, v.m.Updated, v.m.Created}
	return out, nil
}

// sessionsCreate makes a session, and starts a run where there is a message. With an
// idempotency key a repeat gives the same session and the same run.
func (g *Gateway) sessionsCreate(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsCreateParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if scope := protocol.CreateScope(&p); !protocol.ScopeSatisfied(r.Conn.Scopes, scope) {
		return protocol.MissingScope(scope)
	}
	for name, set := range map[string]bool{"incognito": p.Incognito, "fork": p.Fork, "toolOverrides": p.ToolOverrides != nil, "permissionMode": p.PermissionMode != ""} {
		if set {
			return protocol.InvalidParams(r.Method, "at /"+name+": is not supported")
		}
	}
	hash, err := requestHash(r.Method, p)
	if err != nil {
		return err
	}
	raw := p.Key
	if raw == "" {
		name := g.NewID()
		if p.IdempotencyKey != "" {
			name = id.Hash(r.Tenant(), p.IdempotencyKey)
		}
		raw = "dashboard:" + name
	}
	ref, agent, err := g.sessionRef(ctx, r, raw, p.AgentID)
	if err != nil {
		return err
	}
	var provider, name string
	if p.Model != "" {
		if provider, name, err = g.findModel(ctx, r, p.Model); err != nil {
			return err
		}
	}
	if p.ThinkingLevel, err = g.firstLevel(ctx, r, ref, &p); err != nil {
		return err
	}
	text := orElse(p.Message, p.Task)
	begins := strings.TrimSpace(text) != "" || len(p.Attachments) > 0
	files, err := g.attached(ctx, r, p.Attachments)
	if err != nil {
		return err
	}
	if _, err := g.read(ctx, r, ref, text, len(p.Attachments) > 0); err != nil {
		return err // no session is made with a message that is refused
	}
	if err := g.ensure(ctx, ref); err != nil {
		return err
	}
	_, err = session.UpdateEntry(ctx, g.Store, ref, func(e *session.Entry) error {
		if e.Deleted {
			*e = session.Entry{}
		}
		e.CreatedVia, e.Label, e.DisplayName = orElse(e.CreatedVia, viaOperator), orElse(p.Label, e.Label), orElse(p.DisplayName, e.DisplayName)
		e.Category, e.ThinkingLevel = orElse(p.Category, e.Category), orElse(p.ThinkingLevel, e.ThinkingLevel)
		if p.FastMode != nil {
			e.FastMode = fastMode(*p.FastMode)
		}
		if name != "" {
			e.ModelProvider, e.ModelOverride, e.ModelSource = provider, name, sourceUser
		}
		return nil
	})
	if err != nil {
		return err
	}
	started := false
	out, err := g.changed(ctx, ref, protocol.SessionChanged{RunStarted: &started})
	if err != nil {
		return err
	}
	defer g.announce(ctx, ref, "create")
	if !begins {
		return r.Reply(out)
	}
	out.RunID, started = orElse(p.IdempotencyKey, g.NewID()), true
	return g.say(ctx, r, message{
		ref: ref, agent: agent, hash: hash, files: files, cwd: p.Cwd, made: &out,
		ChatSendParams: &protocol.ChatSendParams{Message: text, IdempotencyKey: out.RunID, TimeoutMs: p.TimeoutMs, Attachments: p.Attachments},
	})
}

// firstLevel is the thinking level that a session is made with, as it is stored.
func (g *Gateway) firstLevel(ctx context.Context, r *Request, ref session.Ref, p *protocol.SessionsCreateParams) (string, error) {
	if p.ThinkingLevel == "" {
		return "", nil
	}
	v, err := g.view(ctx, ref)
	if err != nil {
		return "", err
	}
	change := protocol.SessionsPatchParams{
		ThinkingLevel: protocol.Optional[string]{Set: true, Value: p.ThinkingLevel},
		Model:         protocol.Optional[string]{Set: p.Model != "", Value: p.Model},
	}
	err = g.checkLevels(ctx, r, ref, &v, &change)
	return change.ThinkingLevel.Value, err
}
