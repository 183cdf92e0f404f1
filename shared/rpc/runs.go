package rpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/claim"
	"laneway/shared/diag"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

const (
	defaultRuns = 100
	runPage     = 100 // sessions that are read before it is seen whether they are enough
)

// runsList lists the runs of the tenant that are not over, session by session: the one
// that has begun, then those that wait. Its order is that of the index of sessions with
// work left, so a cursor goes on where a list ended, whatever has ended meanwhile.
func (g *Gateway) runsList(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.RunsListParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	list := &runList{g: g, p: &p, limit: int(intOf(p.Limit, defaultRuns)), room: g.MaxReply - frameEnvelope}
	if p.SessionKey != "" {
		ref, _, err := g.sessionRef(ctx, r, p.SessionKey, p.AgentID)
		if err != nil {
			return err
		}
		if err := list.session(ctx, ref, 0); err != nil {
			return err
		}
		return list.reply(r)
	}
	at, err := parseRunCursor(p.Cursor)
	if err != nil {
		return err
	}
	if err := list.all(ctx, r.Tenant(), at); err != nil {
		return err
	}
	return list.reply(r)
}

// runCursor is where a list goes on: in a partition of the index, at a session's key,
// behind an accept sequence.
type runCursor struct {
	shard int
	sk    string
	seq   int64
}

func (c runCursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d|%d|%s", c.shard, c.seq, c.sk))
}

func parseRunCursor(s string) (c runCursor, err error) {
	if s == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d|%d|", &c.shard, &c.seq)
	}
	if parts := strings.SplitN(string(b), "|", 3); err == nil && len(parts) == 3 && c.shard >= 0 && c.shard < session.ActiveShards {
		c.sk = parts[2]
		return c, nil
	}
	return c, protocol.Invalid("invalid cursor")
}

// runList gathers rows.
type runList struct {
	g     *Gateway
	p     *protocol.RunsListParams
	limit int
	room  int // bytes
	rows  []protocol.RunRow
	last  session.Ref // of the last row
	seq   int64       // likewise
	more  bool
}

func (l *runList) reply(r *Request) error {
	out := protocol.RunsList{TS: l.g.Clock.Now().UnixMilli(), Runs: l.rows}
	if out.Runs == nil {
		out.Runs = []protocol.RunRow{}
	}
	if l.more && len(l.rows) > 0 {
		shard := slices.IndexFunc(shards(), func(pk string) bool { return pk == l.last.ActivePK() })
		out.NextCursor = runCursor{shard, l.last.PK(), l.seq}.String()
	}
	return r.Reply(out)
}

func shards() []string {
	out := make([]string, session.ActiveShards)
	for n := range out {
		out[n] = session.ActiveShard(n)
	}
	return out
}

// all goes through the index. It holds the sessions of all tenants: only those of one
// are asked for (K2).
func (l *runList) all(ctx context.Context, tenant string, at runCursor) error {
	prefix := session.Ref{Tenant: tenant}.PK()
	for n, pk := range shards() {
		if n < at.shard {
			continue
		}
		q := table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: pk, From: prefix, To: prefix + "\U0010FFFF", Limit: runPage}
		if n == at.shard && strings.HasPrefix(at.sk, prefix) {
			q.From = at.sk
		}
		for {
			page, err := l.g.Store.Index(ctx, q)
			if err != nil {
				return fmt.Errorf("runs: %w", err)
			}
			for _, k := range page.Keys {
				ref, ok := session.RefOfPK(k.Key.PK)
				if !ok || ref.Tenant != tenant || l.p.AgentID != "" && session.AgentOf(ref.Key) != l.p.AgentID {
					continue
				}
				behind := int64(0)
				if k.Key.PK == at.sk {
					behind = at.seq
				}
				if err := l.session(ctx, ref, behind); err != nil || l.more {
					return err
				}
			}
			if page.Next == "" {
				break
			}
			q.After = page.Next
		}
	}
	return nil
}

// session adds the runs of one session that were accepted behind a sequence.
func (l *runList) session(ctx context.Context, ref session.Ref, behind int64) error {
	m, err := session.LoadMeta(ctx, l.g.Store, ref)
	if err != nil {
		return err
	}
	found, err := l.g.runsOf(ctx, &m)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.seq <= behind || l.p.Lane != "" && f.row.Lane != l.p.Lane || l.p.State != "" && f.row.State != l.p.State {
			continue
		}
		b, err := protocol.Marshal(f.row)
		if err != nil {
			return err
		}
		if l.room -= len(b) + 1; len(l.rows) == l.limit || l.room < 0 {
			l.more = true
			return nil
		}
		l.rows = append(l.rows, f.row)
		l.last, l.seq = ref, f.seq
	}
	return nil
}

// The states of a run in a list.
const (
	runPending  = "pending"
	runRunning  = "running"
	runSleeping = "sleeping"
)

type foundRun struct {
	seq int64
	row protocol.RunRow
}

// runsOf is the runs of a session that are not over, by accept sequence.
func (g *Gateway) runsOf(ctx context.Context, m *session.Meta) ([]foundRun, error) {
	var found []foundRun
	var shorts []string
	if m.Active != "" {
		shorts = append(shorts, m.Active)
		found = append(found, foundRun{m.ActiveSeq, protocol.RunRow{Lane: m.ActiveLane, State: runRunning}})
	}
	for _, p := range m.Pending {
		if p.Seq > m.Cutoff {
			shorts = append(shorts, p.Run)
			found = append(found, foundRun{p.Seq, protocol.RunRow{Lane: p.Lane, State: runPending, Position: len(found) + 1}})
		}
	}
	if m.Active != "" {
		for i := range found[1:] {
			found[i+1].row.Position--
		}
	}
	now := g.Clock.Now()
	eg, gctx := errgroup.WithContext(ctx)
	eg.SetLimit(readers)
	for i, short := range shorts {
		eg.Go(func() error {
			st, err := run.Load(gctx, g.Store, run.Ref{Tenant: m.Tenant, Run: short})
			if errors.Is(err, run.ErrUnknown) {
				return nil
			}
			if err == nil {
				g.runRow(&found[i].row, m, &st, now)
			}
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(f foundRun) bool { return f.row.RunID == "" }), nil
}

// runRow fills a row from the run's record and, where it has begun, from the session.
func (g *Gateway) runRow(row *protocol.RunRow, m *session.Meta, st *run.Status, now time.Time) {
	row.RunID, row.SessionKey, row.AgentID, row.Method, row.AcceptedAt = st.RunID, m.Key, st.AgentID, st.Method, st.AcceptedAt
	row.ForMs = max(now.UnixMilli()-st.AcceptedAt, 0)
	if row.State == runPending {
		return
	}
	n := st.Counted()
	in := diag.Observe(*m, now, g.Claims.Times.Slack, 0)
	row.StartedAt, row.ForMs = m.ActiveAt, max(now.UnixMilli()-m.ActiveAt, 0)
	row.Attempt, row.Step, row.ToolCalls, row.Usage = m.Attempt, n.Step, n.ToolCalls, run.WireUsage(&n.Usage)
	if len(n.Used) > 0 {
		row.Used = make(map[string]float64, len(n.Used))
		for name, v := range n.Used {
			row.Used[string(name)] = v
		}
	}
	row.Stopping = m.Marked()
	age := in.Progress.Milliseconds()
	row.LastProgressAgeMs = &age
	if m.Asleep(now) {
		row.State, row.WakeAt = runSleeping, m.Wake.UnixMilli()
		return
	}
	row.OwnerLive = &in.Owned
	if in.Owned {
		row.Work, row.Tool = m.Progress.Work.Kind, in.Tool
	}
}

// runsAbort stops a run for certain: it is told to end, waited for, and where its
// holder is dead it is ended here. A holder that lives and does not react loses its
// claim, so that it can do nothing more; the run is ended when its lease is over, by
// the wake-up that is sent for then, or by the next call.
func (g *Gateway) runsAbort(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.RunsAbortParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	rr := run.RefOf(r.Tenant(), p.RunID)
	st, err := run.Load(ctx, g.Store, rr)
	if errors.Is(err, run.ErrUnknown) {
		return protocol.Invalid("No run found: " + p.RunID)
	}
	if err != nil {
		return err
	}
	out := protocol.RunAborted{OK: true, RunID: st.RunID, SessionKey: st.SessionKey}
	if done, ok := abortOver(&st, out); ok {
		return r.Reply(done)
	}
	ref := session.Ref{Tenant: r.Tenant(), Key: st.SessionKey}
	if p.Reason != "" {
		g.Logger.Info("run is stopped", "session", ref.Hash(), "run", rr.Run, "by", r.Conn.Name, "reason", p.Reason)
	}
	hit, err := g.Lanes.StopRun(ctx, lane.Stop{Ref: ref, RunID: st.RunID, Reason: protocol.StopRPC})
	if err != nil {
		return err
	}
	told := g.Clock.Now()
	settle := g.Diagnostics.WithDefaults().Settle
	err = g.await(ctx, func(ctx context.Context) (bool, error) {
		if st, err = run.Load(ctx, g.Store, rr); err != nil || st.Done() || st.State == run.Delivered {
			return true, err
		}
		return g.force(ctx, ref, rr.Run, g.Clock.Now().Sub(told) >= settle-settlePoll)
	})
	if err != nil {
		return err
	}
	if st, err = run.Load(ctx, g.Store, rr); err != nil {
		return err
	}
	if done, ok := abortOver(&st, out); ok {
		// Its end was this call's doing unless it came another way meanwhile.
		if done.Status == "ended" && hit && st.Outcome.Kind == run.Aborted {
			done.Aborted, done.Status = true, "aborted"
		}
		return r.Reply(done)
	}
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil {
		return err
	}
	out.Aborted, out.Status = hit, "stopping"
	if m.Owner != "" {
		out.EndsBy = m.Lease.Add(g.Claims.Times.Slack + time.Second).UnixMilli()
	}
	return r.Reply(out)
}

// settlePoll is a little less than the pause between two looks of await, so that the
// last of them still takes the claim of a holder that does not react.
const settlePoll = 300 * time.Millisecond

// abortOver is the reply about a run that cannot be stopped any more.
func abortOver(st *run.Status, out protocol.RunAborted) (protocol.RunAborted, bool) {
	switch {
	case st.Done():
		out.Status, out.Outcome = "ended", string(st.Outcome.Kind)
	case st.State == run.Delivered:
		out.Status, out.Into = "delivered", st.Into
	default:
		return out, false
	}
	return out, true
}

// force ends a stopped run whose holder is dead; with last it takes the claim from one
// that lives and does not react.
func (g *Gateway) force(ctx context.Context, ref session.Ref, short string, last bool) (bool, error) {
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil || m.Active != short || !m.Marked() {
		return false, err
	}
	if !m.Owned(g.Clock.Now(), g.Claims.Times.Slack) {
		if g.Ender == nil {
			return false, nil // a wake-up is under way
		}
		return g.Ender.EndStopped(ctx, ref)
	}
	if last && claim.RunOf(m.Owner) == short {
		if _, err := g.Lanes.Revoke(ctx, m); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Ender ends runs that are to stop and that nobody holds.
type Ender interface {
	EndStopped(ctx context.Context, ref session.Ref) (bool, error)
}
