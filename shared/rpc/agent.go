package rpc

import (
	"context"
	"errors"
	"strings"
	"time"

	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

func (g *Gateway) agentMethods() map[string]handler {
	return map[string]handler{"agent": g.agent, "agent.wait": g.wait}
}

// agent accepts a run and answers twice: now that it is accepted, later with its
// end, under the same request id.
func (g *Gateway) agent(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.AgentParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if (p.Provider != "" || p.Model != "") && !r.Admin() {
		return protocol.InvalidParams(r.Method, "provider and model overrides need "+protocol.ScopeAdmin)
	}
	if err := knownLevel(r.Method, p.Thinking); err != nil {
		return err
	}
	ref, agent, err := g.agentSession(ctx, r, &p)
	if err != nil {
		return err
	}
	hash, err := requestHash(r.Method, p)
	if err != nil {
		return err
	}
	if err := g.agentAllowed(ctx, ref, &p); err != nil {
		return err
	}
	files, err := g.attached(ctx, r, p.Attachments)
	if err != nil {
		return err
	}
	a := asked{text: p.Message}
	if strings.Contains(p.Message, "/") {
		if st, known, err := g.recorded(ctx, ref.Tenant, p.IdempotencyKey); known || err != nil {
			return g.afterAccept(ctx, r, lane.Accepted{Status: st, Repeat: true}, errors.Join(err, conflict(st, hash)))
		}
		if a, err = g.read(ctx, r, ref, p.Message, len(p.Attachments) > 0); err != nil {
			return err
		}
	}
	if a.alone {
		return g.agentAlone(ctx, r, ref, caller{r.Method, p.IdempotencyKey, hash}, &a)
	}
	if a.reason != "" {
		if err := g.resetBefore(ctx, ref, p.IdempotencyKey, a.reason); err != nil {
			return err
		}
	}
	w := r.waiter(run.WaitFinal)
	st := run.Status{
		Ref: run.RefOf(ref.Tenant, p.IdempotencyKey), RunID: p.IdempotencyKey, SessionKey: ref.Key, AgentID: agent,
		Lane: laneOf(p.Lane), Method: r.Method, RequestHash: hash, Origin: &w, Token: r.Conn.Token,
		Input: run.Input{
			Message: a.text, Attachments: files, Cards: a.answer, ExtraPrompt: p.ExtraSystemPrompt, PromptMode: p.PromptMode,
			RunKind: p.BootstrapContextRunKind, Thinking: p.Thinking,
			Provider: p.Provider, Model: p.Model, TimeoutMs: budget(p.Timeout, time.Second), Cwd: p.Cwd, Label: p.Label, SessionID: p.SessionID,
		},
	}
	a.levels.apply(&st.Input)
	if err := g.freshen(ctx, ref, &st.Input); err != nil {
		return err
	}
	acc, err := g.Lanes.Accept(ctx, lane.Call{
		Run: st, ConnectionID: r.Conn.ID, FrameAt: r.frame.At,
		With:     func(ctx context.Context) ([]table.Op, error) { return g.kept(ctx, ref, &a) },
		Accepted: func(acc lane.Accepted) { g.replyAccepted(r, acc.Status) },
	})
	if err == nil && len(a.changes) > 0 && !acc.Repeat && !acc.Stopped {
		g.announce(ctx, ref, "patch")
	}
	return g.afterAccept(ctx, r, acc, err)
}

// agentAlone answers a call of nothing but commands: it has ended, and is answered at
// once.
func (g *Gateway) agentAlone(ctx context.Context, r *Request, ref session.Ref, by caller, a *asked) error {
	st, again, err := g.answerAlone(ctx, ref, by, a)
	switch {
	case err != nil:
		return err
	case again:
		return g.afterAccept(ctx, r, lane.Accepted{Status: st, Repeat: true}, conflict(st, by.hash))
	}
	return g.replyFinal(r, st)
}

// agentAllowed checks what a call says about the session that it expects. It reads
// only where there is something to check.
func (g *Gateway) agentAllowed(ctx context.Context, ref session.Ref, p *protocol.AgentParams) error {
	if p.ExpectedExistingSessionID != "" {
		m, err := session.LoadMeta(ctx, g.Store, ref)
		if err != nil {
			return err
		}
		if err := expected(&view{m: m}, p.ExpectedExistingSessionID); err != nil {
			return err
		}
	}
	if !p.Deliver {
		return nil
	}
	return g.mayDeliver(ctx, ref)
}

// replyAccepted is the first reply. It goes out after the transaction and before
// the wake-up, so that on one machine no event of the run can be faster.
func (g *Gateway) replyAccepted(r *Request, st run.Status) {
	a := protocol.NewAccepted(st.RunID, st.SessionKey, st.AgentID, st.AcceptedAt)
	a.Disposition = st.Disposition.Wire()
	g.reply(r, a)
}

// reply is Reply where nobody can take an error.
func (g *Gateway) reply(r *Request, payload any) {
	if err := r.Reply(payload); err != nil {
		g.Logger.Error("reply not encoded", "err", err)
		r.frame.Send(protocol.AppendError(nil, r.ID, protocol.Internal()))
	}
}

// afterAccept answers what Accept did not accept anew: a repeat is answered from
// its record (A3), and waits for the end where that is still to come.
func (g *Gateway) afterAccept(ctx context.Context, r *Request, acc lane.Accepted, err error) error {
	var conflict *lane.ConflictError
	switch {
	case errors.As(err, &conflict):
		return protocol.AgentConflict()
	case err != nil:
		return err
	case acc.Stopped:
		g.replyAccepted(r, acc.Status)
		g.tellStopped(ctx, acc.Status)
		return g.replyFinal(r, acc.Status)
	case !acc.Repeat:
		return nil
	}
	st, err := g.Notify.Ended(ctx, acc.Status.Ref)
	if err != nil {
		return err
	}
	if st.Outcome != nil {
		return g.replyFinal(r, st)
	}
	st.Disposition = g.disposition(ctx, st)
	g.replyAccepted(r, st)
	if o := st.Origin; o != nil && o.ConnectionID == r.Conn.ID && o.RequestID == r.ID {
		return nil // the very same request: it waits already
	}
	frame, err := g.Notify.Attach(ctx, st.Ref, st.RunID, r.waiter(run.WaitFinal), time.Time{})
	if frame != nil {
		r.frame.Send(frame)
	}
	return err
}

// tellStopped answers who waits already for a run that ended with its acceptance (K1):
// it is never unsettled, so nobody else would before their time is over.
func (g *Gateway) tellStopped(ctx context.Context, st run.Status) {
	if err := g.Notify.Waiters(ctx, st); err != nil {
		g.Logger.Warn("waiters of a stopped run left to their timers", "run", st.Ref.Run, "err", err)
	}
}

func (g *Gateway) replyFinal(r *Request, st run.Status) error {
	b, err := st.AppendFinal(r.ID, g.MaxReply)
	if err != nil {
		return err
	}
	r.frame.Send(b)
	return nil
}

// agentSession finds the session of an agent call (spec: runtime 1.4): its key, a
// key in "to", the session that has the id, else the agent's main session.
func (g *Gateway) agentSession(ctx context.Context, r *Request, p *protocol.AgentParams) (session.Ref, string, error) {
	raw := p.SessionKey
	if raw == "" && strings.HasPrefix(strings.ToLower(p.To), "agent:") {
		raw = p.To
	}
	if raw == "" && p.SessionID != "" {
		key, err := session.KeyOfID(ctx, g.Store, r.Tenant(), p.SessionID)
		if err != nil {
			return session.Ref{}, "", err
		}
		if key != "" && p.AgentID != "" && session.AgentOf(key) != p.AgentID {
			return session.Ref{}, "", protocol.InvalidParams(r.Method, "sessionId belongs to another agent")
		}
		raw = key
	}
	return g.sessionRef(ctx, r, raw, p.AgentID)
}

// laneOf is the global lane for a lane that a caller names; names that are not
// lanes of ours run in main, as any other.
func laneOf(name string) string {
	switch queue.Lane(name) {
	case queue.Cron, queue.Subagent:
		return name
	case queue.Main:
	}
	return string(queue.Main)
}

// budget is a run's time as the record has it: 0 the default, -1 none.
func budget(n *int64, unit time.Duration) int64 {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	const most = int64(2_147_000_000) // ms: what the reference calls "none"
	if *n > most/unit.Milliseconds() {
		return -1
	}
	return *n * unit.Milliseconds()
}

// requestHash tells a repeat of a request from another one under the same key.
func requestHash(method string, params any) (string, error) {
	b, err := protocol.Marshal(params)
	if err != nil {
		return "", err
	}
	return id.Hash(method, string(b)), nil
}

// wait serves agent.wait.
func (g *Gateway) wait(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.AgentWaitParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	frame, err := g.Notify.Wait(ctx, run.RefOf(r.Tenant(), p.RunID), p.RunID, r.waiter(run.WaitSnapshot), p.Window())
	if frame != nil {
		r.frame.Send(frame)
	}
	return err
}
