// Command gateway is the function behind the WebSocket API: it validates, accepts
// and answers frames. It calls no model.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"laneway/functions/adapter"
	"laneway/functions/setup"
	"laneway/shared/model"
	"laneway/shared/model/choose"
	"laneway/shared/token"
)

func main() {
	f, err := setup.Start()
	if err != nil {
		log.Fatal(err)
	}
	h, err := handler(f)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(h.Handle)
}

func handler(f *setup.Function) (*adapter.Socket, error) {
	ref, err := choose.Decide(f.Choice())
	if err != nil {
		return nil, err
	}
	agents, err := f.Agents(
		model.Selected{Name: ref.Provider, Model: ref.ID},
		[]model.Info{{ID: ref.ID, Name: ref.ID, Provider: ref.Provider}})
	if err != nil {
		return nil, err
	}
	auth := &token.Store{Table: f.Core.Store, Fixed: []string{f.Secrets.Token}}
	gateway, err := f.Core.Gateway(auth, agents.Directory())
	if err != nil {
		return nil, err
	}
	return &adapter.Socket{Gateway: gateway, Poster: f.Core.Poster, Endpoint: f.Env.Endpoint}, nil
}
