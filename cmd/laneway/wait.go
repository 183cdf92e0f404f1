package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"laneway/shared/protocol"
)

// waitCommand waits for a run that somebody started.
type waitCommand struct {
	RunID   string `arg:"" name:"run" help:"Id of the run: its idempotency key."`
	Timeout int64  `default:"600" placeholder:"SECONDS" help:"How long to wait; 0: only look."`
	JSON    bool   `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run waits and prints the run's answer.
func (c *waitCommand) Run(ctx context.Context, a *app) error {
	err := c.run(ctx, a)
	if c.JSON {
		return a.jsonFailure(err)
	}
	return err
}

func (c *waitCommand) run(ctx context.Context, a *app) error {
	t, err := c.target(a)
	if err != nil {
		return err
	}
	window := max(0, min(c.Timeout, int64(noLimit/time.Second))) * 1000
	var raw json.RawMessage
	err = a.untilSignal(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(window)*time.Millisecond+grace)
		defer cancel()
		return t.call(ctx, scopesWrite, "agent.wait", protocol.AgentWaitParams{RunID: c.RunID, TimeoutMs: &window}, &raw)
	})
	if err != nil {
		return err
	}
	var w protocol.Wait
	if err := decode(raw, &w); err != nil {
		return err
	}
	if c.JSON {
		if err := a.printJSON(raw); err != nil {
			return err
		}
	} else if w.TerminalReply != nil && w.TerminalReply.Text != "" {
		fmt.Fprintln(a.stdout, w.TerminalReply.Text)
	}
	switch {
	case w.Status == protocol.StatusOK:
		return nil
	case c.JSON:
		return exitError(exitFailure)
	case w.Error != "":
		return fmt.Errorf("run %s failed: %s", w.RunID, w.Error)
	case w.EndedAt == 0:
		return fmt.Errorf("run %s has not ended within %d s, or is not known", w.RunID, c.Timeout)
	}
	return fmt.Errorf("run %s ended with %s", w.RunID, w.Status)
}

// untilSignal does something that a signal cuts short.
func (a *app) untilSignal(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = do(ctx)
	}()
	select {
	case <-done:
		return err
	case s := <-a.signals:
		cancel()
		<-done // what it says about being cut short is no news
		return signalled(s)
	}
}
