package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"laneway/shared/cron"
	"laneway/shared/protocol"
)

// scheduleFlags say when a job runs.
type scheduleFlags struct {
	Every string `placeholder:"TIME" xor:"schedule" help:"Again and again, as in 30m, 1h or 2d."`
	Cron  string `placeholder:"EXPR" xor:"schedule" help:"By a cron expression of five fields, or six with seconds first, as in \"0 9 * * 1-5\"."`
	At    string `placeholder:"WHEN" xor:"schedule" help:"Once, at a time such as 2026-12-24T18:00 (UTC, unless it or --tz says otherwise), or in a while, as in 20m."`
	TZ    string `name:"tz" placeholder:"ZONE" help:"Time zone of --cron or --at, such as Europe/Berlin."`
	Exact bool   `help:"With --cron: at the very minute, not spread over five at the top of every hour."`
}

// schedule is what the flags say; nil: nothing. Notes are for the user.
func (f scheduleFlags) schedule(now time.Time) (s *protocol.CronSchedule, note string, err error) {
	switch {
	case f.TZ != "" && f.Cron == "" && f.At == "":
		return nil, "", errors.New("--tz goes with --cron or --at")
	case f.Exact && f.Cron == "":
		return nil, "", errors.New("--exact goes with --cron")
	case f.Every != "":
		d, err := duration(f.Every)
		if err != nil {
			return nil, "", fmt.Errorf("--every: %w", err)
		}
		ms := d.Milliseconds()
		return &protocol.CronSchedule{Kind: "every", EveryMs: &ms}, "", nil
	case f.Cron != "":
		s := &protocol.CronSchedule{Kind: "cron", Expr: f.Cron, TZ: f.TZ}
		if f.Exact {
			zero := int64(0)
			s.StaggerMs = &zero
		}
		return s, "", nil
	case f.At != "":
		if d, err := duration(strings.TrimPrefix(f.At, "+")); err == nil {
			return &protocol.CronSchedule{Kind: "at", At: now.Add(d).UTC().Format(time.RFC3339)}, "", nil
		}
		at, assumed, err := cron.ParseAt(f.At, f.TZ)
		if err != nil {
			if f.TZ == "" {
				err = fmt.Errorf("%w, or a while such as 20m", err)
			}
			return nil, "", fmt.Errorf("--at: %w", err)
		}
		if assumed {
			note = fmt.Sprintf("%s is taken as UTC; --tz names another zone", at.Format("2006-01-02 15:04:05"))
		}
		return &protocol.CronSchedule{Kind: "at", At: f.At, TZ: f.TZ}, note, nil
	}
	return nil, "", nil
}

// jobFlags say what a job does, and where. Of edit, what is not given stays.
type jobFlags struct {
	Name        string   `placeholder:"TEXT" help:"Name of the job (default: the start of its message)."`
	Description string   `placeholder:"TEXT" help:"What it is for."`
	Message     string   `short:"m" placeholder:"TEXT" xor:"payload" help:"What the agent is told."`
	SystemEvent string   `placeholder:"TEXT" xor:"payload" help:"A text for the agent's main session."`
	Agent       string   `placeholder:"ID" help:"Which agent (default: main)."`
	Session     string   `placeholder:"WHERE" help:"isolated: a fresh session each time; main; session:NAME; current: that of --session-key."`
	SessionKey  string   `placeholder:"KEY" help:"Run in this conversation."`
	Model       string   `placeholder:"ID" help:"Model of its runs."`
	Thinking    string   `placeholder:"LEVEL" help:"How much the model thinks."`
	Timeout     *float64 `placeholder:"SECONDS" help:"Limit of a run (default: an hour); 0: none."`
	Webhook     string   `placeholder:"URL" help:"Post each result there, signed."`
	NoWebhook   bool     `help:"Post results nowhere."`
	Missed      string   `placeholder:"POLICY" help:"Slots that passed while nothing ran: once (default), skip, or within:TIME."`
	Delete      *bool    `name:"delete-after-run" negatable:"" help:"Remove it after a run that went well (default with --at)."`
}

func (f *jobFlags) payload() *protocol.CronPayload {
	p := &protocol.CronPayload{Kind: "agentTurn", Message: f.Message}
	if f.SystemEvent != "" {
		return &protocol.CronPayload{Kind: "systemEvent", Text: f.SystemEvent}
	}
	if f.Model != "" {
		p.Model = protocol.Some(f.Model)
	}
	if f.Thinking != "" {
		p.Thinking = protocol.Some(f.Thinking)
	}
	if f.Timeout != nil {
		p.TimeoutSeconds = protocol.Some(*f.Timeout)
	}
	return p
}

func (f *jobFlags) delivery() *protocol.CronDelivery {
	switch {
	case f.Webhook != "":
		return &protocol.CronDelivery{Mode: "webhook", To: protocol.Some(f.Webhook)}
	case f.NoWebhook:
		return &protocol.CronDelivery{Mode: "none"}
	}
	return nil
}

type cronAddCommand struct {
	scheduleFlags
	jobFlags
	Disabled bool `help:"Make it, switched off."`
	JSON     bool `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run makes a job. Its id alone goes to standard output.
func (c *cronAddCommand) Run(ctx context.Context, a *app) error {
	s, note, err := c.schedule(a.clock.Now())
	switch {
	case err != nil:
		return err
	case s == nil:
		return errors.New("say when: --every, --cron or --at")
	case c.Message == "" && c.SystemEvent == "":
		return errors.New("say what: --message or --system-event")
	}
	on := !c.Disabled
	p := protocol.CronAddParams{
		Name: c.Name, Description: c.Description, Enabled: &on, DeleteAfterRun: c.Delete, Schedule: *s,
		SessionTarget: c.Session, Payload: *c.payload(), Delivery: c.delivery(), Missed: c.Missed,
	}
	if p.Name == "" {
		p.Name = clipped(c.Message+c.SystemEvent, 60)
	}
	if c.Agent != "" {
		p.AgentID = protocol.Some(c.Agent)
	}
	if c.SessionKey != "" {
		p.SessionKey = protocol.Some(c.SessionKey)
	}
	if note != "" {
		fmt.Fprintln(a.stderr, note)
	}
	var raw json.RawMessage
	if err := c.change(ctx, a, "cron.add", p, &raw); err != nil {
		return err
	}
	return a.tellJob(raw, c.JSON, true)
}

// tellJob tells a job that was made or changed.
func (a *app) tellJob(raw json.RawMessage, asJSON, made bool) error {
	if asJSON {
		return a.printJSON(raw)
	}
	var j protocol.CronJob
	if err := decode(raw, &j); err != nil {
		return err
	}
	if made {
		fmt.Fprintln(a.stdout, j.ID)
	}
	if j.Enabled {
		next := time.UnixMilli(j.State.NextRunAtMs).Local().Format("2006-01-02 15:04:05 MST") // its zone may be another than the job's
		fmt.Fprintf(a.stderr, "%s, next at %s\n", scheduleText(j.Schedule), next)
	} else {
		fmt.Fprintf(a.stderr, "%s, off\n", scheduleText(j.Schedule))
	}
	if made && j.WebhookSecret != "" {
		fmt.Fprintf(a.stderr, "webhooks are signed with %s\n", j.WebhookSecret)
	}
	return nil
}

type cronEditCommand struct {
	jobFlag
	scheduleFlags
	jobFlags
	Enable  bool `xor:"enabled" help:"Switch it on."`
	Disable bool `xor:"enabled" help:"Switch it off."`
	JSON    bool `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run changes a job.
func (c *cronEditCommand) Run(ctx context.Context, a *app) error {
	s, note, err := c.schedule(a.clock.Now())
	if err != nil {
		return err
	}
	p := protocol.CronPatch{Name: c.Name, Schedule: s, SessionTarget: c.Session, Delivery: c.delivery(), DeleteAfterRun: c.Delete}
	for _, m := range []struct {
		to   *protocol.Optional[string]
		from string
	}{{&p.Description, c.Description}, {&p.AgentID, c.Agent}, {&p.SessionKey, c.SessionKey}, {&p.Missed, c.Missed}} {
		if m.from != "" {
			*m.to = protocol.Some(m.from)
		}
	}
	if c.Message != "" || c.SystemEvent != "" || c.Model != "" || c.Thinking != "" || c.Timeout != nil {
		p.Payload = c.payload()
	}
	if c.Enable || c.Disable {
		p.Enabled = &c.Enable
	}
	jobID, err := c.find(ctx, a, c.gatewayFlags)
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(a.stderr, note)
	}
	var raw json.RawMessage
	if err := c.change(ctx, a, "cron.update", protocol.CronUpdateParams{ID: jobID, Patch: p}, &raw); err != nil {
		return err
	}
	return a.tellJob(raw, c.JSON, false)
}
