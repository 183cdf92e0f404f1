package main

import (
	"context"
	"encoding/json"
	"fmt"

	"laneway/shared/protocol"
)

type sessionsExplainCommand struct {
	Key   string `arg:"" help:"Session key, as sessions list prints it."`
	Agent string `placeholder:"ID" help:"Its agent, where the key does not say."`
	JSON  bool   `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run says why a session is quiet, or what it is doing, and what comes next.
func (c *sessionsExplainCommand) Run(ctx context.Context, a *app) error {
	var raw json.RawMessage
	if err := c.ask(ctx, a, "sessions.explain", protocol.SessionKeyParams{Key: c.Key, AgentID: c.Agent}, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var e protocol.SessionExplained
	if err := decode(raw, &e); err != nil {
		return err
	}
	_, err := fmt.Fprint(a.stdout, e.Text)
	return err
}
