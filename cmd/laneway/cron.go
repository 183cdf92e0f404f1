package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"laneway/shared/clock"
	"laneway/shared/protocol"
)

// cronCommands keep scheduled jobs.
type cronCommands struct {
	Add    cronAddCommand    `cmd:"" help:"Let an agent run at a time, or again and again."`
	List   cronListCommand   `cmd:"" help:"List jobs, the next first."`
	Show   cronShowCommand   `cmd:"" help:"Show a job."`
	Run    cronRunCommand    `cmd:"" help:"Run a job now, out of turn."`
	Runs   cronRunsCommand   `cmd:"" help:"List the past runs of a job, the newest first."`
	Edit   cronEditCommand   `cmd:"" help:"Change a job."`
	Rm     cronRmCommand     `cmd:"" help:"Remove a job."`
	Status cronStatusCommand `cmd:"" help:"Say what runs and what comes next."`
}

var scopesAdmin = []string{protocol.ScopeAdmin, protocol.ScopeRead, protocol.ScopeWrite}

// change makes a request with all the rights that it may need.
func (f gatewayFlags) change(ctx context.Context, a *app, method string, params, out any) error {
	t, err := f.target(a)
	if err != nil {
		return err
	}
	return a.untilSignal(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		return t.call(ctx, scopesAdmin, method, params, out)
	})
}

// jobFlag names a job by its id, the start of one, or its name.
type jobFlag struct {
	Job string `arg:"" help:"Id of the job, as cron list prints it, a start of it, or its name."`
}

// find is the id of the job that was meant.
func (f jobFlag) find(ctx context.Context, a *app, g gatewayFlags) (string, error) {
	var hits []protocol.CronJob
	jobs, err := g.jobs(ctx, a, true)
	if err != nil {
		return "", err
	}
	for _, j := range jobs {
		if j.ID == f.Job {
			return j.ID, nil
		}
		if strings.HasPrefix(j.ID, f.Job) || j.Name == f.Job {
			hits = append(hits, j)
		}
	}
	switch len(hits) {
	case 0:
		return f.Job, nil // the gateway says what it thinks of it
	case 1:
		return hits[0].ID, nil
	}
	return "", fmt.Errorf("%q is more than one job: %s and %s", f.Job, hits[0].ID, hits[1].ID)
}

// jobs lists all jobs, page by page.
func (f gatewayFlags) jobs(ctx context.Context, a *app, disabled bool) ([]protocol.CronJob, error) {
	limit := int64(200)
	params := protocol.CronListParams{IncludeDisabled: disabled, Limit: &limit}
	var all []protocol.CronJob
	for {
		var page protocol.CronList
		if err := f.ask(ctx, a, "cron.list", params, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Jobs...)
		if page.NextOffset == nil {
			return all, nil
		}
		next := int64(*page.NextOffset)
		params.Offset = &next
	}
}

type cronListCommand struct {
	All  bool `short:"a" help:"Those that are off, too."`
	JSON bool `name:"json" help:"Print a JSON object."`

	gatewayFlags
}

// Run lists jobs.
func (c *cronListCommand) Run(ctx context.Context, a *app) error {
	jobs, err := c.jobs(ctx, a, c.All)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(map[string]any{"jobs": append([]protocol.CronJob{}, jobs...)})
	}
	if len(jobs) == 0 {
		fmt.Fprintln(a.stderr, `no jobs: "laneway cron add --every 1h --message …" makes one`)
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSCHEDULE\tNEXT\tLAST\tSTATE")
	for _, j := range jobs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", j.ID, clipped(j.Name, 32), scheduleText(j.Schedule), when(&j.State.NextRunAtMs), lastRun(j.State), jobState(&j))
	}
	return w.Flush()
}

// scheduleText is a schedule in a few words.
func scheduleText(s protocol.CronSchedule) string {
	switch {
	case s.Kind == "every" && s.EveryMs != nil:
		return "every " + span(time.Duration(*s.EveryMs)*time.Millisecond)
	case s.Kind == "at":
		return "at " + s.At
	}
	text := s.Expr
	if s.TZ != "" {
		text += " " + s.TZ
	}
	return text
}

// span is a duration without what is zero in it.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return clock.Short(d)
}

func lastRun(s protocol.CronState) string {
	if s.LastRunStatus == "" {
		return "-"
	}
	return s.LastRunStatus
}

func jobState(j *protocol.CronJob) string {
	switch {
	case j.State.RunningRunID != "":
		return "running"
	case j.State.AutoDisabled != nil:
		return "off (" + j.State.AutoDisabled.Reason + ")"
	case !j.Enabled:
		return "off"
	case j.State.ConsecutiveErrors > 0:
		return fmt.Sprintf("%d errors", j.State.ConsecutiveErrors)
	}
	return "on"
}

// clipped keeps the first characters of a text, on one line.
func clipped(text string, most int) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) <= most {
		return string(r)
	}
	return string(r[:most-1]) + "…"
}

type cronShowCommand struct {
	jobFlag
	JSON bool `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run shows a job.
func (c *cronShowCommand) Run(ctx context.Context, a *app) error {
	jobID, err := c.find(ctx, a, c.gatewayFlags)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	// With all rights that the token has: the secret of webhooks is for admins.
	if err := c.change(ctx, a, "cron.get", protocol.CronJobParams{ID: jobID}, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var j protocol.CronJob
	if err := decode(raw, &j); err != nil {
		return err
	}
	return printJob(a.stdout, &j)
}

func printJob(out io.Writer, j *protocol.CronJob) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	row("id", j.ID)
	row("name", j.Name)
	row("about", j.Description)
	row("state", jobState(j))
	row("schedule", scheduleText(j.Schedule))
	row("missed", j.Missed)
	row("next", when(&j.State.NextRunAtMs))
	row("agent", cmp.Or(j.AgentID, "main"))
	row("session", cmp.Or(j.SessionKey, j.SessionTarget))
	row("message", clipped(cmp.Or(j.Payload.Message, j.Payload.Text), 200))
	row("model", j.Payload.Model.Value)
	if d := j.Delivery; d != nil && d.Mode == "webhook" {
		row("webhook", d.To.Value)
		row("secret", j.WebhookSecret)
	}
	if s := j.State; s.LastRunStatus != "" {
		row("last", strings.TrimSpace(when(&s.LastRunAtMs)+" "+s.LastRunStatus+" "+s.LastError))
		row("delivery", s.LastDeliveryStatus)
	}
	if s := j.State; s.RunningRunID != "" {
		row("running", s.RunningRunID+" since "+when(&s.RunningAtMs))
	}
	return w.Flush()
}

type cronRunCommand struct {
	jobFlag
	Due  bool `help:"Only if it is due."`
	Wait bool `help:"Wait for its end, and print the answer."`
	JSON bool `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run runs a job.
func (c *cronRunCommand) Run(ctx context.Context, a *app) error {
	jobID, err := c.find(ctx, a, c.gatewayFlags)
	if err != nil {
		return err
	}
	params := protocol.CronRunParams{ID: jobID}
	if c.Due {
		params.Mode = "due"
	}
	var raw json.RawMessage
	if err := c.change(ctx, a, "cron.run", params, &raw); err != nil {
		return err
	}
	var res protocol.CronRunResult
	if err := decode(raw, &res); err != nil {
		return err
	}
	if c.JSON && !c.Wait {
		if err := a.printJSON(raw); err != nil || res.Enqueued {
			return err
		}
		return exitError(exitFailure)
	}
	if !res.Enqueued {
		return notRun(&res)
	}
	if !c.Wait {
		fmt.Fprintln(a.stdout, res.RunID)
		return nil
	}
	fmt.Fprintf(a.stderr, "run %s\n", res.RunID)
	wait := waitCommand{RunID: res.RunID, Timeout: 3600, JSON: c.JSON, gatewayFlags: c.gatewayFlags}
	return wait.Run(ctx, a)
}

// notRun says why a job was not run.
func notRun(res *protocol.CronRunResult) error {
	switch res.Reason {
	case "already-running":
		age := "a while"
		if res.AgeMs != nil {
			age = (time.Duration(*res.AgeMs) * time.Millisecond).Round(time.Second).String()
		}
		return fmt.Errorf("the job is running already: %s, for %s", res.RunID, age)
	case "not-due":
		return errors.New("the job is not due")
	case "disabled":
		return errors.New("the job is off")
	}
	return fmt.Errorf("the job was not run: %s", res.Reason)
}

type cronRunsCommand struct {
	jobFlag
	Limit int64 `default:"20" placeholder:"N" help:"At most so many."`
	JSON  bool  `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run lists past runs.
func (c *cronRunsCommand) Run(ctx context.Context, a *app) error {
	jobID, err := c.find(ctx, a, c.gatewayFlags)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := c.ask(ctx, a, "cron.runs", protocol.CronRunsParams{ID: jobID, Limit: &c.Limit}, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var list protocol.CronRuns
	if err := decode(raw, &list); err != nil {
		return err
	}
	if len(list.Entries) == 0 {
		fmt.Fprintln(a.stderr, "it has not run yet")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tSTATUS\tTOOK\tWHAT\tRUN")
	for _, e := range list.Entries {
		what := cmp.Or(e.Error, e.Summary, "-")
		if e.Slots > 1 {
			what = fmt.Sprintf("%s (%d times)", what, e.Slots)
		}
		took := "-"
		if e.DurationMs > 0 {
			took = (time.Duration(e.DurationMs) * time.Millisecond).Round(100 * time.Millisecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", when(&e.RunAtMs), e.Status, took, clipped(what, 60), cmp.Or(e.RunID, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if list.HasMore {
		fmt.Fprintf(a.stderr, "there are more: --limit %d\n", 4*c.Limit)
	}
	return nil
}

type cronRmCommand struct {
	jobFlag
	gatewayFlags
}

// Run removes a job.
func (c *cronRmCommand) Run(ctx context.Context, a *app) error {
	jobID, err := c.find(ctx, a, c.gatewayFlags)
	if err != nil {
		return err
	}
	if err := c.change(ctx, a, "cron.remove", protocol.CronJobParams{ID: jobID}, nil); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "removed %s\n", jobID)
	return nil
}

type cronStatusCommand struct {
	JSON bool `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run says what runs and what comes next.
func (c *cronStatusCommand) Run(ctx context.Context, a *app) error {
	var raw json.RawMessage
	if err := c.ask(ctx, a, "cron.status", protocol.NoParams{}, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var s protocol.CronStatus
	if err := decode(raw, &s); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%d jobs, next at %s\n", s.Jobs, when(s.NextWakeAtMs))
	for _, r := range s.Running {
		fmt.Fprintf(a.stdout, "%s runs since %s: %s\n", r.JobID, (time.Duration(r.AgeMs) * time.Millisecond).Round(time.Second), r.RunID)
	}
	return nil
}
