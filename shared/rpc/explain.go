package rpc

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"laneway/shared/diag"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/timeout"
)

// diagMethods are for whoever asks why a session is quiet.
func (g *Gateway) diagMethods() map[string]handler {
	return map[string]handler{
		"sessions.explain": g.sessionsExplain,
		"runs.list":        g.runsList,
		"runs.abort":       g.runsAbort,
		"runs.cost":        g.runsCost,
		"dlq.list":         g.dlqList,
		"dlq.retry":        g.dlqRetry,
		"dlq.purge":        g.dlqPurge,
	}
}

// sessionsExplain says what a session is doing and what happens next by itself. It
// reads the tables as they are: nothing is remembered from anywhere else.
func (g *Gateway) sessionsExplain(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionKeyParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	v, err := g.knownSession(ctx, ref)
	if err != nil {
		return err
	}
	f, err := g.facts(ctx, v.m)
	if err != nil {
		return err
	}
	f.Settings = g.settings(ref, v.prefs())
	return r.Reply(diag.Explain(f))
}

// settings are what holds in a session's place and by its preferences.
func (g *Gateway) settings(ref session.Ref, e session.Entry) protocol.ExplainedSettings {
	p, rules := session.PlaceOf(ref.Key), g.entryRules(ref, e)
	return protocol.ExplainedSettings{
		Channel: p.Channel, ChatType: p.Type, QueueMode: rules.Mode, QueueDebounceMs: rules.Debounce, QueueCap: rules.Cap,
		QueueDrop: rules.Drop, InboundMs: g.Inbound.For(p.Channel).Milliseconds(), Reset: g.Reset.For(p).String(),
	}
}

// facts reads what a session is explained from.
func (g *Gateway) facts(ctx context.Context, m session.Meta) (diag.Facts, error) {
	f := diag.Facts{
		Meta: m, Now: g.Clock.Now(), Times: g.Claims.Times, Thresholds: g.Diagnostics.WithDefaults(), RunTimeout: timeout.Run,
	}
	if d, ok := g.Directory.(Preferences); ok {
		p, err := d.Preferences(ctx, m.Tenant)
		if err != nil {
			return f, err
		}
		f.RunTimeout = cmp.Or(p.RunTimeout, f.RunTimeout)
	}
	in, err := g.inputs(ctx, &m)
	if err != nil {
		return f, err
	}
	f.Waiting = in.waits
	eg, gctx := errgroup.WithContext(ctx)
	eg.Go(func() (err error) {
		f.Input, err = diag.Look(gctx, g.Store, m, f.Now, g.Claims.Times.Slack)
		return err
	})
	eg.Go(func() (err error) {
		f.NextWake, _, err = g.Lanes.NextWake(gctx, m)
		return err
	})
	eg.Go(func() (err error) {
		f.Unsettled, err = g.runIDs(gctx, m.Tenant, m.Unsettled)
		return err
	})
	if m.Active != "" {
		eg.Go(func() error {
			st, err := run.Load(gctx, g.Store, run.Ref{Tenant: m.Tenant, Run: m.Active})
			if errors.Is(err, run.ErrUnknown) {
				return nil
			}
			f.Active = &st
			return err
		})
	}
	return f, eg.Wait()
}
