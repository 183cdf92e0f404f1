package rpc

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

func (g *Gateway) sessionMethods() map[string]handler {
	return map[string]handler{
		"sessions.subscribe":            g.subscribeAll,
		"sessions.unsubscribe":          g.unsubscribeAll,
		"sessions.messages.subscribe":   g.subscribe,
		"sessions.messages.unsubscribe": g.unsubscribe,
		"sessions.list":                 g.sessionsList,
		"sessions.describe":             g.sessionsDescribe,
		"sessions.resolve":              g.sessionsResolve,
		"sessions.get":                  g.sessionsGet,
		"sessions.preview":              g.sessionsPreview,
		"sessions.abort":                g.sessionsAbort,
		"sessions.reset":                g.sessionsReset,
		"sessions.delete":               g.sessionsDelete,
		"sessions.patch":                g.sessionsPatch,
		"sessions.create":               g.sessionsCreate,
		"sessions.send":                 g.sessionsSend,
	}
}

// view is a session as it was read.
type view struct {
	m session.Meta
	e session.Entry
}

// view reads a session: the hot item and the entry, side by side.
func (g *Gateway) view(ctx context.Context, ref session.Ref) (view, error) {
	var v view
	eg, gctx := errgroup.WithContext(ctx)
	eg.Go(func() (err error) {
		v.m, err = session.LoadMeta(gctx, g.Store, ref)
		return err
	})
	eg.Go(func() (err error) {
		v.e, err = session.LoadEntry(gctx, g.Store, ref)
		return err
	})
	return v, eg.Wait()
}

// exists says whether clients see the session. The hot item alone does not make one:
// a stop that came before its first message writes it too, and a deleted session
// keeps it.
func (v *view) exists() bool {
	if v.e.Deleted {
		return v.m.Seq > v.e.DeletedSeq || v.m.Head > 0
	}
	return v.m.Seq > 0 || v.m.Head > 0 || v.e.CreatedVia != ""
}

// prefs is the entry of the session's present life.
func (v *view) prefs() session.Entry {
	if v.e.Deleted {
		return session.Entry{}
	}
	return v.e
}

// knownSession reads a session that must be there.
func (g *Gateway) knownSession(ctx context.Context, ref session.Ref) (view, error) {
	v, err := g.view(ctx, ref)
	if err == nil && !v.exists() {
		err = protocol.NoSession(ref.Key)
	}
	return v, err
}

// sessionRow is the session as clients see it. Waiting runs are not active ones.
func (g *Gateway) sessionRow(ctx context.Context, v *view, agents []Agent) (protocol.SessionRow, error) {
	m, e := &v.m, v.prefs()
	agent, rules := session.AgentOf(m.Key), g.entryRules(m.Ref, e)
	limit := int64(rules.Cap)
	_, rest, _ := strings.Cut(strings.TrimPrefix(m.Key, "agent:"), ":")
	r := protocol.SessionRow{
		Key: m.Key, SessionID: m.SessionID, PreviousID: m.PrevID, AgentID: agent, Kind: kindOf(rest), Label: e.Label, DisplayName: e.DisplayName,
		IsMain: rest == session.MainKey, CreatedAt: m.Created, Status: statusOf(m), LastRunID: m.LastRun, AbortedLastRun: m.LastEnd == string(run.Aborted),
		ThinkingLevel: e.ThinkingLevel, VerboseLevel: e.VerboseLevel, TraceLevel: e.TraceLevel, ReasoningLevel: e.ReasoningLevel, SendPolicy: e.SendPolicy,
		QueueMode: e.QueueMode, EffectiveQueueMode: rules.Mode, QueueDrop: rules.Drop,
		QueueDebounceMs: &rules.Debounce, QueueCap: &limit, Archived: e.Archived, Pinned: e.Pinned, Category: e.Category,
		InputTokens: m.TokensIn, OutputTokens: m.TokensOut, TotalTokens: m.TokensIn + m.TokensOut,
	}
	if r.DisplayName == "" {
		r.DisplayName = rest
	}
	if m.Updated != 0 {
		r.UpdatedAt, r.LastInteractionAt = &m.Updated, m.LastInput
	}
	switch e.FastMode {
	case "on":
		r.FastMode = true
	case "off":
		r.FastMode = false
	case "auto":
		r.FastMode = e.FastMode
	}
	used := modelOf(e, agents, agent)
	r.ModelProvider, r.Model = used.ModelProvider, used.Model
	for _, a := range agents {
		if a.ID == agent {
			r.ContextTokens = a.ContextTokens
		}
	}
	var err error
	if m.Active != "" {
		r.HasActiveRun, r.StartedAt = true, m.ActiveAt
		if r.ActiveRunIDs, err = g.runIDs(ctx, m.Tenant, []string{m.Active}); err != nil {
			return r, err
		}
	}
	if strings.HasPrefix(r.LastRunID, "~") { // short for a long id: not worth a read here
		r.LastRunID = ""
	}
	return r, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func kindOf(rest string) string {
	switch {
	case rest == "global", rest == "unknown":
		return rest
	case strings.Contains(rest, ":group:"), strings.Contains(rest, ":channel:"):
		return "group"
	}
	return "direct"
}

func statusOf(m *session.Meta) string {
	_, waits := m.Lowest()
	switch {
	case m.Active != "":
		return "running"
	case waits:
		return "queued"
	}
	switch run.OutcomeKind(m.LastEnd) {
	case run.OK:
		return "done"
	case run.Failed:
		return "failed"
	case run.Aborted:
		return "killed"
	case run.Timeout:
		return "timeout"
	}
	return ""
}

// modelOf is the model that the session's next run uses if it names none.
func modelOf(e session.Entry, agents []Agent, agent string) protocol.ResolvedModel {
	for _, a := range agents {
		if a.ID == agent {
			return protocol.ResolvedModel{ModelProvider: orElse(e.ModelProvider, a.Provider), Model: orElse(e.ModelOverride, a.Model)}
		}
	}
	return protocol.ResolvedModel{ModelProvider: e.ModelProvider, Model: e.ModelOverride}
}

// ensure makes a session that clients see of one that they do not: one that was
// never used, or was deleted. One that is there stays as it is.
func (g *Gateway) ensure(ctx context.Context, ref session.Ref) error {
	v, err := g.view(ctx, ref)
	if err != nil || v.exists() {
		return err
	}
	now := g.Clock.Now()
	if v.m.Exists() {
		return g.write(ctx, table.Op{
			Kind: table.Update, Key: ref.MetaKey(), If: table.Exists(),
			Set: []table.SetOp{
				{Path: table.P(session.AttrUpdated), Value: now.UnixMilli()},
				{Path: table.P(session.AttrInput), Value: now.UnixMilli()},
				{Path: table.P(session.AttrRecentPK), Value: session.RecentPK(ref.Tenant)},
				{Path: table.P(session.AttrRecentSK), Value: session.RecentSK(now, ref.Key)},
			},
		})
	}
	err = g.write(ctx, session.Create(ref, g.NewID(), now)...)
	if errors.Is(err, table.ErrCondition) {
		return nil // somebody else made it
	}
	return err
}

// settleWait is how long a call that stops work waits for its end.
const settleWait = 15 * time.Second

// await polls until done says so, for at most settleWait.
func (g *Gateway) await(ctx context.Context, done func(context.Context) (bool, error)) error {
	end := g.Clock.Now().Add(settleWait)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		ok, err := done(ctx)
		if ok || err != nil || !g.Clock.Now().Before(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-g.Clock.After(pause):
		}
	}
}
