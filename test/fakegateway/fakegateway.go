// Package fakegateway is a gateway for the tests of clients: a real WebSocket
// server that does what a test scripts, also what no good gateway would do.
//
// Guarantees: requests of one connection are handled one after another, in the
// order in which they came; every request is recorded before it is handled; Close
// (at the end of the test) waits for all handlers.
package fakegateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"laneway/shared/protocol"
)

// Handler answers a request on a connection, in whatever way.
type Handler func(c *Conn, r protocol.Request)

// Gateway is a running server.
type Gateway struct {
	// URL is its ws:// address.
	URL string

	t    *testing.T
	mu   sync.Mutex
	on   map[string]Handler
	seen []protocol.Request
	more chan struct{} // closed and replaced when seen grows
}

// Conn is one client's connection.
type Conn struct {
	t   *testing.T
	ws  *websocket.Conn
	ctx context.Context // the life of the connection
}

// Nonce is the nonce of every challenge, TS its time.
const (
	Nonce = "nonce-of-the-fake"
	TS    = int64(1_796_058_131_523)
)

// New starts a gateway that welcomes everybody and knows no method. A handler for
// "open" runs in place of the challenge, one for "connect" in place of the welcome.
func New(t *testing.T) *Gateway {
	t.Helper()
	g := &Gateway{t: t, on: map[string]Handler{}, more: make(chan struct{})}
	g.On("open", func(c *Conn, _ protocol.Request) {
		c.Event("connect.challenge", protocol.Challenge{Nonce: Nonce, TS: TS})
	})
	g.On("connect", func(c *Conn, r protocol.Request) {
		c.Result(r, protocol.NewHello("fake", "conn-1", nil, nil, []string{"operator.read", "operator.write"}))
	})
	server := httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(server.Close)
	g.URL = "ws" + strings.TrimPrefix(server.URL, "http")
	return g
}

// On sets what happens on a method.
func (g *Gateway) On(method string, h Handler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on[method] = h
}

// Requests are those that came so far, over all connections.
func (g *Gateway) Requests() []protocol.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]protocol.Request(nil), g.seen...)
}

// Await waits for the first request of a method, until the test's context ends.
func (g *Gateway) Await(method string) protocol.Request {
	g.t.Helper()
	for {
		g.mu.Lock()
		for _, r := range g.seen {
			if r.Method == method {
				g.mu.Unlock()
				return r
			}
		}
		more := g.more
		g.mu.Unlock()
		select {
		case <-more:
		case <-g.t.Context().Done():
			g.t.Fatalf("no %s came", method)
		}
	}
}

func (g *Gateway) handler(method string) Handler {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.on[method]
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the client went away
	}
	defer ws.CloseNow()
	ws.SetReadLimit(32 << 20)
	c := &Conn{t: g.t, ws: ws, ctx: r.Context()}
	g.handler("open")(c, protocol.Request{})
	for {
		_, message, err := ws.Read(r.Context())
		if err != nil {
			return
		}
		req, err := protocol.DecodeRequest(message)
		if err != nil {
			g.t.Errorf("the client sent %s: %v", message, err)
			return
		}
		h := g.handler(req.Method)
		g.mu.Lock()
		g.seen = append(g.seen, req)
		close(g.more)
		g.more = make(chan struct{})
		g.mu.Unlock()
		if h == nil {
			c.Error(req, protocol.UnknownMethod(req.Method))
			continue
		}
		h(c, req)
	}
}

// Result answers a request.
func (c *Conn) Result(r protocol.Request, payload any) {
	b, err := protocol.AppendResult(nil, r.ID, payload)
	if err != nil {
		c.t.Errorf("result: %v", err)
	}
	c.Raw(b)
}

// Error refuses a request.
func (c *Conn) Error(r protocol.Request, e *protocol.Error) {
	c.Raw(protocol.AppendError(nil, r.ID, e))
}

// Failure refuses a request, with a payload beside the error.
func (c *Conn) Failure(r protocol.Request, payload any, e *protocol.Error) {
	c.Raw(protocol.AppendFailure(nil, r.ID, payload, e))
}

// Event sends an event.
func (c *Conn) Event(name string, payload any) {
	b, err := protocol.AppendEvent(nil, name, payload)
	if err != nil {
		c.t.Errorf("event: %v", err)
	}
	c.Raw(b)
}

// Raw sends a message as it is. That the client has gone is no failure.
func (c *Conn) Raw(message []byte) {
	_ = c.ws.Write(c.ctx, websocket.MessageText, message)
}

// Close ends the connection with a code and a reason.
func (c *Conn) Close(code int, reason string) {
	_ = c.ws.Close(websocket.StatusCode(code), reason)
}

// Drop ends the connection without a word.
func (c *Conn) Drop() { _ = c.ws.CloseNow() }

// Params decodes a request's params into out.
func Params[T any](t *testing.T, r protocol.Request) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(r.Params, &out); err != nil {
		t.Fatalf("params of %s: %v", r.Method, err)
	}
	return out
}
