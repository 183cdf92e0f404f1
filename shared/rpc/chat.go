package rpc

import (
	"context"
	"errors"
	"time"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/transcript"
)

func (g *Gateway) chatMethods() map[string]handler {
	return map[string]handler{
		"chat.send": g.chatSend, "chat.abort": g.chatAbort, "chat.inject": g.chatInject,
		"chat.history": g.chatHistory, "chat.startup": g.chatStartup, "chat.metadata": g.chatMetadata,
	}
}

// chatSend accepts a message; what comes of it arrives as events.
func (g *Gateway) chatSend(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.ChatSendParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	return g.send(ctx, r, &p)
}

// sessionsSend is chat.send by session key; the run id may be left to the gateway.
func (g *Gateway) sessionsSend(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsSendParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	return g.send(ctx, r, &protocol.ChatSendParams{
		SessionKey: p.Key, AgentID: p.AgentID, Message: p.Message, IdempotencyKey: orElse(p.IdempotencyKey, g.NewID()),
		Thinking: p.Thinking, TimeoutMs: p.TimeoutMs, Attachments: p.Attachments,
	})
}

func (g *Gateway) send(ctx context.Context, r *Request, p *protocol.ChatSendParams) error {
	ref, agent, err := g.sessionRef(ctx, r, p.SessionKey, p.AgentID)
	if err != nil {
		return err
	}
	hash, err := requestHash(r.Method, p)
	if err != nil {
		return err
	}
	if err := knownLevel(r.Method, p.Thinking); err != nil {
		return err
	}
	var inline inlined
	if !p.SuppressCommandInterpretation {
		if done, err := g.command(ctx, r, ref, hash, p, &inline); done || err != nil {
			return err
		}
	}
	if p.Deliver {
		if err := g.mayDeliver(ctx, ref); err != nil {
			return err
		}
	}
	st, err := g.chatRun(ctx, r, ref, agent, hash, p)
	if err != nil {
		return err
	}
	gather := g.gather(ref, p, &inline)
	if err := g.freshen(ctx, ref, &st.Input); err != nil {
		return err
	}
	if p.FastMode != nil {
		st.Input.Fast = fastMode(*p.FastMode)
	}
	inline.levels.apply(&st.Input)
	call := lane.Call{
		Run: st, ConnectionID: r.Conn.ID, FrameAt: r.frame.At, Gather: gather,
		Rules: func(ctx context.Context) (lane.Rules, error) {
			rules, err := g.rules(ctx, ref, p.QueueMode, inline.queue)
			if st.Input.ResetReason != "" && rules.Mode == lane.Steer {
				rules.Mode = lane.Followup // not into a job's run, whose transcript is the old one
			}
			return rules, err
		},
		Accepted: func(st run.Status) {
			g.reply(r, protocol.ChatSent{RunID: st.RunID, Status: protocol.StatusStarted, Disposition: st.Disposition.Wire()})
			g.acknowledge(ctx, r, st)
		},
	}
	acc, err := g.Lanes.Accept(ctx, call)
	g.Notify.Receipts(ctx, ref.Tenant, ref.Key, acc.Changed)
	return g.afterSend(ctx, r, acc, err)
}

// gather is how long a message waits for more of its sender (spec: runtime 2.8): a text
// that says nothing of itself. Files, commands and what is said of one message alone
// let nothing wait.
func (g *Gateway) gather(ref session.Ref, p *protocol.ChatSendParams, inline *inlined) time.Duration {
	if *inline != (inlined{}) || len(p.Attachments) > 0 || p.QueueMode != "" || p.Thinking != "" || p.SessionID != "" || p.FastMode != nil || p.TimeoutMs != nil {
		return 0
	}
	return g.Inbound.For(session.PlaceOf(ref.Key).Channel)
}

// methodChat is the method of runs that tell what comes of them as chat events.
const methodChat = "chat.send"

// chatRun is the record of a run for a chat message.
func (g *Gateway) chatRun(ctx context.Context, r *Request, ref session.Ref, agent, hash string, p *protocol.ChatSendParams) (run.Status, error) {
	files, err := g.attached(ctx, r, p.Attachments)
	w := r.waiter(run.WaitNone)
	return run.Status{
		Ref: run.RefOf(ref.Tenant, p.IdempotencyKey), RunID: p.IdempotencyKey, SessionKey: ref.Key, AgentID: agent,
		Method: methodChat, RequestHash: hash, Origin: &w,
		Input: run.Input{
			Message: p.Message, Attachments: files, Thinking: p.Thinking, TimeoutMs: budget(p.TimeoutMs, time.Millisecond),
			SessionID: p.SessionID,
		},
	}, err
}

// mayDeliver refuses replies to a channel that the session's policy denies.
func (g *Gateway) mayDeliver(ctx context.Context, ref session.Ref) error {
	v, err := g.view(ctx, ref)
	if err == nil && v.prefs().SendPolicy == "deny" {
		err = protocol.Invalid("send blocked by session policy")
	}
	return err
}

// chatError is an error of Accept as chat methods answer it.
func chatError(err error) error {
	if _, ok := errors.AsType[*lane.ConflictError](err); ok {
		return protocol.ChatConflict()
	}
	return err
}

// afterSend answers a repeat of chat.send from its record.
func (g *Gateway) afterSend(ctx context.Context, r *Request, acc lane.Accepted, err error) error {
	switch {
	case err != nil:
		return chatError(err)
	case !acc.Repeat && !acc.Stopped:
		return nil
	}
	st := acc.Status
	if acc.Stopped {
		g.tellStopped(ctx, st)
	}
	if acc.Repeat {
		if st, err = g.Notify.Ended(ctx, acc.Status.Ref); err != nil {
			return err
		}
	}
	if st.Outcome == nil {
		return r.Reply(protocol.ChatSent{RunID: st.RunID, Status: protocol.StatusInFlight, Disposition: g.disposition(ctx, st).Wire()})
	}
	switch st.Outcome.Kind {
	case run.Aborted, run.Timeout:
		f := protocol.FinalAborted(st.RunID, st.Outcome.StopReason, st.Outcome.TimeoutPhase, st.Outcome.ProviderStarted, nil)
		f.EndedAt, f.Disposition = st.EndedAt, st.Disposition.Wire()
		return r.Reply(f)
	case run.OK:
		return r.Reply(protocol.ChatSent{RunID: st.RunID, Status: protocol.StatusOK, Disposition: st.Disposition.Wire()})
	case run.Failed:
	}
	return protocol.Unavailable(st.Outcome.Error)
}

// disposition is what has become of a message by now. Where that cannot be read it is
// what its record says.
func (g *Gateway) disposition(ctx context.Context, st run.Status) run.Disposition {
	m, err := session.LoadMeta(ctx, g.Store, session.Ref{Tenant: st.Tenant, Key: st.SessionKey})
	if err != nil {
		return st.Disposition
	}
	return lane.Now(st, m)
}

// chatAbort stops one run, or everything that the session has accepted.
func (g *Gateway) chatAbort(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.ChatAbortParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.SessionKey, p.AgentID)
	if err != nil {
		return err
	}
	ids, _, err := g.stop(ctx, r, ref, p.RunID, protocol.StopRPC)
	if err != nil {
		return err
	}
	return r.Reply(protocol.NewChatAborted(ids...))
}

// stop stops runs, and what they have started, and gives the ids of the runs as their
// callers know them.
func (g *Gateway) stop(ctx context.Context, r *Request, ref session.Ref, runID, reason string) ([]string, offspring, error) {
	ids, err := g.stopOwn(ctx, r, ref, runID, reason)
	if err != nil || runID != "" && len(ids) == 0 {
		return ids, offspring{}, err
	}
	return ids, g.stopChildren(ctx, ref, runID, reason), nil
}

func (g *Gateway) stopOwn(ctx context.Context, r *Request, ref session.Ref, runID, reason string) ([]string, error) {
	q := lane.Stop{Ref: ref, RunID: runID, Reason: reason, ConnectionID: r.Conn.ID, FrameAt: r.frame.At}
	if runID == "" {
		short, err := g.Lanes.StopAll(ctx, q)
		if err != nil {
			return nil, err
		}
		return g.runIDs(ctx, ref.Tenant, short)
	}
	if err := g.mayStop(ctx, r, ref, runID); err != nil {
		return nil, err
	}
	ok, err := g.Lanes.StopRun(ctx, q)
	if err != nil || !ok {
		return nil, err
	}
	return []string{runID}, nil
}

// mayStop refuses a run of another session to a caller who neither is an admin nor
// started it.
func (g *Gateway) mayStop(ctx context.Context, r *Request, ref session.Ref, runID string) error {
	st, err := run.Load(ctx, g.Store, run.RefOf(ref.Tenant, runID))
	if errors.Is(err, run.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	own := st.Origin != nil && st.Origin.ConnectionID == r.Conn.ID
	if ref.Key != "" && st.SessionKey != ref.Key && !own && !r.Admin() {
		return protocol.Invalid("runId does not match sessionKey")
	}
	return nil
}

// runIDs turns short ids into those that callers chose.
func (g *Gateway) runIDs(ctx context.Context, tenant string, short []string) ([]string, error) {
	out := make([]string, 0, len(short))
	for _, s := range short {
		if len(s) > 0 && s[0] != '~' {
			out = append(out, s)
			continue
		}
		st, err := run.Load(ctx, g.Store, run.Ref{Tenant: tenant, Run: s})
		if errors.Is(err, run.ErrUnknown) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, st.RunID)
	}
	return out, nil
}

// chatInject writes an assistant's message without a run: it takes the claim like
// any writer, and waits for it (C4).
func (g *Gateway) chatInject(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.ChatInjectParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.SessionKey, p.AgentID)
	if err != nil {
		return err
	}
	e := transcript.Entry{
		ID: g.NewID(), Type: transcript.Message, At: g.Clock.Now().UnixMilli(), Role: model.Assistant, StopReason: "stop",
		Content: []model.Block{{Type: model.Text, Text: p.Message}}, Provider: "laneway", Model: "gateway-injected", Label: p.Label,
	}
	if _, err := g.knownSession(ctx, ref); err != nil {
		return err
	}
	if err := g.append(ctx, ref, e); err != nil {
		return err
	}
	return r.Reply(protocol.ChatInjected{OK: true, MessageID: e.ID})
}
