// Command gateway is the function behind the WebSocket API: it validates, accepts
// and answers frames. It calls no model.
package main

import (
	"context"
	"time"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/token"
)

func main() {
	setup.Main(func(f *setup.Function) (any, error) {
		socket, err := handler(f)
		if err != nil {
			return nil, err
		}
		return socket.Handle, nil
	})
}

// listWithin bounds the read of the configuration of models at the start.
const listWithin = 5 * time.Second

func handler(f *setup.Function) (*adapter.Socket, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listWithin)
	defer cancel()
	agents, err := f.Agents(ctx, false)
	if err != nil {
		return nil, err
	}
	auth := &token.Store{Table: f.Core.Store, Fixed: []string{f.Secrets.Token}}
	gateway, err := f.Core.Gateway(auth, agents.Directory())
	if err != nil {
		return nil, err
	}
	return &adapter.Socket{Gateway: gateway, Poster: f.Core.Poster, Endpoint: f.Env.Endpoint, Later: f.Core.Notify.PostLater}, nil
}
