package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"laneway/shared/protocol"
)

// sessionsCommands look at conversations.
type sessionsCommands struct {
	List    sessionsListCommand    `cmd:"" help:"List conversations, the last used first."`
	Show    sessionsShowCommand    `cmd:"" help:"Print a conversation."`
	Explain sessionsExplainCommand `cmd:"" help:"Say what a conversation is doing, why it is quiet, and what comes next."`
}

// listTimeout bounds commands that only look.
const listTimeout = 30 * time.Second

type sessionsListCommand struct {
	Limit int64  `default:"50" placeholder:"N" help:"At most so many."`
	Agent string `placeholder:"ID" help:"Those of one agent."`
	JSON  bool   `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run lists sessions.
func (c *sessionsListCommand) Run(ctx context.Context, a *app) error {
	params := protocol.SessionsListParams{Limit: &c.Limit, AgentID: c.Agent}
	var raw json.RawMessage
	if err := c.ask(ctx, a, "sessions.list", params, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var list protocol.SessionsList
	if err := decode(raw, &list); err != nil {
		return err
	}
	if len(list.Sessions) == 0 {
		fmt.Fprintln(a.stderr, "no conversations yet")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tSTATE\tUPDATED\tMODEL\tLABEL")
	for _, s := range list.Sessions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.Key, state(s), when(s.UpdatedAt), cmp.Or(s.Model, "-"), cmp.Or(s.Label, s.DisplayName, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if list.HasMore {
		fmt.Fprintf(a.stderr, "there are more: --limit %d\n", 4*c.Limit)
	}
	return nil
}

// decode reads what a gateway said into out.
func decode(raw json.RawMessage, out any) error {
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("the answer is not what was expected: %w", err)
	}
	return nil
}

// ask makes a request that only looks.
func (f gatewayFlags) ask(ctx context.Context, a *app, method string, params, out any) error {
	t, err := f.target(a)
	if err != nil {
		return err
	}
	return a.untilSignal(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		return t.call(ctx, scopesRead, method, params, out)
	})
}

func state(s protocol.SessionRow) string {
	if s.HasActiveRun {
		return "running"
	}
	return cmp.Or(s.Status, "idle")
}

// when is a time for a person, in the local zone.
func when(ms *int64) string {
	if ms == nil || *ms == 0 {
		return "-"
	}
	return time.UnixMilli(*ms).Local().Format("2006-01-02 15:04:05")
}

type sessionsShowCommand struct {
	Key   string `arg:"" help:"Session key, as sessions list prints it."`
	Limit int64  `default:"100" placeholder:"N" help:"The last so many messages."`
	JSON  bool   `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run prints a session's messages.
func (c *sessionsShowCommand) Run(ctx context.Context, a *app) error {
	params := protocol.ChatHistoryParams{SessionKey: c.Key, Limit: &c.Limit}
	var raw json.RawMessage
	if err := c.ask(ctx, a, "chat.history", params, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var history struct {
		Messages []protocol.HistoryRow `json:"messages"`
		HasMore  bool                  `json:"hasMore"`
	}
	if err := decode(raw, &history); err != nil {
		return err
	}
	if len(history.Messages) == 0 {
		return fmt.Errorf("no messages in %s", c.Key)
	}
	if history.HasMore {
		fmt.Fprintf(a.stderr, "there are older messages: --limit %d\n", 4*c.Limit)
	}
	for _, m := range history.Messages {
		fmt.Fprintf(a.stdout, "%s  %s%s\n", when(&m.Timestamp), m.Role, about(m))
		for line := range strings.Lines(rowText(m.Content)) {
			fmt.Fprintf(a.stdout, "    %s\n", strings.TrimRight(line, "\n"))
		}
	}
	return nil
}

// about is what of a row is not its text.
func about(m protocol.HistoryRow) string {
	var notes []string
	if m.ToolName != "" {
		notes = append(notes, m.ToolName)
	}
	if m.IsError {
		notes = append(notes, "error")
	}
	if m.OpenclawAbort != nil {
		notes = append(notes, "aborted")
	}
	if m.ErrorMessage != "" {
		notes = append(notes, m.ErrorMessage)
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, ", ") + ")"
}

// rowText is the content of a row: a string, or a list of parts.
func rowText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var lines []string
	for _, p := range parts {
		switch {
		case p.Text != "":
			lines = append(lines, p.Text)
		case p.Name != "":
			lines = append(lines, "["+p.Type+" "+p.Name+"]")
		}
	}
	return strings.Join(lines, "\n")
}
