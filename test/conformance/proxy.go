// Package conformance judges the gateway by what others made: the stock command
// line, the reference client, and the published schema of the protocol.
//
// Guarantees: the proxy passes every message on unchanged and in order, in both
// directions, and has recorded it before it does; a frame for which nothing is
// known is a finding, so that a new method cannot go unjudged.
//
// The suites need programs from npm; scripts/conformance.sh installs them and says
// where they are. Without that the tests are skipped by name.
package conformance

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Message is one message that passed the proxy.
type Message struct {
	At         time.Time
	Conn       int // from 1, in the order of the connections
	FromServer bool
	Data       []byte
}

// Proxy stands between clients and a gateway.
type Proxy struct {
	// URL is where clients connect.
	URL string

	target string
	server *httptest.Server
	ctx    context.Context // its end ends all connections
	cancel context.CancelFunc

	mu       sync.Mutex
	conns    int
	messages []Message
	changed  chan struct{} // closed and replaced at each message
}

// maxMessage is larger than any frame that a gateway may send.
const maxMessage = 64 << 20

// StartProxy stands in front of the gateway at target, a ws:// address.
func StartProxy(target string) *Proxy {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{target: target, ctx: ctx, cancel: cancel, changed: make(chan struct{})}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	p.URL = "ws" + strings.TrimPrefix(p.server.URL, "http")
	return p
}

// Close ends all connections and waits for them.
func (p *Proxy) Close() {
	p.cancel()
	p.server.Close()
}

// Messages are those that passed so far, in order.
func (p *Proxy) Messages() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Message(nil), p.messages...)
}

// Reset forgets the messages.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = nil
}

// Await waits for a message that ok accepts.
func (p *Proxy) Await(ctx context.Context, ok func(Message) bool) (Message, error) {
	seen := 0
	for {
		p.mu.Lock()
		messages, changed := p.messages, p.changed
		p.mu.Unlock()
		for ; seen < len(messages); seen++ {
			if ok(messages[seen]) {
				return messages[seen], nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	front, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // browsers send an Origin of their own
	if err != nil {
		return
	}
	defer front.CloseNow()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	path := r.URL.Path
	if path == "/" {
		path = ""
	}
	back, _, err := websocket.Dial(ctx, p.target+path, nil)
	if err != nil {
		front.Close(websocket.StatusBadGateway, "the gateway cannot be reached")
		return
	}
	defer back.CloseNow()
	front.SetReadLimit(maxMessage)
	back.SetReadLimit(maxMessage)
	p.mu.Lock()
	p.conns++
	n := p.conns
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(ctx, n, true, back, front) })
	both.Go(func() { p.pass(ctx, n, false, front, back) })
	both.Wait()
}

// pass moves messages from one side to the other until one of them ends, and hands
// the end on with its code.
func (p *Proxy) pass(ctx context.Context, conn int, fromServer bool, from, to *websocket.Conn) {
	for {
		kind, data, err := from.Read(ctx)
		if err != nil {
			code, reason := websocket.StatusNormalClosure, ""
			if ce, ok := errors.AsType[websocket.CloseError](err); ok && ce.Code != websocket.StatusNoStatusRcvd && ce.Code != websocket.StatusAbnormalClosure {
				code, reason = ce.Code, ce.Reason
			}
			to.Close(code, reason)
			return
		}
		p.record(Message{At: time.Now(), Conn: conn, FromServer: fromServer, Data: data})
		if to.Write(ctx, kind, data) != nil {
			from.CloseNow()
			return
		}
	}
}

func (p *Proxy) record(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, m)
	close(p.changed)
	p.changed = make(chan struct{})
}
