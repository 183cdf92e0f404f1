package local

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/coder/websocket"

	"laneway/functions/adapter"
	"laneway/shared/id"
	"laneway/shared/protocol"
)

// front is what API Gateway is on AWS: it takes WebSocket connections and hands
// their events to the socket adapter.
type front struct {
	s   *Server
	ctx context.Context //nolint:containedctx // the life of the server: its end stops all connections

	mu    sync.Mutex
	conns map[*socket]struct{}
	wg    sync.WaitGroup
	done  bool
}

func newFront(ctx context.Context, s *Server) *front {
	return &front{s: s, ctx: ctx, conns: make(map[*socket]struct{})}
}

// connectWithin is how long a client has to say hello.
const connectWithin = 15 * time.Second

// pingEvery is how often a connection is pinged, as the stock gateway does.
const pingEvery = 25 * time.Second

// ServeHTTP upgrades a request on any path.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if r.URL.Path == "/health" || r.URL.Path == "/healthz" {
			_, _ = w.Write([]byte("ok\n"))
			return
		}
		if strings.HasPrefix(r.URL.Path, uploadPath) {
			f.s.uploads.ServeHTTP(w, r)
			return
		}
		if f.s.peers != nil && strings.HasPrefix(r.URL.Path, peerPath) {
			f.s.peers.ServeHTTP(w, r)
			return
		}
		http.Error(w, "Laneway gateway: connect with a WebSocket client.", http.StatusUpgradeRequired)
		return
	}
	// Browsers send an Origin; what protects this door is the token, not the origin.
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true})
	if err != nil {
		return
	}
	c := &socket{f: f, ws: ws, id: id.UUID()}
	if !f.add(c) {
		_ = ws.Close(websocket.StatusServiceRestart, "service restart")
		return
	}
	defer f.remove(c)
	c.serve()
}

func (f *front) add(c *socket) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return false
	}
	f.conns[c] = struct{}{}
	f.wg.Add(1)
	return true
}

func (f *front) remove(c *socket) {
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	f.wg.Done()
}

// shutdown tells every client that the server ends, and ends their connections.
func (f *front) shutdown() {
	f.mu.Lock()
	f.done = true
	conns := make([]*socket, 0, len(f.conns))
	for c := range f.conns {
		conns = append(conns, c)
	}
	f.mu.Unlock()
	bye, err := protocol.AppendEvent(nil, protocol.EventShutdown, protocol.Shutdown{Reason: "gateway stopping"})
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			last, cancel := context.WithTimeout(context.Background(), shutdown)
			defer cancel()
			if err == nil {
				_ = c.Write(last, bye)
			}
			_ = c.ws.Close(websocket.StatusServiceRestart, "service restart")
		})
	}
	wg.Wait()
}

func (f *front) wait() { f.wg.Wait() }

// event is what API Gateway would say about a frame.
func (c *socket) event(kind, body string, at int64) events.APIGatewayWebsocketProxyRequest {
	return events.APIGatewayWebsocketProxyRequest{
		RequestContext: events.APIGatewayWebsocketProxyRequestContext{
			ConnectionID: c.id, EventType: kind, RouteKey: "$default", RequestTimeEpoch: at,
		},
		Body: body,
	}
}

// forget ends the connection's record, also where the server's context has ended.
func (c *socket) forget() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.f.ctx), shutdown)
	defer cancel()
	if err := c.f.s.socket.Serve(ctx, c.event("DISCONNECT", "", 0), adapter.Out{}); err != nil {
		c.f.s.cfg.Log.Warn("connection not forgotten", "err", err)
	}
}
