// Command gateway is the function behind the WebSocket API: it validates, accepts
// and answers frames. It calls no model.
package main

import (
	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/model"
	"laneway/shared/model/choose"
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

func handler(f *setup.Function) (*adapter.Socket, error) {
	// It has no provider's key, and lists the model that was named by name alone.
	ref, err := choose.Named(f.Env.Model)
	if err != nil {
		return nil, err
	}
	var models []model.Info
	if ref.ID != "" {
		models = []model.Info{{ID: ref.ID, Name: ref.ID, Provider: ref.Provider}}
	}
	agents, err := f.Agents(model.Selected{Name: ref.Provider, Model: ref.ID}, models)
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
