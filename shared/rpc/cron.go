package rpc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"laneway/shared/cron"
	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
)

func (g *Gateway) cronMethods() map[string]handler {
	if g.Jobs == nil {
		return nil
	}
	return map[string]handler{
		"cron.add":    g.cronAdd,
		"cron.update": g.cronUpdate,
		"cron.remove": g.cronRemove,
		"cron.get":    g.cronGet,
		"cron.list":   g.cronList,
		"cron.status": g.cronStatus,
		"cron.run":    g.cronRun,
		"cron.runs":   g.cronRuns,
		"wake":        g.wake,
	}
}

// cronError is an error of a job's change as its caller may see it.
func cronError(r *Request, jobID string, err error) error {
	var f *cron.FieldError
	switch {
	case errors.As(err, &f):
		return protocol.InvalidParams(r.Method, "at /"+strings.ReplaceAll(f.Field, ".", "/")+": "+f.Text)
	case errors.Is(err, cron.ErrUnknown):
		return protocol.CronJobNotFound(jobID)
	case errors.Is(err, cron.ErrChanged):
		return protocol.Invalid("the job was changed meanwhile").With("reason", "cron-config-changed")
	case errors.Is(err, cron.ErrTooMany):
		return protocol.Invalid("too many jobs: at most " + strconv.Itoa(cron.MaxJobs))
	}
	return err
}

// agentIsThere refuses a job of an agent that is not configured.
func (g *Gateway) agentIsThere(ctx context.Context, r *Request, agentID string) error {
	if agentID == "" {
		return nil
	}
	return g.known(ctx, r, agentID)
}

func (g *Gateway) cronAdd(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CronAddParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if err := g.agentIsThere(ctx, r, p.AgentID.Value); err != nil {
		return err
	}
	j, err := g.Jobs.Add(ctx, r.Tenant(), &p)
	if err != nil {
		return cronError(r, "", err)
	}
	return r.Reply(j.Wire(true))
}

func (g *Gateway) cronUpdate(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CronUpdateParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if err := g.agentIsThere(ctx, r, p.Patch.AgentID.Value); err != nil {
		return err
	}
	j, err := g.Jobs.Update(ctx, r.Tenant(), &p)
	if err != nil {
		err = cronError(r, p.ID, err)
		// The fields of an update are members of its patch.
		if e, ok := errors.AsType[*protocol.Error](err); ok {
			e.Message = strings.Replace(e.Message, "params: at /", "params: at /patch/", 1)
		}
		return err
	}
	return r.Reply(j.Wire(true))
}

func (g *Gateway) cronRemove(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CronJobParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if err := g.Jobs.Remove(ctx, r.Tenant(), p.ID); err != nil {
		return cronError(r, p.ID, err)
	}
	return r.Reply(protocol.CronRemoved{OK: true, Removed: true})
}

func (g *Gateway) cronGet(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CronJobParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	j, err := g.Jobs.Get(ctx, r.Tenant(), p.ID)
	if err != nil {
		return cronError(r, p.ID, err)
	}
	return r.Reply(j.Wire(r.Admin()))
}

const (
	cronListLimit = 50
	cronRunsLimit = 50
)

func (g *Gateway) cronList(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CronListParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	all, err := g.Jobs.List(ctx, r.Tenant())
	if err != nil {
		return err
	}
	jobs := make([]protocol.CronJob, 0, len(all))
	var seen strings.Builder
	for _, j := range all {
		w := j.Wire(r.Admin())
		if listed(&p, &w) {
			jobs = append(jobs, w)
			seen.WriteString(w.ID + " " + w.ConfigRevision + "\n")
		}
	}
	sortJobs(&p, jobs)
	page, at := pageOf(jobs, p.Offset, p.Limit, cronListLimit)
	return r.Reply(protocol.CronList{
		Jobs: page, Total: len(jobs), Offset: at.offset, Limit: at.limit, HasMore: at.next != nil, NextOffset: at.next,
		SnapshotRevision: id.Hash(seen.String()),
	})
}

// listed says whether a job is among those that a list asks for.
func listed(p *protocol.CronListParams, j *protocol.CronJob) bool {
	want := p.Enabled
	if want == "" {
		want = "enabled"
		if p.IncludeDisabled {
			want = "all"
		}
	}
	text := strings.ToLower(strings.Join([]string{j.ID, j.Name, j.DisplayName, j.Description, j.Payload.Message, j.Payload.Text}, "\n"))
	switch {
	case want == "enabled" && !j.Enabled, want == "disabled" && j.Enabled,
		p.AgentID != "" && cmp.Or(j.AgentID, session.DefaultAgent) != p.AgentID,
		p.SessionKey != "" && j.SessionKey != p.SessionKey,
		p.ScheduleKind != "" && p.ScheduleKind != "all" && p.ScheduleKind != j.Schedule.Kind,
		p.LastRunStatus != "" && p.LastRunStatus != "all" && p.LastRunStatus != cmp.Or(j.State.LastRunStatus, "unknown"),
		p.Trigger == "conditional",
		!strings.Contains(text, strings.ToLower(p.Query)):
		return false
	}
	return true
}

func sortJobs(p *protocol.CronListParams, jobs []protocol.CronJob) {
	slices.SortStableFunc(jobs, func(a, b protocol.CronJob) int {
		var c int
		switch p.SortBy {
		case "name":
			c = strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		case "updatedAtMs":
			c = cmp.Compare(a.UpdatedAtMs, b.UpdatedAtMs)
		default: // those that are never due come last
			c = cmp.Compare(uint64(a.State.NextRunAtMs-1), uint64(b.State.NextRunAtMs-1))
		}
		if p.SortDir == "desc" {
			c = -c
		}
		return c
	})
}

// place is where a page is in what it is a page of.
type place struct {
	offset, limit int
	next          *int
}

func pageOf[T any](all []T, offset, limit *int64, most int) ([]T, place) {
	at := place{limit: most}
	if offset != nil {
		at.offset = int(min(*offset, int64(len(all))))
	}
	if limit != nil {
		at.limit = int(*limit)
	}
	end := min(at.offset+at.limit, len(all))
	if end < len(all) {
		at.next = &end
	}
	return append([]T{}, all[at.offset:end]...), at
}

func (g *Gateway) cronStatus(ctx context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.NoParams](r.Method, r.Params); err != nil {
		return err
	}
	all, err := g.Jobs.List(ctx, r.Tenant())
	if err != nil {
		return err
	}
	out := protocol.CronStatus{Enabled: true, Jobs: len(all), Running: []protocol.CronRunning{}}
	now := g.Clock.Now().UnixMilli()
	for _, j := range all {
		w := j.Wire(false)
		if next := w.State.NextRunAtMs; next != 0 && (out.NextWakeAtMs == nil || next < *out.NextWakeAtMs) {
			out.NextWakeAtMs = &next
		}
		if w.State.RunningRunID != "" {
			out.Running = append(out.Running, protocol.CronRunning{JobID: w.ID, RunID: w.State.RunningRunID, AgeMs: now - w.State.RunningAtMs})
		}
	}
	return r.Reply(out)
}

func (g *Gateway) cronRun(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CronRunParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	f, err := g.Jobs.Run(ctx, r.Tenant(), p.ID, p.Mode)
	if err != nil {
		return cronError(r, p.ID, err)
	}
	out := protocol.CronRunResult{OK: true, Enqueued: f.Reason == "", RunID: f.RunID, Reason: f.Reason}
	if f.Reason != "" {
		no := false
		out.Ran = &no
	}
	if f.Reason == cron.ReasonRunning {
		age := f.Age.Milliseconds()
		out.AgeMs = &age
	}
	return r.Reply(out)
}

func (g *Gateway) cronRuns(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.CronRunsParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if p.ID == "" && p.Scope != "all" {
		return protocol.InvalidParams(r.Method, "must have required property 'id'")
	}
	all, err := g.entries(ctx, r, &p)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e protocol.CronEntry) bool { return !wanted(&p, &e) })
	slices.SortStableFunc(all, func(a, b protocol.CronEntry) int {
		if p.SortDir == "asc" {
			a, b = b, a
		}
		return cmp.Compare(b.RunAtMs, a.RunAtMs)
	})
	page, at := pageOf(all, p.Offset, p.Limit, cronRunsLimit)
	return r.Reply(protocol.CronRuns{Entries: page, Total: len(all), Offset: at.offset, Limit: at.limit, HasMore: at.next != nil, NextOffset: at.next})
}

// entries is the history of one job, or of all. That of a job which is no more can be
// asked for by its id.
func (g *Gateway) entries(ctx context.Context, r *Request, p *protocol.CronRunsParams) ([]protocol.CronEntry, error) {
	var jobs []*cron.Job
	if p.ID == "" {
		var err error
		if jobs, err = g.Jobs.List(ctx, r.Tenant()); err != nil {
			return nil, err
		}
	} else {
		j, err := g.Jobs.Get(ctx, r.Tenant(), p.ID)
		switch {
		case errors.Is(err, cron.ErrUnknown):
			past, err := g.Jobs.History(ctx, r.Tenant(), p.ID)
			if err == nil && len(past) == 0 {
				err = protocol.CronJobNotFound(p.ID)
			}
			return past, err
		case err != nil:
			return nil, err
		}
		jobs = []*cron.Job{j}
	}
	past := make([][]protocol.CronEntry, len(jobs))
	eg, gctx := errgroup.WithContext(ctx)
	eg.SetLimit(8)
	for i, j := range jobs {
		if p.AgentID != "" && cmp.Or(j.AgentID, session.DefaultAgent) != p.AgentID {
			continue
		}
		eg.Go(func() (err error) {
			past[i], err = g.Jobs.History(gctx, r.Tenant(), j.ID)
			for k := range past[i] {
				past[i][k].JobName = j.Name
			}
			return err
		})
	}
	err := eg.Wait()
	return slices.Concat(past...), err
}

func wanted(p *protocol.CronRunsParams, e *protocol.CronEntry) bool {
	switch {
	case p.RunID != "" && e.RunID != p.RunID,
		p.Status != "" && p.Status != "all" && e.Status != p.Status,
		len(p.Statuses) > 0 && !slices.Contains(p.Statuses, e.Status),
		p.DeliveryStatus != "" && e.DeliveryStatus != p.DeliveryStatus,
		len(p.DeliveryStatuses) > 0 && !slices.Contains(p.DeliveryStatuses, e.DeliveryStatus),
		!strings.Contains(strings.ToLower(e.Summary+"\n"+e.Error+"\n"+e.JobName), strings.ToLower(p.Query)):
		return false
	}
	return true
}

// wake puts a text before the agent. There are no heartbeats here, so the next one is
// now too.
func (g *Gateway) wake(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.WakeParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, agent, err := g.sessionRef(ctx, r, p.SessionKey, p.AgentID)
	if err != nil {
		return err
	}
	hash, err := requestHash(r.Method, p)
	if err != nil {
		return err
	}
	runID := "wake:" + g.NewID()
	acc, err := g.Lanes.Accept(ctx, lane.Call{
		ConnectionID: r.Conn.ID, FrameAt: r.frame.At, Internal: true,
		Run: run.Status{
			Ref: run.RefOf(ref.Tenant, runID), RunID: runID, SessionKey: ref.Key, AgentID: agent,
			Lane: laneOf(""), Method: r.Method, RequestHash: hash, Input: run.Input{Message: p.Text},
		},
	})
	if err != nil {
		return err
	}
	return r.Reply(protocol.Woken{OK: true, RunID: acc.Status.RunID})
}
