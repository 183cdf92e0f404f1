package rpc

import (
	"context"
	"errors"
	"slices"
	"time"

	"laneway/shared/connection"
	"laneway/shared/protocol"
	"laneway/shared/token"
)

// allScopes is what a token without a list grants.
var allScopes = []string{
	protocol.ScopeAdmin, protocol.ScopeRead, protocol.ScopeWrite, protocol.ScopeApprovals,
	protocol.ScopeQuestions, protocol.ScopePairing, protocol.ScopeTalk,
}

// methodConnect is the first request of every connection, and never another one.
const methodConnect = "connect"

// events lists the events that are sent.
var events = []string{
	protocol.EventChallenge, protocol.EventTick, protocol.EventAgent, protocol.EventChat, protocol.EventShutdown, protocol.EventSessionsChanged, protocol.EventDisposition,
	protocol.EventSessionState, protocol.EventSessionLongRunning, protocol.EventSessionStalled, protocol.EventSessionStuck,
	protocol.EventRecoveryRequested, protocol.EventRecoveryCompleted,
}

// first serves messages of a connection that has not been let in: one connect, and
// whatever else ends it.
func (g *Gateway) first(ctx context.Context, f *Frame, req protocol.Request, err error) {
	if len(f.Body) > protocol.MaxFirstMessage {
		f.Closing(protocol.CloseTooBig, "message too large")
		return
	}
	if errors.Is(err, protocol.ErrNotJSON) {
		f.Closing(protocol.CloseNormal, "")
		return
	}
	if err != nil {
		f.Closing(protocol.ClosePolicy, "invalid request frame")
		return
	}
	if req.Method != methodConnect {
		g.refuse(f, req.ID, protocol.ConnectFirst(), protocol.ClosePolicy)
		return
	}
	hello, code, err := g.connect(ctx, f, req)
	if errors.Is(err, connection.ErrState) {
		// Two at once: the other one let the client in.
		f.Send(protocol.AppendError(nil, req.ID, protocol.ConnectOnce()))
		return
	}
	if err != nil {
		g.refuse(f, req.ID, g.wire(err), code)
		return
	}
	b, err := protocol.AppendResult(nil, req.ID, hello)
	if err != nil {
		g.refuse(f, req.ID, protocol.Internal(), protocol.ClosePolicy)
		return
	}
	f.Send(b)
}

func (g *Gateway) refuse(f *Frame, id string, e *protocol.Error, code int) {
	f.Send(protocol.AppendError(nil, id, e))
	f.Closing(code, e.Message)
}

// connect lets a client in: version, role, credential, device proof, then the one
// step from pending to ready (K1).
func (g *Gateway) connect(ctx context.Context, f *Frame, req protocol.Request) (protocol.HelloOK, int, error) {
	var none protocol.HelloOK
	p, perr := protocol.Decode[protocol.ConnectParams]("connect", req.Params)
	if perr != nil {
		return none, protocol.ClosePolicy, perr
	}
	if !p.Speaks() {
		return none, protocol.CloseProtocolError, protocol.VersionMismatch(p.MinProtocol, p.MaxProtocol)
	}
	if p.Role != "" && p.Role != protocol.RoleOperator {
		return none, protocol.ClosePolicy, protocol.InvalidRole()
	}
	row, err := g.Connections.Load(ctx, f.ConnectionID)
	if err != nil {
		return none, protocol.ClosePolicy, err
	}
	if p.Secret() == "" {
		return none, protocol.ClosePolicy, protocol.TokenMissing()
	}
	grant, err := g.Auth.Check(ctx, p.Secret())
	if errors.Is(err, token.ErrUnknown) {
		// Slow enough that guessing is hopeless, quick enough for a person's typo.
		select {
		case <-ctx.Done():
		case <-g.Clock.After(250 * time.Millisecond):
		}
		return none, protocol.ClosePolicy, protocol.TokenMismatch()
	}
	if err != nil {
		return none, protocol.ClosePolicy, err
	}
	device := ""
	if p.Device != nil {
		if err := protocol.VerifyDevice(&p, row.Nonce, g.Clock.Now()); err != nil {
			return none, protocol.ClosePolicy, protocol.DeviceRefused(err)
		}
		device = p.Device.ID
	}
	scopes := granted(grant, p.Scopes)
	who := connection.Principal{Tenant: grant.Tenant, Role: protocol.RoleOperator, Scopes: scopes, DeviceID: device, Name: grant.Name}
	if !grant.Fixed {
		who.Token = grant.ID
	}
	client := connection.Client{ID: p.Client.ID, Mode: p.Client.Mode, Caps: p.Caps, Protocol: protocol.Version}
	if err := g.Connections.Ready(ctx, f.ConnectionID, who, client); err != nil {
		return none, protocol.ClosePolicy, err
	}
	return g.hello(f.ConnectionID, scopes), 0, nil
}

// granted is what was asked for and may be had; a client that asks for nothing in
// particular gets what its token allows.
func granted(g token.Grant, asked []string) []string {
	allowed := g.Scopes
	if len(allowed) == 0 {
		allowed = allScopes
	}
	if asked == nil {
		return allowed
	}
	out := []string{}
	for _, s := range asked {
		if protocol.ScopeSatisfied(allowed, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (g *Gateway) hello(connectionID string, scopes []string) protocol.HelloOK {
	h := protocol.NewHello(g.Version, connectionID, g.listed, events, scopes)
	h.Snapshot.UptimeMs = g.Clock.Now().Sub(g.started).Milliseconds()
	h.Snapshot.SessionDefaults = &protocol.SessionDefaults{
		DefaultAgentID: "main", MainKey: "main", MainSessionKey: "agent:main:main", Scope: "per-sender",
	}
	h.Policy.MaxPayload = g.MaxPayload
	if g.TickInterval > 0 {
		h.Policy.TickIntervalMs = g.TickInterval.Milliseconds()
	}
	return h
}

func (g *Gateway) basics() map[string]handler {
	return map[string]handler{
		methodConnect: func(context.Context, *Request) error { return protocol.ConnectOnce() },
		"health":      g.health,
		"status":      g.status,
	}
}

func (g *Gateway) health(_ context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.HealthParams](r.Method, r.Params); err != nil {
		return err
	}
	now := g.Clock.Now()
	return r.Reply(map[string]any{
		"ok": true, "ts": now.UnixMilli(), "durationMs": 0, "defaultAgentId": "main",
		"uptimeMs": now.Sub(g.started).Milliseconds(),
	})
}

func (g *Gateway) status(ctx context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.StatusParams](r.Method, r.Params); err != nil {
		return err
	}
	agents, err := g.Directory.Agents(ctx, r.Tenant())
	if err != nil {
		return err
	}
	ids := make([]string, len(agents))
	for i, a := range agents {
		ids[i] = a.ID
	}
	return r.Reply(map[string]any{
		"runtimeVersion": g.Version, "protocol": protocol.Version, "agents": ids, "defaultAgentId": "main",
		"uptimeMs": g.Clock.Now().Sub(g.started).Milliseconds(),
	})
}
