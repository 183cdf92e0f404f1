// Package rpc serves the methods of the gateway protocol: it turns frames into
// calls on the durable core and answers with frames.
//
// Guarantees: every request that is a valid frame is answered, also where a handler
// fails or panics; an answer is a valid frame and says no more than its caller may
// know; whatever a caller names is looked up under the tenant of its principal
// (K2); the reply "accepted" never precedes the transaction that makes it true (A2).
package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sort"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/cron"
	"laneway/shared/diag"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/notify"
	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/queueing"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/token"
	"laneway/shared/transcript"
	"laneway/shared/upload"
)

// Auth finds what a credential grants; token.ErrUnknown where nothing.
type Auth interface {
	Check(ctx context.Context, secret string) (token.Grant, error)
}

// Agent is a configured agent.
type Agent struct {
	ID, Name, Workspace string
	Provider, Model     string // of runs that name none
	ContextTokens       int64
	Fallbacks           []string // provider/id: what takes the model's place
	Thinking            string   // level of runs that name none; empty: the provider's
}

// Directory knows agents and models.
type Directory interface {
	Agents(ctx context.Context, tenant string) ([]Agent, error)
	Models(ctx context.Context, tenant string) ([]model.Info, error)
}

// Config of a Gateway. Fields without a note are required.
type Config struct {
	Store       table.Store
	Connections *connection.Service
	Lanes       *lane.Service
	Claims      *claim.Service
	Notify      *notify.Service
	Log         *transcript.Log
	Auth        Auth
	Directory   Directory
	Files       *upload.Service       // nil: files of messages are refused
	Jobs        *cron.Service         // nil: there are no scheduled runs
	Ender       Ender                 // nil: stopped runs of dead holders wait for a wake-up
	Children    Children              // nil: runs start no others
	Dead        queue.DeadLetterStore // nil: dead letters are not reached from here

	Clock        clock.Clock       // nil: the machine's
	NewID        id.Source         // nil: UUIDs
	Logger       *slog.Logger      // nil: the default logger
	Version      string            // of the server, in hello-ok
	MaxPayload   int64             // bytes of a frame that clients may send; 0: protocol.MaxMessageIn
	MaxReply     int               // bytes of a frame that is sent; 0: protocol.MaxFrameOut
	TickInterval time.Duration     // told in hello-ok; 0: the protocol's default
	BusyWait     time.Duration     // how long a command waits for a session's claim; 0: the claim's
	Reset        session.Resets    // when sessions start over by themselves
	Queue        queueing.Settings // of sessions that say nothing
	Inbound      queueing.Inbound  // how long texts wait for more of their sender; zero: not
	Diagnostics  diag.Thresholds
}

// Gateway serves connections.
type Gateway struct {
	Config
	cache   connection.Cache
	methods map[string]handler
	listed  []string
	started time.Time
}

// handler serves one method. It answers through r.
type handler func(ctx context.Context, r *Request) error

// New checks c and builds the method table.
func New(c Config) (*Gateway, error) {
	if c.Store == nil || c.Connections == nil || c.Lanes == nil || c.Claims == nil || c.Notify == nil || c.Log == nil || c.Auth == nil || c.Directory == nil {
		return nil, errors.New("rpc: store, connections, lanes, claims, notify, log, auth and directory are required")
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.NewID == nil {
		c.NewID = id.UUID
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = protocol.MaxMessageIn
	}
	if c.MaxReply == 0 {
		c.MaxReply = protocol.MaxFrameOut
	}
	g := &Gateway{Config: c, started: c.Clock.Now()}
	g.cache.Service = c.Connections
	g.methods = map[string]handler{}
	for _, family := range []map[string]handler{g.basics(), g.agentMethods(), g.chatMethods(), g.sessionMethods(), g.listMethods(), g.cronMethods(), g.diagMethods()} {
		maps.Copy(g.methods, family)
	}
	for name := range g.methods {
		m, ok := protocol.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("rpc: method %s is not in the protocol", name)
		}
		if !m.Hidden {
			g.listed = append(g.listed, name)
		}
	}
	sort.Strings(g.listed)
	return g, nil
}

// Frame is a message that came in on a connection.
type Frame struct {
	ConnectionID string
	Callback     string // management endpoint of the connection; empty on one machine
	Body         []byte
	At           int64 // µs, growing on a connection where its order is known: for K1
	// Send puts a frame on the connection, now; it must not block for long. On AWS it
	// keeps the frame for the route response.
	Send func(frame []byte)
	// Closing asks for the end of the connection after what was sent.
	Closing func(code int, reason string)
}

// Request is a call that is being served.
type Request struct {
	protocol.Request
	Conn  connection.Row
	frame *Frame
}

// Reply answers ok with a payload.
func (r *Request) Reply(payload any) error {
	b, err := protocol.AppendResult(nil, r.ID, payload)
	if err != nil {
		return err
	}
	r.frame.Send(b)
	return nil
}

// Tenant owns what the request names.
func (r *Request) Tenant() string { return r.Conn.Tenant }

// Admin says whether the caller may do everything.
func (r *Request) Admin() bool {
	return protocol.ScopeSatisfied(r.Conn.Scopes, protocol.ScopeAdmin)
}

// waiter is the caller as somebody who waits.
func (r *Request) waiter(kind string) run.Waiter {
	return run.Waiter{ConnectionID: r.Conn.ID, Callback: r.frame.Callback, RequestID: r.ID, Kind: kind}
}

// Opened records a new connection and arranges its greeting.
func (g *Gateway) Opened(ctx context.Context, connectionID, callback string) error {
	row := connection.Row{ID: connectionID, Callback: callback, Nonce: g.NewID()}
	if err := g.Connections.Open(ctx, row); err != nil {
		return err
	}
	return g.Notify.Greet(ctx, row.Target(), row.Nonce)
}

// Closed forgets a connection. Its runs go on.
func (g *Gateway) Closed(ctx context.Context, connectionID string) error {
	g.cache.Drop(connectionID)
	return g.Connections.Close(ctx, connectionID)
}

// Serve handles one message of a connection. What it has to say goes through the
// frame's functions; it never fails.
func (g *Gateway) Serve(ctx context.Context, f *Frame) {
	req, err := protocol.DecodeRequest(f.Body)
	defer func() {
		if p := recover(); p != nil {
			// The value of a panic may hold what a caller sent: only its place is logged.
			g.Logger.Error("handler panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			f.Send(protocol.AppendError(nil, req.ID, protocol.Internal()))
		}
	}()
	row, rerr := g.row(ctx, f)
	switch {
	case errors.Is(rerr, connection.ErrState):
		g.first(ctx, f, req, err)
		return
	case errors.Is(rerr, connection.ErrRevoked):
		e := protocol.TokenMismatch()
		f.Send(protocol.AppendError(nil, req.ID, e))
		f.Closing(protocol.CloseAuthChanged, e.Message)
		return
	case errors.Is(err, protocol.ErrNotJSON):
		return // clients that know the protocol never send it, and nobody waits
	case rerr != nil:
		err = rerr
	case err == nil:
		err = g.dispatch(ctx, &Request{Request: req, Conn: row, frame: f})
	}
	if err != nil {
		f.Send(protocol.AppendError(nil, req.ID, g.wire(err)))
	}
}

// row finds the connection's record. The first frame may come before the record of
// $connect is visible (F30e): it is looked for a little longer.
func (g *Gateway) row(ctx context.Context, f *Frame) (connection.Row, error) {
	for n := 0; ; n++ {
		row, err := g.cache.Get(ctx, f.ConnectionID)
		if !errors.Is(err, connection.ErrGone) || n == 10 {
			return row, err
		}
		if serr := clock.Sleep(ctx, g.Clock, 50*time.Millisecond); serr != nil {
			return row, serr
		}
	}
}

func (g *Gateway) dispatch(ctx context.Context, r *Request) error {
	h, ok := g.methods[r.Method]
	if !ok {
		return protocol.UnknownMethod(r.Method)
	}
	m, _ := protocol.Lookup(r.Method)
	if !protocol.ScopeSatisfied(r.Conn.Scopes, m.Scope) {
		return protocol.MissingScope(m.Scope)
	}
	return h(ctx, r)
}

// wire is an error as its caller may see it; what is not meant for callers is
// logged and answered as internal.
func (g *Gateway) wire(err error) *protocol.Error {
	var full *lane.CapError
	switch {
	case errors.As(err, &full):
		return protocol.Invalid(fmt.Sprintf("the queue of this session is full: its cap is %d", full.Cap)).With("reason", "queue-cap-new")
	case errors.Is(err, lane.ErrFull):
		return protocol.QueueFull()
	case errors.Is(err, lane.ErrUnavailable), errors.Is(err, table.ErrThrottled), errors.Is(err, table.ErrConflict), errors.Is(err, table.ErrUnknown):
		return protocol.Unavailable("the store is busy; try again").Retry(time.Second)
	case errors.Is(err, claim.ErrBusy):
		return protocol.SessionBusy()
	case errors.Is(err, session.ErrKey):
		return protocol.Invalid("invalid sessionKey: " + err.Error())
	case errors.Is(err, table.ErrTooLarge):
		return protocol.Invalid("the message is too large")
	case errors.Is(err, connection.ErrState):
		return protocol.ConnectOnce()
	case errors.Is(err, connection.ErrGone):
		return protocol.Unavailable("the connection is gone")
	case errors.Is(err, connection.ErrTooMany):
		return protocol.Invalid(fmt.Sprintf("too many subscriptions: at most %d a connection", connection.MaxSubscriptions))
	}
	e := protocol.AsError(err)
	if e.Code == protocol.CodeUnavailable && !e.Retryable {
		g.Logger.Error("request failed", "err", err)
	}
	return e
}

// sessionRef is the session that a caller named, canonical and under its tenant.
func (g *Gateway) sessionRef(ctx context.Context, r *Request, rawKey, agentID string) (session.Ref, string, error) {
	key, agent, err := session.Key(rawKey, agentID)
	if err != nil {
		return session.Ref{}, "", err
	}
	if err := g.known(ctx, r, agent); err != nil {
		return session.Ref{}, "", err
	}
	return session.Ref{Tenant: r.Tenant(), Key: key}, agent, nil
}

func (g *Gateway) known(ctx context.Context, r *Request, agentID string) error {
	agents, err := g.Directory.Agents(ctx, r.Tenant())
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.ID == agentID {
			return nil
		}
	}
	return protocol.UnknownAgent(r.Method, agentID)
}
