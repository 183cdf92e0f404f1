package local

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"laneway/functions/adapter"
	"laneway/shared/protocol"
)

// maxParallel bounds the frames of one connection that are served side by side;
// beyond it the connection is not read, and the client's sends wait.
const maxParallel = 256

// socket is one connection.
type socket struct {
	f  *front
	ws *websocket.Conn
	id string

	ready  atomic.Bool  // hello was sent
	last   int64        // µs of the last frame; of the reading goroutine
	active atomic.Int64 // ns of the last frame in either direction
}

// Write implements the registry's sink, and is the only way to send.
func (c *socket) Write(ctx context.Context, message []byte) error {
	c.active.Store(time.Now().UnixNano())
	return c.ws.Write(ctx, websocket.MessageText, message)
}

// Close implements the registry's sink.
func (c *socket) Close(code int, reason string) error {
	if len(reason) > 120 {
		reason = reason[:120] // a close frame takes 123 bytes
	}
	return c.ws.Close(websocket.StatusCode(code), reason)
}

// serve reads frames until the connection ends, then waits for what it started.
func (c *socket) serve() {
	limits := c.f.s.cfg.Limits
	ctx, cancel := context.WithCancel(c.f.ctx)
	defer cancel()
	c.active.Store(time.Now().UnixNano())
	c.ws.SetReadLimit(limits.First)
	unregister := c.f.s.conns.Register(c.id, c)
	defer unregister()
	if err := c.f.s.socket.Serve(ctx, c.event("CONNECT", "", 0), adapter.Out{}); err != nil {
		c.f.s.cfg.Log.Error("connection not recorded", "err", err)
		_ = c.ws.Close(websocket.StatusInternalError, "not recorded")
		return
	}
	defer c.forget()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { c.keep(ctx, limits) })
	slots := make(chan struct{}, maxParallel)
	var order sequence
	for {
		kind, body, err := c.ws.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			continue
		}
		now := time.Now()
		c.active.Store(now.UnixNano())
		c.last = max(c.last+1, now.UnixMicro())
		at := c.last
		enter, leave := unordered, func() {}
		if key, ok := orderKey(body); ok && !limits.Parallel {
			enter, leave = order.next(key)
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			defer leave()
			enter()
			c.frame(ctx, body, at)
		})
	}
}

// frame serves one message.
func (c *socket) frame(ctx context.Context, body []byte, at int64) {
	out := adapter.Out{
		Send: func(frame []byte) {
			if !c.ready.Load() && bytes.Contains(frame, []byte(`"type":"hello-ok"`)) {
				c.ready.Store(true)
				c.ws.SetReadLimit(c.f.s.cfg.Limits.Message)
			}
			last, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			if err := c.Write(last, frame); err != nil && ctx.Err() == nil {
				_ = c.ws.CloseNow()
			}
		},
		Closing: func(code int, reason string) { _ = c.Close(code, reason) },
	}
	if err := c.f.s.socket.Serve(ctx, c.event("MESSAGE", string(body), at), out); err != nil {
		c.f.s.cfg.Log.Error("frame not served", "err", err)
	}
}

// keep watches over the connection: hello in time, pings, ticks, idle time and age.
func (c *socket) keep(ctx context.Context, l Limits) {
	begun := time.Now()
	hello := time.After(connectWithin)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	tick := time.NewTicker(protocol.DefaultTickIntervalMs * time.Millisecond / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hello:
			if !c.ready.Load() {
				_ = c.ws.Close(websocket.StatusNormalClosure, "")
				return
			}
		case <-ping.C:
			now := time.Now()
			idle := now.Sub(time.Unix(0, c.active.Load()))
			if l.Life > 0 && now.Sub(begun) > l.Life || l.Idle > 0 && idle > l.Idle {
				_ = c.ws.Close(websocket.StatusGoingAway, "Going away")
				return
			}
			pctx, cancel := context.WithTimeout(ctx, pingEvery)
			err := c.ws.Ping(pctx)
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				_ = c.ws.CloseNow()
				return
			}
		case <-tick.C:
			if !c.ready.Load() {
				continue
			}
			b, err := protocol.AppendEvent(nil, protocol.EventTick, protocol.Tick{TS: time.Now().UnixMilli()})
			if err == nil {
				_ = c.Write(ctx, b)
			}
		}
	}
}
