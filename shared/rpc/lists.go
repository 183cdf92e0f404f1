package rpc

import (
	"context"

	"laneway/shared/protocol"
	"laneway/shared/session"
)

func (g *Gateway) listMethods() map[string]handler {
	methods := map[string]handler{
		"agents.list":          g.agentsList,
		"models.list":          g.modelsList,
		"models.authStatus":    g.modelsAuthStatus,
		"commands.list":        g.commandsList,
		"question.list":        nothing(protocol.NoQuestions),
		"plugin.approval.list": nothing(protocol.NoApprovals),
	}
	if g.Files != nil && g.Files.Signer != nil {
		methods["uploads.create"] = g.uploadsCreate
	}
	return methods
}

// nothing answers a list that is always empty here; clients ask for it at start.
func nothing(list any) handler {
	return func(_ context.Context, r *Request) error {
		if _, err := protocol.Decode[protocol.NoParams](r.Method, r.Params); err != nil {
			return err
		}
		return r.Reply(list)
	}
}

func (g *Gateway) agentsList(ctx context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.NoParams](r.Method, r.Params); err != nil {
		return err
	}
	agents, err := g.Directory.Agents(ctx, r.Tenant())
	if err != nil {
		return err
	}
	out := protocol.AgentsList{
		DefaultID: session.DefaultAgent, Ownership: "sole", MainKey: session.MainKey, Scope: "per-sender", Agents: []protocol.AgentRow{},
	}
	if len(agents) > 1 {
		out.Ownership = "explicit"
	}
	for _, a := range agents {
		row := protocol.AgentRow{ID: a.ID, Kind: "agent", Name: a.Name, Workspace: a.Workspace}
		if a.Model != "" {
			row.Model = &protocol.AgentModel{Primary: a.Provider + "/" + a.Model, Fallbacks: a.Fallbacks}
		}
		out.Agents = append(out.Agents, row)
	}
	return r.Reply(out)
}

// commands are the slash commands that a message may be.
func commands(args bool) []protocol.CommandRow {
	row := func(name, text, arg string) protocol.CommandRow {
		c := protocol.CommandRow{
			Name: name, NativeName: name, TextAliases: []string{"/" + name}, Description: text, Category: "session", Source: "native", Scope: "both",
			AcceptsArgs: arg != "",
		}
		if args && arg != "" {
			c.Args = []protocol.CommandArg{{Name: "text", Description: arg, Type: "string"}}
		}
		return c
	}
	option := func(name, text, arg string, aliases ...string) protocol.CommandRow {
		c := row(name, text, arg)
		c.Category = "options"
		for _, a := range aliases {
			c.TextAliases = append(c.TextAliases, "/"+a)
		}
		return c
	}
	status := func(name, text string) protocol.CommandRow {
		c := row(name, text, "")
		c.Category = "status"
		return c
	}
	return []protocol.CommandRow{
		status("help", "Say what can be written here."),
		status("commands", "List all commands."),
		status("status", "Show how things stand with the session."),
		status("usage", "Show what the session and its last run have used."),
		status("whoami", "Show who the gateway takes you for."),
		option("model", "Show, list, set or reset the model of the session.", "provider/id, an alias, list, status or default."),
		option("think", "Show or set the thinking level.", "off, minimal, low, medium, high, xhigh, adaptive, max, ultra or default.", "thinking", "t"),
		option("verbose", "Show or set whether tools are told of.", "on, full or off.", "v"),
		option("trace", "Show or set whether plugins may trace what they do.", "on or off."),
		option("reasoning", "Show or set whether reasoning is shown.", "on, off or stream.", "reason"),
		option("fast", "Show or set fast mode.", "auto, on, off or default."),
		row("stop", "Stop what the session does.", ""),
		row("new", "Start over, keeping nothing of the conversation.", "A model, first message of the new conversation."),
		row("reset", "Start over, keeping nothing of the conversation.", "First message of the new conversation."),
		row("queue", "Show or set what becomes of messages while a run is active.", "Mode and options, or default."),
	}
}

func (g *Gateway) commandsList(_ context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CommandsListParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	return r.Reply(protocol.CommandsList{Commands: commands(p.IncludeArgs == nil || *p.IncludeArgs)})
}

// chatMetadata is what a browser offers beside a chat.
func (g *Gateway) chatMetadata(ctx context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.ChatMetadataParams](r.Method, r.Params); err != nil {
		return err
	}
	rows, err := g.modelRows(ctx, r.Tenant(), "")
	if err != nil {
		return err
	}
	return r.Reply(protocol.ChatMetadata{Models: rows, Commands: commands(true)})
}
