package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"laneway/shared/id"
	"laneway/shared/protocol"

	"github.com/coder/websocket"
)

// sendTimeout bounds the writing of one message. A socket that takes none for so
// long is as good as closed.
const sendTimeout = 30 * time.Second

// Event is a message that nobody asked for.
type Event struct {
	Name    string
	Payload json.RawMessage
}

// Conn is an accepted connection. Its methods may be used from several goroutines.
type Conn struct {
	ws     *websocket.Conn
	ctx    context.Context //nolint:containedctx // the life of the socket: its end stops the reader and all writes
	cancel context.CancelFunc
	hello  Hello

	challenges chan json.RawMessage
	done       chan struct{} // closed when the reader has ended

	mu       sync.Mutex
	calls    map[string]chan<- response // by request id; never called under mu
	handlers []*handler
	err      error // why the reader ended
	closing  bool  // by our own side
	count    int
}

type handler struct{ fn func(Event) }

type response struct {
	ok      bool
	payload json.RawMessage
	err     *protocol.Error
}

func newConn(ws *websocket.Conn, onEvent func(Event)) *Conn {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Conn{
		ws: ws, ctx: ctx, cancel: cancel,
		challenges: make(chan json.RawMessage, 1), done: make(chan struct{}),
		calls: map[string]chan<- response{},
	}
	if onEvent != nil {
		c.handlers = []*handler{{onEvent}}
	}
	go c.read()
	return c
}

// Hello is the gateway's welcome.
func (c *Conn) Hello() Hello { return c.hello }

// Done is closed when the connection has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended: a *ClosedError if the gateway closed it. Nil while
// it is open, and after Close.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Subscribe adds a handler of events. It must not block, nor call the connection;
// the function that is returned takes it away again, and does not wait for a call
// of the handler that is under way.
func (c *Conn) Subscribe(fn func(Event)) (cancel func()) {
	h := &handler{fn}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The reader walks the slice outside the lock: it is replaced, never changed.
	c.handlers = append(slices.Clone(c.handlers), h)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.handlers = slices.DeleteFunc(slices.Clone(c.handlers), func(o *handler) bool { return o == h })
	}
}

// Call makes one request and decodes its answer into out, which may be nil. An
// answer of the kind "accepted, more follows" is an answer. Errors: *CallError if
// the gateway refused, *ClosedError, or ctx's.
func (c *Conn) Call(ctx context.Context, method string, params, out any) error {
	raw, err := c.request(ctx, method, params, false, nil)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s: the answer is not what was expected: %w", method, err)
	}
	return nil
}

// CallFinal makes a request that is answered twice, and returns the second answer.
// accepted, if given, gets the first one, once, from the calling goroutine. A
// gateway that answers only once ends the call with that.
func (c *Conn) CallFinal(ctx context.Context, method string, params any, accepted func(json.RawMessage)) (json.RawMessage, error) {
	return c.request(ctx, method, params, true, accepted)
}

func (c *Conn) request(ctx context.Context, method string, params any, final bool, accepted func(json.RawMessage)) (json.RawMessage, error) {
	answers := make(chan response, 4) // the reader never waits for a caller
	requestID := c.register(answers)
	defer c.forget(requestID)
	message, err := protocol.AppendRequest(nil, requestID, method, params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if err := c.send(message); err != nil {
		return nil, err
	}
	for {
		select {
		case r := <-answers:
			if !r.ok {
				return nil, &CallError{Method: method, Err: r.err, Payload: r.payload}
			}
			if !final || status(r.payload) != "accepted" {
				return r.payload, nil
			}
			if accepted != nil {
				accepted(r.payload)
				accepted = nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.done:
			// The answer may have come just before the end.
			select {
			case r := <-answers:
				answers <- r
				continue
			default:
			}
			return nil, c.cause()
		}
	}
}

func status(payload json.RawMessage) string {
	var p struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(payload, &p) != nil {
		return ""
	}
	return p.Status
}

func (c *Conn) register(answers chan<- response) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	requestID := fmt.Sprintf("%d:%s", c.count, id.UUID())
	c.calls[requestID] = answers
	return requestID
}

func (c *Conn) forget(requestID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, requestID)
}

// send writes on the connection's own context: a caller's context that ends in the
// middle of a message would tear the socket down for everybody.
func (c *Conn) send(message []byte) error {
	ctx, cancel := context.WithTimeout(c.ctx, sendTimeout)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, message); err != nil {
		select {
		case <-c.done:
			return c.cause()
		default:
			return &ClosedError{Code: -1, Err: err}
		}
	}
	return nil
}

// Close ends the connection and waits for its reader. Calls that wait fail with
// ErrClosed. Closing twice is allowed.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	// Its error says that the peer had gone already, or never answered: either way
	// the connection is closed now.
	_ = c.ws.Close(websocket.StatusNormalClosure, "")
	c.cancel()
	<-c.done
}

// abandon ends the connection without the closing handshake.
func (c *Conn) abandon() {
	c.cancel()
	_ = c.ws.CloseNow()
	<-c.done
}

// read is the connection's one goroutine; it ends with the socket.
func (c *Conn) read() {
	defer close(c.done)
	for {
		kind, message, err := c.ws.Read(c.ctx)
		if err != nil {
			c.end(err)
			return
		}
		if kind != websocket.MessageText && kind != websocket.MessageBinary {
			continue
		}
		f, err := protocol.DecodeFrame(message)
		if err != nil {
			continue // what is no frame is none of ours, as for every client
		}
		c.frame(f)
	}
}

func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.err = closed(err)
	}
}

// cause is the error of a call that the connection's end ended.
func (c *Conn) cause() error {
	if err := c.Err(); err != nil {
		return err
	}
	return ErrClosed
}

func (c *Conn) frame(f protocol.Frame) {
	switch f.Type {
	case "res":
		c.mu.Lock()
		answers := c.calls[f.ID]
		c.mu.Unlock()
		if answers == nil || !f.OK && (f.Err == nil || f.Err.Code == "" || f.Err.Message == "") {
			return
		}
		select {
		case answers <- response{f.OK, f.Payload, f.Err}:
		default: // more answers than a request can have
		}
	case "event":
		if f.Event == "connect.challenge" {
			select {
			case c.challenges <- f.Payload:
			default:
			}
			return
		}
		c.mu.Lock()
		handlers := c.handlers
		c.mu.Unlock()
		for _, h := range handlers {
			h.fn(Event{f.Event, f.Payload})
		}
	}
}
