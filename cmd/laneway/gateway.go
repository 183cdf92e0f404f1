package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"laneway/shared/client"
	"laneway/shared/protocol"
)

// defaultURL is where serve listens if nothing else was said.
const defaultURL = "ws://127.0.0.1:18789"

// gatewayFlags say which gateway a command talks to.
type gatewayFlags struct {
	URL      string `placeholder:"URL" help:"Gateway to talk to (OPENCLAW_GATEWAY_URL; else ${defaultURL})."`
	Token    string `placeholder:"TOKEN" help:"Its token (OPENCLAW_GATEWAY_TOKEN; else the one that serve stored in --data)."`
	Password string `placeholder:"PASSWORD" help:"Its password (OPENCLAW_GATEWAY_PASSWORD)."`
	Data     string `type:"path" placeholder:"DIR" help:"Data directory (default: under the user's data directory)."`
}

// target is a gateway with the credentials for it.
type target struct {
	url, token, password string
	device               *client.Device
}

// target looks up what was not said in the environment and in the data directory.
func (f gatewayFlags) target(a *app) (target, error) {
	t := target{
		url:      cmp.Or(f.URL, a.env("OPENCLAW_GATEWAY_URL"), defaultURL),
		token:    cmp.Or(f.Token, a.env("OPENCLAW_GATEWAY_TOKEN")),
		password: cmp.Or(f.Password, a.env("OPENCLAW_GATEWAY_PASSWORD")),
	}
	dir, err := a.dataDir(f.Data)
	if err != nil {
		return t, err
	}
	if client.Loopback(t.url) {
		if t.token == "" && t.password == "" {
			t.token, err = storedToken(filepath.Join(dir, tokenFile))
		}
		return t, err
	}
	// The token of this machine's own gateway is no business of another one.
	if t.token == "" && t.password == "" {
		return t, fmt.Errorf("a token is needed for %s: --token, OPENCLAW_GATEWAY_TOKEN, --password or OPENCLAW_GATEWAY_PASSWORD", t.url)
	}
	t.device, err = client.LoadDevice(filepath.Join(dir, deviceFile))
	return t, err
}

// dial connects to the gateway. onEvent may be nil.
func (t target) dial(ctx context.Context, scopes []string, onEvent func(client.Event)) (*client.Conn, error) {
	conn, err := client.Dial(ctx, client.Config{
		URL: t.url, Token: t.token, Password: t.password, Device: t.device,
		Scopes: scopes, OnEvent: onEvent,
		Version: version(), Platform: platform(), Family: family(),
	})
	if err != nil {
		return nil, t.explain(err)
	}
	return conn, nil
}

// explain adds to a failure what its reader can do about it.
func (t target) explain(err error) error {
	var refused *protocol.Error
	switch {
	case errors.As(err, &refused) && refused.Detail("code") == protocol.DetailTokenMissing,
		errors.As(err, &refused) && refused.Code == protocol.CodeNotPaired:
		return fmt.Errorf("%s wants a token: --token or OPENCLAW_GATEWAY_TOKEN (%w)", t.url, err)
	case errors.As(err, &refused):
		return fmt.Errorf("%s refused the connection: %s", t.url, refused.Message)
	case t.url == defaultURL && !errors.Is(err, context.Canceled):
		return fmt.Errorf(`%w (is "laneway serve" running? "laneway agent --local" needs none)`, err)
	}
	return err
}

// call makes one request on a connection of its own.
func (t target) call(ctx context.Context, scopes []string, method string, params, out any) error {
	conn, err := t.dial(ctx, scopes, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Call(ctx, method, params, out)
}

var (
	scopesRead  = []string{protocol.ScopeRead}
	scopesWrite = []string{protocol.ScopeRead, protocol.ScopeWrite}
	// A turn may choose a model or reset its session, which is an admin's; a token that
	// grants less connects all the same and is refused only that.
	scopesTurn = []string{protocol.ScopeAdmin, protocol.ScopeRead, protocol.ScopeWrite}
)

// platform and family are the words that stock clients use.
func platform() string {
	if runtime.GOOS == "windows" {
		return "win32"
	}
	return runtime.GOOS
}

func family() string {
	switch runtime.GOOS {
	case "linux":
		return "Linux"
	case "darwin":
		return "Mac"
	case "windows":
		return "Windows"
	}
	return ""
}
