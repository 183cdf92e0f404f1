// Package caller is the client of the load measurement: it speaks the gateway's
// protocol, makes runs and notes when what of them came.
//
// Guarantees: a frame is stamped when it has been read from the socket, before anything
// of it is decoded, by a goroutine that does nothing else; the runs of a connection are
// told apart by their ids; after Close no goroutine is left. It takes every gateway of
// protocol version 4 for the same.
package caller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// queued is how many frames may wait to be decoded.
const queued = 1 << 14

// Client is an accepted connection.
type Client struct {
	// Hello is when the gateway's welcome came.
	Hello time.Time

	ws     *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	frames chan stamped
	done   chan struct{} // closed when the last frame was handled

	mu    sync.Mutex
	count int
	calls map[string]func(frame, time.Time) // by request id
	runs  map[string]*Run                   // by run id
	err   error
}

type stamped struct {
	at   time.Time
	data []byte
}

// frame is what is looked at of a frame.
type frame struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	OK    bool   `json:"ok"`
	Event string `json:"event"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Payload json.RawMessage `json:"payload"`
}

func (f frame) failure() error {
	switch {
	case f.OK:
		return nil
	case f.Error == nil:
		return errors.New("refused without an error")
	}
	return fmt.Errorf("%s: %s", f.Error.Code, f.Error.Message)
}

// Dial connects with a token, once.
func Dial(ctx context.Context, url, token string) (*Client, error) {
	ws, res, err := websocket.Dial(ctx, url, &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled})
	if res != nil && res.Body != nil {
		_ = res.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(64 << 20)
	c := &Client{ws: ws, frames: make(chan stamped, queued), done: make(chan struct{}), calls: map[string]func(frame, time.Time){}, runs: map[string]*Run{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	challenged := make(chan struct{})
	go c.read()
	go c.handle(challenged)
	if err := c.hello(ctx, token, challenged); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// hello says who we are: the one kind of client whose scopes the stock gateway keeps on
// a token alone.
func (c *Client) hello(ctx context.Context, token string, challenged <-chan struct{}) error {
	select {
	case <-challenged:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return c.cause()
	}
	_, at, err := c.call(ctx, "connect", map[string]any{
		"minProtocol": 4, "maxProtocol": 4, "role": "operator", "scopes": []string{"operator.read", "operator.write"}, "caps": []string{},
		"client": map[string]any{"id": "gateway-client", "version": "1.0.0", "platform": "linux", "mode": "backend"},
		"auth":   map[string]any{"token": token},
	})
	c.Hello = at
	return err
}

// Close ends the connection.
func (c *Client) Close() {
	c.cancel()
	_ = c.ws.CloseNow()
	<-c.done
}

// Call makes one request and waits for its first answer.
func (c *Client) Call(ctx context.Context, method string, params any) error {
	_, _, err := c.call(ctx, method, params)
	return err
}

func (c *Client) call(ctx context.Context, method string, params any) (frame, time.Time, error) {
	type reply struct {
		frame
		at time.Time
	}
	answer := make(chan reply, 1)
	requestID, err := c.send(ctx, method, params, func(f frame, at time.Time) {
		select {
		case answer <- reply{f, at}:
		default: // a second answer
		}
	})
	if err != nil {
		return frame{}, time.Time{}, err
	}
	defer c.forget(requestID)
	select {
	case r := <-answer:
		return r.frame, r.at, r.failure()
	case <-ctx.Done():
		return frame{}, time.Time{}, ctx.Err()
	case <-c.done:
		return frame{}, time.Time{}, c.cause()
	}
}

// send hands a request to the socket; on gets its answers, in the reader's order.
func (c *Client) send(ctx context.Context, method string, params any, on func(frame, time.Time)) (string, error) {
	c.mu.Lock()
	c.count++
	requestID := strconv.Itoa(c.count)
	c.calls[requestID] = on
	c.mu.Unlock()
	message, err := json.Marshal(map[string]any{"type": "req", "id": requestID, "method": method, "params": params})
	if err == nil {
		err = c.ws.Write(ctx, websocket.MessageText, message)
	}
	if err != nil {
		c.forget(requestID)
	}
	return requestID, err
}

func (c *Client) forget(requestID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, requestID)
}

func (c *Client) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return errors.New("connection closed")
}

func (c *Client) read() {
	defer close(c.frames)
	for {
		_, data, err := c.ws.Read(c.ctx)
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
		c.frames <- stamped{time.Now(), data}
	}
}

func (c *Client) handle(challenged chan struct{}) {
	defer close(c.done)
	seen := false
	for s := range c.frames {
		var f frame
		if json.Unmarshal(s.data, &f) != nil {
			continue
		}
		switch {
		case f.Type == "res":
			c.mu.Lock()
			on := c.calls[f.ID]
			c.mu.Unlock()
			if on != nil {
				on(f, s.at)
			}
		case f.Event == "connect.challenge" && !seen:
			seen = true
			close(challenged)
		case f.Event == "agent" || f.Event == "chat":
			c.event(f, s)
		}
	}
}
