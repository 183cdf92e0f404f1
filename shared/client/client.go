// Package client speaks to a gateway: it connects, authenticates, calls methods and
// hands on events. The command line and the tests use it; it works against any
// gateway of protocol version 4.
//
// Guarantees:
//
//   - Dial returns a connection that the gateway has accepted, or an error that says
//     at which step it failed; nothing of a failed attempt is left open.
//   - A call ends: with its answer, with its context, or with the connection. Ending
//     its context never harms the connection or other calls.
//   - Events are delivered one after another, in the order in which they came, and
//     before the answer of a call that came after them.
//   - After Close has returned no goroutine of the connection is left and no handler
//     is called again.
//
// It does not reconnect: who holds a run across connections calls with the same
// idempotency key again.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/protocol"

	"github.com/coder/websocket"
)

// Config says to whom, as whom and how to connect. Only URL is needed.
type Config struct {
	// URL is a ws:// or wss:// address; http:// and https:// are aliases of them.
	// Path and query are used as they are.
	URL string
	// Token or Password is the credential; with both, both are sent.
	Token, Password string
	// Device proves an identity beside the credential; nil: none is sent.
	Device *Device
	// Scopes asked for; empty: operator.read and operator.write.
	Scopes []string
	// Caps are the capabilities offered, such as "tool-events".
	Caps []string
	// Name, Mode and Version describe the client; empty: "cli", "cli", "dev".
	Name, Mode, Version string
	// Platform and Family describe the machine; both are signed by Device.
	Platform, Family string
	// Header is added to the upgrade request.
	Header http.Header
	// AllowPlain permits ws:// to any host. Without it plain text goes only to this
	// machine and to private networks, because the token would be readable.
	AllowPlain bool
	// Handshake bounds each of the steps: upgrade, challenge, hello. Zero: 15 s.
	Handshake time.Duration
	// MaxMessage is the largest message that is read, in bytes. Zero: 25 MiB.
	MaxMessage int64
	// OnEvent gets every event; it must not block, nor call the connection. Nil: none.
	// More handlers can be added later with Subscribe.
	OnEvent func(Event)
	// Clock paces the attempts against a gateway that is starting; nil: the system's.
	Clock clock.Clock
}

const (
	defaultHandshake = 15 * time.Second
	defaultMax       = 25 << 20
	// startingTries bounds how often a gateway may say that it is still starting.
	startingTries = 60
)

func (c Config) withDefaults() (Config, error) {
	address, err := gatewayURL(c.URL, c.AllowPlain)
	if err != nil {
		return c, err
	}
	c.URL = address
	if len(c.Scopes) == 0 {
		c.Scopes = []string{"operator.read", "operator.write"}
	}
	c.Name = cmp.Or(c.Name, "cli")
	c.Mode = cmp.Or(c.Mode, "cli")
	c.Version = cmp.Or(c.Version, "dev")
	c.Handshake = cmp.Or(c.Handshake, defaultHandshake)
	c.MaxMessage = cmp.Or(c.MaxMessage, defaultMax)
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	return c, nil
}

// Hello is the gateway's welcome: what is known of it, and the whole.
type Hello struct {
	protocol.HelloOK

	Raw json.RawMessage
}

// Dial connects. A gateway that says it is starting is asked again until ctx ends.
// Errors: *UpgradeError, *HandshakeError, *protocol.Error (connect was refused),
// ErrPlain, or those of the network.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		c, err := attempt(ctx, cfg)
		var refused *protocol.Error
		if err == nil || try == startingTries || !errors.As(err, &refused) || !starting(refused) {
			return c, err
		}
		wait := time.Duration(refused.RetryAfterMs) * time.Millisecond
		if clock.Sleep(ctx, cfg.Clock, min(max(wait, 100*time.Millisecond), 2*time.Second)) != nil {
			return nil, err
		}
	}
}

func starting(e *protocol.Error) bool {
	return e.Code == protocol.CodeUnavailable && e.Retryable && e.Detail("reason") == protocol.ReasonStarting
}

func attempt(ctx context.Context, cfg Config) (*Conn, error) {
	ws, err := upgrade(ctx, cfg)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(cfg.MaxMessage)
	c := newConn(ws, cfg.OnEvent)
	if err := c.handshake(ctx, cfg); err != nil {
		// A refused client leaves at once; the gateway may be about to close as well.
		c.abandon()
		return nil, err
	}
	return c, nil
}

func upgrade(ctx context.Context, cfg Config) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Handshake)
	defer cancel()
	ws, res, err := websocket.Dial(ctx, cfg.URL, &websocket.DialOptions{HTTPHeader: cfg.Header})
	if err == nil {
		return ws, nil
	}
	if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
		return nil, &UpgradeError{Status: res.StatusCode, Body: readBody(res)}
	}
	// What is around it says only that a WebSocket begins as an HTTP request.
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return nil, fmt.Errorf("cannot reach the gateway at %s: %w", redact(cfg.URL), err)
}

// handshake waits for the challenge, sends connect and waits for the welcome.
func (c *Conn) handshake(ctx context.Context, cfg Config) error {
	challenge, err := c.challenged(ctx, cfg.Handshake)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Handshake)
	defer cancel()
	raw, err := c.request(ctx, "connect", connectParams(cfg, challenge), false, nil)
	switch refused := (*CallError)(nil); {
	case errors.As(err, &refused):
		return refused.Err
	case errors.Is(err, context.DeadlineExceeded):
		return &HandshakeError{Step: "hello", Err: err}
	case err != nil:
		return err
	}
	if err := json.Unmarshal(raw, &c.hello.HelloOK); err != nil {
		return &HandshakeError{Step: "hello", Err: err}
	}
	c.hello.Raw = raw
	return nil
}

// challenged waits for the gateway's first event.
func (c *Conn) challenged(ctx context.Context, limit time.Duration) (protocol.Challenge, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case raw := <-c.challenges:
		var ch protocol.Challenge
		if err := json.Unmarshal(raw, &ch); err != nil || ch.Nonce == "" {
			return ch, &HandshakeError{Step: "challenge", Err: errNonce}
		}
		return ch, nil
	case <-c.done:
		return protocol.Challenge{}, &HandshakeError{Step: "challenge", Err: c.cause()}
	case <-ctx.Done():
		return protocol.Challenge{}, &HandshakeError{Step: "challenge", Err: ctx.Err()}
	}
}

func connectParams(cfg Config, ch protocol.Challenge) protocol.ConnectParams {
	p := protocol.ConnectParams{
		MinProtocol: protocol.Version, MaxProtocol: protocol.Version,
		Client: protocol.ConnectClient{
			ID: cfg.Name, Version: cfg.Version, Mode: cfg.Mode,
			Platform: cmp.Or(cfg.Platform, "unknown"), DeviceFamily: cfg.Family, InstanceID: id.UUID(),
		},
		Caps: cfg.Caps, Role: protocol.RoleOperator, Scopes: cfg.Scopes,
	}
	if cfg.Token != "" || cfg.Password != "" {
		p.Auth = &protocol.ConnectAuth{Token: cfg.Token, Password: cfg.Password}
	}
	if cfg.Device != nil {
		p.Device = cfg.Device.prove(p, cfg.Token, ch)
	}
	return p
}
