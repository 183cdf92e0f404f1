package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/shared/rpc"
	"laneway/shared/token"
)

// client is one end of a connection: it keeps what it is sent.
type client struct {
	w    *world
	t    *testing.T
	id   string
	at   atomic.Int64
	gone func()

	mu     sync.Mutex
	frames []protocol.Frame
	raw    [][]byte
	more   chan struct{}
	closed []int
}

// dial opens a connection that has not said anything.
func (w *world) dial() *client {
	w.t.Helper()
	c := w.plug()
	must(w.t, w.gw.Opened(context.Background(), c.id, ""))
	return c
}

// plug makes a connection that the gateway does not know of.
func (w *world) plug() *client {
	c := &client{w: w, t: w.t, id: "c-" + id.UUID(), more: make(chan struct{})}
	c.at.Store(time.Now().UnixMicro())
	c.gone = w.conns.Register(c.id, c)
	return c
}

// Write and Close make a client the sink of what is posted to it.
func (c *client) Write(_ context.Context, message []byte) error { c.take(message); return nil }

func (c *client) Close(code int, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = append(c.closed, code)
	return nil
}

func (c *client) take(message []byte) {
	f, err := protocol.DecodeFrame(message)
	if err != nil {
		c.t.Errorf("sent what is no frame: %s", message)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames, c.raw = append(c.frames, f), append(c.raw, append([]byte(nil), message...))
	close(c.more)
	c.more = make(chan struct{})
}

// serve gives the gateway a message of the connection, as it came in at a time.
func (c *client) serve(body []byte, at int64) {
	c.w.gw.Serve(context.Background(), &rpc.Frame{
		ConnectionID: c.id, Body: body, At: at, Send: c.take,
		Closing: func(code int, reason string) { _ = c.Close(code, reason) },
	})
}

// post sends a request and gives its id.
func (c *client) post(method string, params any) string {
	return c.postAt(method, params, c.at.Add(1))
}

func (c *client) postAt(method string, params any, at int64) string {
	reqID := fmt.Sprintf("r%d", c.w.frames.Add(1))
	body, err := protocol.AppendRequest(nil, reqID, method, params)
	must(c.t, err)
	c.serve(body, at)
	return reqID
}

// find waits for the n-th frame that is wanted, from 1.
func (c *client) find(what string, n int, want func(*protocol.Frame) bool) protocol.Frame {
	c.t.Helper()
	end := time.After(within)
	seen := 0
	for i := 0; ; {
		c.mu.Lock()
		for ; i < len(c.frames); i++ {
			if want(&c.frames[i]) {
				if seen++; seen == n {
					f := c.frames[i]
					c.mu.Unlock()
					return f
				}
			}
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-end:
			c.t.Fatalf("no frame: %s (%d of %d)\n%s", what, seen, n, c.dump())
		}
	}
}

func (c *client) dump() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, r := range c.raw {
		b.Write(r)
		b.WriteByte('\n')
	}
	return b.String()
}

// answer is the n-th response to a request.
func (c *client) answer(reqID string, n int) protocol.Frame {
	c.t.Helper()
	return c.find("answer "+strconv.Itoa(n)+" to "+reqID, n, func(f *protocol.Frame) bool { return f.Type == "res" && f.ID == reqID })
}

// answers counts the responses to a request.
func (c *client) answers(reqID string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.frames {
		if c.frames[i].Type == "res" && c.frames[i].ID == reqID {
			n++
		}
	}
	return n
}

// call sends a request and waits for its first answer.
func (c *client) call(method string, params any) protocol.Frame {
	c.t.Helper()
	return c.answer(c.post(method, params), 1)
}

// ok is call for a request that must succeed; the payload goes into out.
func (c *client) ok(method string, params, out any) {
	c.t.Helper()
	f := c.call(method, params)
	if !f.OK {
		c.t.Fatalf("%s: %v", method, f.Err)
	}
	into(c.t, f, out)
}

// fails is call for a request that must fail with a code and a piece of the message.
func (c *client) fails(method string, params any, code, message string) *protocol.Error {
	c.t.Helper()
	f := c.call(method, params)
	if f.OK || f.Err == nil || f.Err.Code != code || !strings.Contains(f.Err.Message, message) {
		c.t.Fatalf("%s: ok %v, %v; want %s with %q", method, f.OK, f.Err, code, message)
	}
	return f.Err
}

func into(tb testing.TB, f protocol.Frame, out any) {
	tb.Helper()
	if out != nil {
		if err := json.Unmarshal(f.Payload, out); err != nil {
			tb.Fatalf("%s: %v", f.Payload, err)
		}
	}
}

func hello(secret string, more obj) obj {
	p := obj{
		"minProtocol": 4, "maxProtocol": 4, "auth": obj{"token": secret},
		"client": obj{"id": "test", "version": "1", "platform": "linux", "mode": "cli"},
	}
	maps.Copy(p, more)
	return p
}

type obj = map[string]any

// login is a connection that is ready.
func (w *world) login(secret string, more obj) *client {
	w.t.Helper()
	c := w.dial()
	c.ok("connect", hello(secret, more), nil)
	return c
}

// user is a ready connection of the default tenant with all scopes.
func (w *world) user() *client { return w.login(w.secret, nil) }

// scoped is a ready connection with some scopes only.
func (w *world) scoped(scopes ...string) *client {
	return w.login(w.secret, obj{"scopes": append([]string{}, scopes...)})
}

// stranger is a ready connection of another tenant.
func (w *world) stranger() *client {
	w.t.Helper()
	secret, err := w.tokens.Add(context.Background(), token.Grant{Tenant: "acme"})
	must(w.t, err)
	return w.login(secret, nil)
}
