package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
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
	files, err := g.attached(ctx, r, p.Attachments)
	if err != nil {
		return err
	}
	return g.say(ctx, r, message{ref: ref, agent: agent, hash: hash, ChatSendParams: p, files: files})
}

// message is what is said into a session, and answered by chat events.
type message struct {
	*protocol.ChatSendParams

	ref         session.Ref
	agent, hash string
	files       json.RawMessage // stored
	cwd         string
	made        *protocol.SessionChanged // the reply to a message that a session was made with
}

// say accepts a message, or does what it asks for. What may refuse it comes before
// anything that it changes.
func (g *Gateway) say(ctx context.Context, r *Request, m message) error {
	a := asked{text: m.Message}
	if !m.SuppressCommandInterpretation && (strings.Contains(m.Message, "/") || isStop(m.Message)) {
		_, known, err := g.recorded(ctx, m.ref.Tenant, m.IdempotencyKey)
		if err == nil && !known {
			a, err = g.read(ctx, r, m.ref, m.Message, len(m.Attachments) > 0)
		}
		if err != nil {
			return err
		}
	}
	if m.Deliver && !a.stop && !a.alone {
		if err := g.mayDeliver(ctx, m.ref); err != nil {
			return err
		}
	}
	switch {
	case a.stop:
		ids, _, err := g.stop(ctx, r, m.ref, "", stopStop)
		if err != nil {
			return err
		}
		return m.answer(r, protocol.NewChatAborted(ids...), false)
	case a.alone:
		return g.sayAlone(ctx, r, m, &a)
	case a.reason != "":
		if err := g.resetBefore(ctx, m.ref, m.IdempotencyKey, a.reason); err != nil {
			return err
		}
	}
	st := m.run(r, &a)
	if err := g.freshen(ctx, m.ref, &st.Input); err != nil {
		return err
	}
	var card *run.Status
	call := lane.Call{
		Run: st, ConnectionID: r.Conn.ID, FrameAt: r.frame.At, Gather: g.gather(&m, &a),
		Rules: func(ctx context.Context) (lane.Rules, error) {
			rules, err := g.rules(ctx, m.ref, m.QueueMode, a.queue)
			if st.Input.ResetReason != "" && rules.Mode == lane.Steer {
				rules.Mode = lane.Followup // not into a job's run, whose transcript is the old one
			}
			return rules, err
		},
		Accepted: func(acc lane.Accepted) {
			st := acc.Status
			if err := m.answer(r, protocol.ChatSent{RunID: st.RunID, Status: protocol.StatusStarted, Interrupted: acc.Interrupted, Disposition: st.Disposition.Wire()}, true); err != nil {
				g.Logger.Error("reply not encoded", "err", err)
				r.frame.Send(protocol.AppendError(nil, r.ID, protocol.Internal()))
			}
			if card != nil {
				g.tellCard(r, *card)
			}
			g.acknowledge(ctx, r, st)
		},
	}
	if len(a.changes) > 0 || a.answer != "" {
		call.With = func(ctx context.Context) (ops []table.Op, err error) {
			card, ops, err = g.beside(ctx, m, &a)
			return ops, err
		}
	}
	acc, err := g.Lanes.Accept(ctx, call)
	g.Notify.Receipts(ctx, m.ref.Tenant, m.ref.Key, acc.Changed)
	if err == nil && len(a.changes) > 0 && !acc.Repeat && !acc.Stopped {
		g.announce(ctx, m.ref, "patch")
	}
	if m.made != nil && err == nil {
		if acc.Repeat || acc.Stopped {
			return r.Reply(m.made)
		}
		return nil
	}
	return g.afterSend(ctx, r, acc, err)
}

// gather is how long a message waits for more of its sender (spec: runtime 2.8): a text
// that says nothing of itself. Files, commands and what is said of one message alone
// let nothing wait, nor does the message that a session is made with.
func (g *Gateway) gather(m *message, a *asked) time.Duration {
	if m.made != nil || a.text != m.Message || len(m.Attachments) > 0 || m.QueueMode != "" || m.Thinking != "" || m.SessionID != "" || m.FastMode != nil || m.TimeoutMs != nil {
		return 0
	}
	return g.Inbound.For(session.PlaceOf(m.ref.Key).Channel)
}

// answer replies to a message: with a payload, or with the session that it was made
// with. started says whether a run is known by the message's key.
func (m *message) answer(r *Request, payload any, started bool) error {
	if m.made == nil {
		return r.Reply(payload)
	}
	if m.made.RunStarted = &started; !started {
		m.made.RunID = ""
	}
	return r.Reply(m.made)
}

// sayAlone answers a message of nothing but commands: the reply, and the one event of
// its run.
func (g *Gateway) sayAlone(ctx context.Context, r *Request, m message, a *asked) error {
	st, again, err := g.answerAlone(ctx, m.ref, caller{methodChat, m.IdempotencyKey, m.hash}, a)
	switch {
	case err != nil:
		return err
	case again && m.made == nil:
		return g.afterSend(ctx, r, lane.Accepted{Status: st, Repeat: true}, conflict(st, m.hash))
	case again && conflict(st, m.hash) != nil:
		return protocol.ChatConflict()
	}
	if m.made != nil { // as it is by now
		if *m.made, err = g.changed(ctx, m.ref, protocol.SessionChanged{RunID: m.IdempotencyKey}); err != nil {
			return err
		}
	}
	if err := m.answer(r, protocol.ChatSent{RunID: st.RunID, Status: protocol.StatusStarted}, true); err != nil || again {
		return err
	}
	g.tellCard(r, st)
	return nil
}

// methodChat is the method of runs that tell what comes of them as chat events.
const methodChat = "chat.send"

// run is the record of a run for a message.
func (m *message) run(r *Request, a *asked) run.Status {
	w := r.waiter(run.WaitNone)
	st := run.Status{
		Ref: run.RefOf(m.ref.Tenant, m.IdempotencyKey), RunID: m.IdempotencyKey, SessionKey: m.ref.Key, AgentID: m.agent,
		Method: methodChat, RequestHash: m.hash, Origin: &w, Token: r.Conn.Token,
		Input: run.Input{
			Message: a.text, Attachments: m.files, Thinking: m.Thinking, TimeoutMs: budget(m.TimeoutMs, time.Millisecond),
			Cwd: m.cwd, SessionID: m.SessionID,
		},
	}
	if m.FastMode != nil {
		st.Input.Fast = fastMode(*m.FastMode)
	}
	a.levels.apply(&st.Input)
	return st
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
		Content: []model.Block{{Type: model.Text, Text: p.Message}}, Provider: transcript.GatewayProvider, Model: transcript.GatewayModel, Label: p.Label,
	}
	if _, err := g.knownSession(ctx, ref); err != nil {
		return err
	}
	if err := g.append(ctx, ref, e); err != nil {
		return err
	}
	return r.Reply(protocol.ChatInjected{OK: true, MessageID: e.ID})
}
