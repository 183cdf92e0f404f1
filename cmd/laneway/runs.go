package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"laneway/shared/clock"
	"laneway/shared/protocol"
)

// runsCommands look at runs that are not over, and stop them.
type runsCommands struct {
	List  runsListCommand  `cmd:"" help:"List the runs that are at work or wait."`
	Abort runsAbortCommand `cmd:"" help:"Stop a run for certain."`
}

type runsListCommand struct {
	Agent   string `placeholder:"ID" help:"Those of one agent."`
	Session string `placeholder:"KEY" help:"Those of one conversation."`
	Lane    string `placeholder:"NAME" help:"Those of one lane: main, cron or subagent."`
	State   string `enum:",pending,running,sleeping" default:"" placeholder:"STATE" help:"Those in one state: pending, running or sleeping."`
	Limit   int64  `default:"100" placeholder:"N" help:"At most so many."`
	JSON    bool   `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run lists runs.
func (c *runsListCommand) Run(ctx context.Context, a *app) error {
	params := protocol.RunsListParams{AgentID: c.Agent, SessionKey: c.Session, Lane: c.Lane, State: c.State, Limit: &c.Limit}
	var raw json.RawMessage
	if err := c.ask(ctx, a, "runs.list", params, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var list protocol.RunsList
	if err := decode(raw, &list); err != nil {
		return err
	}
	if len(list.Runs) == 0 {
		fmt.Fprintln(a.stderr, "nothing runs and nothing waits")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATE\tFOR\tLANE\tSESSION\tSTEP\tTOKENS\tDOING")
	for _, r := range list.Runs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.RunID, runState(r), forTime(r.ForMs), r.Lane, r.SessionKey, stepOf(r), tokensOf(r), doing(r))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if list.NextCursor != "" {
		fmt.Fprintf(a.stderr, "there are more: --limit %d\n", 4*c.Limit)
	}
	return nil
}

// runState is the state of a run with what a person must know of it.
func runState(r protocol.RunRow) string {
	switch {
	case r.Stopping:
		return "stopping"
	case r.OwnerLive != nil && !*r.OwnerLive:
		return "dead" // its holder is; the next wake-up goes on with it
	case r.Position > 0:
		return fmt.Sprintf("%s (%d)", r.State, r.Position)
	}
	return r.State
}

func forTime(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

func stepOf(r protocol.RunRow) string {
	if r.StartedAt == 0 {
		return "-"
	}
	return strconv.FormatInt(r.Step, 10)
}

func tokensOf(r protocol.RunRow) string {
	if r.Usage == nil {
		return "-"
	}
	return strconv.FormatInt(r.Usage.TotalTokens, 10)
}

func doing(r protocol.RunRow) string {
	switch {
	case r.Tool != "":
		return "tool " + r.Tool
	case r.Work != "":
		return r.Work
	case r.WakeAt != 0:
		return "until " + when(&r.WakeAt)
	}
	return "-"
}

type runsAbortCommand struct {
	RunID  string `arg:"" name:"run" help:"Id of the run, as runs list prints it."`
	Reason string `placeholder:"TEXT" help:"Why, for the gateway's log."`
	JSON   bool   `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// stopTries bounds how often the end of a run is asked for. One that does not react
// has ended after the second time.
const stopTries = 4

// Run stops a run and waits until it has ended.
func (c *runsAbortCommand) Run(ctx context.Context, a *app) error {
	t, err := c.target(a)
	if err != nil {
		return err
	}
	return a.untilSignal(ctx, func(ctx context.Context) error {
		for range stopTries {
			var raw json.RawMessage
			if err := t.call(ctx, scopesWrite, "runs.abort", protocol.RunsAbortParams{RunID: c.RunID, Reason: c.Reason}, &raw); err != nil {
				return err
			}
			var r protocol.RunAborted
			if err := decode(raw, &r); err != nil {
				return err
			}
			if r.Status == "stopping" {
				fmt.Fprintf(a.stderr, "run %s does not react: its claim is taken away\n", r.RunID)
				if err := clock.Sleep(ctx, a.clock, max(time.UnixMilli(r.EndsBy).Sub(a.clock.Now()), time.Second)); err != nil {
					return err
				}
				continue
			}
			if c.JSON {
				return a.printJSON(raw)
			}
			switch {
			case r.Aborted:
				fmt.Fprintf(a.stdout, "run %s is stopped\n", r.RunID)
			case r.Status == "delivered":
				return fmt.Errorf("run %s is part of run %s by now: stop that one", r.RunID, r.Into)
			default:
				fmt.Fprintf(a.stdout, "run %s had ended before: %s\n", r.RunID, r.Outcome)
			}
			return nil
		}
		return errors.New("the run can do nothing more, but its end is not in the tables yet: try again in a minute")
	})
}
