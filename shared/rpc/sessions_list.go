package rpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/table"
)

const (
	defaultList = 100  // rows of sessions.list
	maxList     = 1000 // most rows that a list gives or looks through
	pageOfList  = 50   // least keys that are asked for at once
	readers     = 8    // reads at the same time
)

// sessionsList lists the caller's sessions: those with something to do first, then
// by their last end. Both come from indexes, which may be a little behind; every row
// is made of the items themselves. Counts are of what was looked at: whether more
// exist says hasMore.
func (g *Gateway) sessionsList(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsListParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	agents, err := g.Directory.Agents(ctx, r.Tenant())
	if err != nil {
		return err
	}
	offset, limit := int(min(intOf(p.Offset, 0), maxList)), int(min(intOf(p.Limit, defaultList), maxList))
	now := g.Clock.Now()
	found, err := g.collect(ctx, r.Tenant(), p.ActiveOnly, offset+limit+1, func(v *view) bool { return keep(&p, v, now) })
	if err != nil {
		return err
	}
	out := protocol.SessionsList{
		TS: now.UnixMilli(), Path: "laneway", TotalCount: len(found), LimitApplied: limit, Sessions: []protocol.SessionRow{},
		Defaults: defaults(agents, orElse(p.AgentID, session.DefaultAgent)),
	}
	out.HasMore = len(found) > offset+limit
	size := listEnvelope
	for i := offset; i < min(len(found), offset+limit); i++ {
		row, err := g.sessionRow(ctx, &found[i], agents)
		if err != nil {
			return err
		}
		if p.IncludeLastMessage {
			if row.LastMessage, err = g.lastMessage(ctx, &found[i]); err != nil {
				return err
			}
		}
		b, err := protocol.Marshal(row)
		if err != nil {
			return err
		}
		if size += len(b) + 1; size > g.MaxReply && len(out.Sessions) > 0 {
			out.HasMore = true
			break
		}
		out.Sessions = append(out.Sessions, row)
	}
	out.Count = len(out.Sessions)
	if out.HasMore {
		out.NextOffset = offset + out.Count
	}
	return r.Reply(out)
}

// listEnvelope is room for what a list says beside its rows.
const listEnvelope = 4 << 10

func intOf(n *int64, other int64) int64 {
	if n == nil {
		return other
	}
	return *n
}

// keep says whether a list's filters let a session through.
func keep(p *protocol.SessionsListParams, v *view, now time.Time) bool {
	e := v.prefs()
	_, rest, _ := strings.Cut(strings.TrimPrefix(v.m.Key, "agent:"), ":")
	switch {
	case !v.exists():
		return false
	case p.AgentID != "" && session.AgentOf(v.m.Key) != p.AgentID:
		return false
	case p.Label != "" && e.Label != p.Label:
		return false
	case p.ActiveMinutes != nil && v.m.Updated < now.Add(-time.Duration(min(*p.ActiveMinutes, 1<<30))*time.Minute).UnixMilli():
		return false
	case p.ExcludeCron && strings.HasPrefix(rest, "cron:"), p.ExcludeSubagents && strings.HasPrefix(rest, "subagent:"):
		return false
	case p.Pinned != nil && e.Pinned != *p.Pinned:
		return false
	case p.Archived == nil && e.Archived, p.Archived != nil && !p.Archived.All && e.Archived != p.Archived.Archived:
		return false
	case p.Search != "":
		q := strings.ToLower(p.Search)
		return strings.Contains(v.m.Key, q) || strings.Contains(strings.ToLower(e.Label), q) || strings.Contains(strings.ToLower(e.DisplayName), q)
	}
	return true
}

// collect reads the tenant's sessions in list order until need of them pass.
func (g *Gateway) collect(ctx context.Context, tenant string, activeOnly bool, need int, pass func(*view) bool) ([]view, error) {
	active, err := g.activeRefs(ctx, tenant)
	if err != nil {
		return nil, err
	}
	seen := make(map[session.Ref]bool)
	var out []view
	add := func(refs []session.Ref) error {
		refs = slices.DeleteFunc(refs, func(r session.Ref) bool {
			twice := seen[r]
			seen[r] = true
			return twice
		})
		views, err := g.views(ctx, refs)
		for i := range views {
			if pass(&views[i]) {
				out = append(out, views[i])
			}
		}
		return err
	}
	if err := add(active); err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b view) int { return cmp.Compare(b.m.Updated, a.m.Updated) })
	if activeOnly {
		return out[:min(len(out), need)], nil
	}
	q := table.IndexQuery{Table: table.Sessions, Index: table.IndexRecent, PK: session.RecentPK(tenant), Desc: true, Limit: max(pageOfList, min(need, maxList))}
	for looked := 0; len(out) < need && looked < maxList; {
		page, err := g.Store.Index(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		looked += len(page.Keys)
		if err := add(refsOf(tenant, page.Keys)); err != nil {
			return nil, err
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	return out[:min(len(out), need)], nil
}

// refsOf is the sessions that index keys name, those of the tenant only (K2).
func refsOf(tenant string, keys []table.IndexKey) []session.Ref {
	var out []session.Ref
	for _, k := range keys {
		if ref, ok := session.RefOfPK(k.Key.PK); ok && ref.Tenant == tenant {
			out = append(out, ref)
		}
	}
	return out
}

// activeRefs is the tenant's sessions in the active index: a session is in lists
// before its first run has ended.
func (g *Gateway) activeRefs(ctx context.Context, tenant string) ([]session.Ref, error) {
	var shards [session.ActiveShards][]session.Ref
	eg, gctx := errgroup.WithContext(ctx)
	eg.SetLimit(readers)
	own := session.Ref{Tenant: tenant}.PK()
	for n := range shards {
		eg.Go(func() error {
			q := table.IndexQuery{
				Table: table.Sessions, Index: table.IndexActive, PK: session.ActiveShard(n),
				From: own, To: own + "\U0010FFFF", Limit: maxList / session.ActiveShards,
			}
			page, err := g.Store.Index(gctx, q)
			shards[n] = refsOf(tenant, page.Keys)
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		return nil, fmt.Errorf("list active sessions: %w", err)
	}
	return slices.Concat(shards[:]...), nil
}

// views reads sessions, in the order of refs.
func (g *Gateway) views(ctx context.Context, refs []session.Ref) ([]view, error) {
	out := make([]view, len(refs))
	eg, gctx := errgroup.WithContext(ctx)
	eg.SetLimit(readers)
	for i, ref := range refs {
		eg.Go(func() (err error) {
			out[i], err = g.view(gctx, ref)
			return err
		})
	}
	return out, eg.Wait()
}

// sessionsDescribe gives one session's row, or null.
func (g *Gateway) sessionsDescribe(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsDescribeParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	v, err := g.view(ctx, ref)
	if err != nil || !v.exists() {
		if err == nil {
			err = r.Reply(protocol.SessionDescribed{})
		}
		return err
	}
	agents, err := g.Directory.Agents(ctx, r.Tenant())
	if err != nil {
		return err
	}
	row, err := g.sessionRow(ctx, &v, agents)
	if err != nil {
		return err
	}
	if p.IncludeLastMessage {
		if row.LastMessage, err = g.lastMessage(ctx, &v); err != nil {
			return err
		}
	}
	return r.Reply(protocol.SessionDescribed{Session: &row})
}

// sessionsResolve finds a session by key, id, label, or the start of its id.
func (g *Gateway) sessionsResolve(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsResolveParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if p.Key+p.SessionID+p.Label+p.ShortID == "" {
		return protocol.InvalidParams(r.Method, "reference is not supported")
	}
	key, name, err := g.resolve(ctx, r, &p)
	switch {
	case err != nil:
		return err
	case key != "":
		return r.Reply(protocol.SessionResolved{OK: true, Key: key, AgentID: session.AgentOf(key)})
	case p.AllowMissing:
		return r.Reply(protocol.SessionResolved{})
	}
	return protocol.NoSession(name)
}

// resolve gives the key of the session that is meant, empty where there is none,
// and what it was called.
func (g *Gateway) resolve(ctx context.Context, r *Request, p *protocol.SessionsResolveParams) (key, name string, err error) {
	var v view
	switch {
	case p.Key != "":
		ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
		if err != nil {
			return "", "", err
		}
		if v, err = g.view(ctx, ref); err != nil || !v.exists() {
			return "", ref.Key, err
		}
		return ref.Key, ref.Key, nil
	case p.SessionID != "":
		key, err = g.byID(ctx, r.Tenant(), p.SessionID)
		name = p.SessionID
	case p.Label != "":
		key, err = g.search(ctx, r.Tenant(), p.AgentID, func(v *view) bool { return v.prefs().Label == p.Label })
		name = p.Label
	default:
		key, err = g.byShortID(ctx, r.Tenant(), p.AgentID, p.ShortID)
		name = p.ShortID
	}
	if err != nil || p.AgentID != "" && key != "" && session.AgentOf(key) != p.AgentID {
		key = ""
	}
	return key, name, err
}

// byID is the key of the session that has an id now.
func (g *Gateway) byID(ctx context.Context, tenant, sessionID string) (string, error) {
	key, err := session.KeyOfID(ctx, g.Store, tenant, sessionID)
	if err != nil || key == "" {
		return "", err
	}
	v, err := g.view(ctx, session.Ref{Tenant: tenant, Key: key})
	if err != nil || !v.exists() || v.m.SessionID != sessionID {
		return "", err
	}
	return key, nil
}

func (g *Gateway) byShortID(ctx context.Context, tenant, agentID, short string) (string, error) {
	if key, err := g.byID(ctx, tenant, short); err != nil || key != "" {
		return key, err
	}
	return g.search(ctx, tenant, agentID, func(v *view) bool { return strings.HasPrefix(v.m.SessionID, short) })
}

// search looks for a session among the latest ones. Names that are not unique find
// the latest.
func (g *Gateway) search(ctx context.Context, tenant, agentID string, is func(*view) bool) (string, error) {
	found, err := g.collect(ctx, tenant, false, 1, func(v *view) bool {
		return v.exists() && (agentID == "" || session.AgentOf(v.m.Key) == agentID) && is(v)
	})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].m.Key, nil
}
