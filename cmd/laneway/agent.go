package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

// agentCommand sends one message.
type agentCommand struct {
	Message     *string `short:"m" placeholder:"TEXT" help:"The message."`
	MessageFile string  `placeholder:"FILE" help:"Read the message from a UTF-8 file of at most 4 MiB; - is standard input."`

	File []string `short:"f" type:"existingfile" placeholder:"FILE" help:"File to send with the message; may be given several times."`

	Agent      *string `placeholder:"ID" help:"Agent to talk to (default: main)."`
	SessionKey *string `placeholder:"KEY" help:"Conversation: agent:ID:NAME, or NAME."`
	SessionID  *string `placeholder:"ID" help:"Conversation, by the id of its transcript."`
	To         *string `short:"t" placeholder:"WHO" help:"Conversation with a recipient."`

	Model    string `placeholder:"MODEL" help:"Model for this run: PROVIDER/ID."`
	Thinking string `placeholder:"LEVEL" help:"Thinking level for this run."`
	Verbose  string `enum:",on,full,off" default:"" placeholder:"on|full|off" help:"Tool summaries; kept in the session."`

	Deliver      bool   `help:"Deliver the answer to the channel."`
	Channel      string `placeholder:"NAME" help:"Delivery channel."`
	ReplyTo      string `placeholder:"WHO" help:"Deliver to another recipient."`
	ReplyChannel string `placeholder:"NAME" help:"Deliver by another channel."`
	ReplyAccount string `placeholder:"ID" help:"Deliver by another account."`

	Timeout int64 `default:"600" placeholder:"SECONDS" help:"Limit of the run; 0: none."`
	JSON    bool  `name:"json" help:"Print one JSON object."`

	Local     bool   `help:"Run in this process: no gateway is needed."`
	Workspace string `type:"path" placeholder:"DIR" help:"With --local: the folder that tools work in (default: the current one)."`
	Shell     bool   `help:"With --local: let the agent write files and run commands, as this user."`

	gatewayFlags
}

// Run sends the message and prints the answer.
func (c *agentCommand) Run(ctx context.Context, a *app) error {
	err := c.run(ctx, a)
	if c.JSON {
		return a.jsonFailure(err)
	}
	return err
}

func (c *agentCommand) run(ctx context.Context, a *app) error {
	if a.env("OPENCLAW_SHELL") == "exec" {
		return errors.New("refused: an agent's own shell command must not start another turn")
	}
	params, err := c.params(a)
	if err != nil {
		return err
	}
	t, closeLocal, err := c.where(ctx, a)
	if err != nil {
		return err
	}
	r := newTurn(a, t, params, c)
	return errors.Join(r.run(ctx), closeLocal())
}

// where is the gateway to talk to: one in this process with --local.
func (c *agentCommand) where(ctx context.Context, a *app) (t target, closeLocal func() error, err error) {
	if !c.Local {
		t, err = c.target(a)
		return t, func() error { return nil }, err
	}
	if c.URL != "" {
		return t, nil, errors.New("--local runs in this process: it cannot be combined with --url")
	}
	return a.startLocal(ctx, c)
}

// params checks what was said and makes the request of it.
func (c *agentCommand) params(a *app) (protocol.AgentParams, error) {
	var p protocol.AgentParams
	message, err := c.message(a)
	if err != nil {
		return p, err
	}
	for _, selector := range []struct {
		flag  string
		value *string
	}{{"--agent", c.Agent}, {"--session-key", c.SessionKey}, {"--session-id", c.SessionID}, {"--to", c.To}} {
		if selector.value != nil && strings.TrimSpace(*selector.value) == "" {
			return p, fmt.Errorf("%s is blank", selector.flag)
		}
	}
	if c.Timeout < 0 {
		return p, errors.New("--timeout is negative; 0 means no limit")
	}
	if c.Deliver && c.Channel == "" && c.ReplyChannel == "" {
		return p, errors.New("--deliver needs --channel or --reply-channel")
	}
	p = protocol.AgentParams{
		Message: message, IdempotencyKey: id.UUID(),
		AgentID: text(c.Agent), SessionKey: text(c.SessionKey), SessionID: text(c.SessionID), To: text(c.To),
		Model: c.Model, Thinking: c.Thinking,
		Deliver: c.Deliver, Channel: c.Channel, ReplyTo: c.ReplyTo, ReplyChannel: c.ReplyChannel, ReplyAccountID: c.ReplyAccount,
		Timeout: &c.Timeout,
	}
	if p.AgentID == "" && p.SessionKey == "" && p.SessionID == "" {
		p.AgentID = session.DefaultAgent
	}
	if err := checkKey(p.SessionKey, text(c.Agent)); err != nil {
		return p, err
	}
	return p, nil
}

// checkKey refuses a key of another agent than the one that was named, before a
// connection is made for it.
func checkKey(key, agent string) error {
	named, _, whole := strings.Cut(strings.TrimPrefix(key, "agent:"), ":")
	if strings.HasPrefix(key, "agent:") && (!whole || named == "") {
		return fmt.Errorf("--session-key %q: want agent:ID:NAME", key)
	}
	if agent == "" || key == "" {
		return nil
	}
	if strings.HasPrefix(key, "agent:") && named != agent {
		return fmt.Errorf("--session-key %q does not belong to --agent %q", key, agent)
	}
	if key == "global" || key == "unknown" {
		return fmt.Errorf("--session-key %q belongs to no agent: leave --agent out", key)
	}
	return nil
}

// text is a flag's value, "" if it was not given.
func text(flag *string) string {
	if flag == nil {
		return ""
	}
	return strings.TrimSpace(*flag)
}

// startLocal opens the single-machine edition in this process.
func (a *app) startLocal(ctx context.Context, c *agentCommand) (target, func() error, error) {
	dir, err := a.dataDir(c.Data)
	if err != nil {
		return target{}, nil, err
	}
	workspace, err := filepath.Abs(cmp.Or(c.Workspace, "."))
	if err != nil {
		return target{}, nil, err
	}
	// The token lives for one turn, whatever token the stored gateway has.
	server, err := a.openLocal(ctx, localConfig{
		Data: dir, Listen: "127.0.0.1:0", Token: id.UUID(), Workspace: workspace, Shell: c.Shell, Env: a.env, Stderr: a.stderr, Quiet: true,
	})
	if err != nil {
		return target{}, nil, err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(serving) }()
	return target{url: server.URL(), token: server.Token()}, func() error {
		stop()
		return errors.Join(<-ended, server.Close())
	}, nil
}
