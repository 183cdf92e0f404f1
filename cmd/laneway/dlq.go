package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/rpc"
)

// dlqCommands look at wake-ups and timers that failed too often. Nothing is lost with
// one: the tables know its work, and the watchdog sees to it.
type dlqCommands struct {
	List  dlqListCommand  `cmd:"" help:"List what was put aside."`
	Retry dlqRetryCommand `cmd:"" help:"Send it again."`
	Purge dlqPurgeCommand `cmd:"" help:"Forget it: what it was for is done all the same."`
}

// dlqFlags say where the dead letters are.
type dlqFlags struct {
	Lane    string `enum:",main,cron,subagent,timers" default:"" placeholder:"LANE" help:"Those of one lane: main, cron, subagent or timers (default: all)."`
	Backend string `enum:"gateway,aws" default:"gateway" help:"Where to look: gateway, which serve answers for; or aws: the queues of a stack, with this machine's AWS credentials."`
	Stack   string `default:"laneway" placeholder:"NAME" help:"With --backend aws: whose queues (${default})."`
	JSON    bool   `name:"json" help:"Print one JSON object."`

	gatewayFlags
}

// deadLetters are the dead-letter queues of a stack, as its owner reaches them.
type deadLetters struct {
	store queue.DeadLetterStore
	lanes []queue.Lane // that have one; empty: the timers
}

// named are the lanes that a command is about.
func (d deadLetters) named(lane string) ([]queue.Lane, error) {
	if lane == "" {
		return d.lanes, nil
	}
	l := queue.Lane(lane)
	if lane == protocol.DLQTimers {
		l = ""
	}
	if !slices.Contains(d.lanes, l) {
		return nil, fmt.Errorf("--lane %s: all lanes of this stack share one dead-letter queue: leave it out, or say timers", lane)
	}
	return []queue.Lane{l}, nil
}

// do makes a request of the gateway, or the same of the queues themselves.
func (f dlqFlags) do(ctx context.Context, a *app, method string, params, out any, direct func(context.Context, deadLetters) (any, error)) error {
	var raw json.RawMessage
	err := a.untilSignal(ctx, func(ctx context.Context) error {
		if f.Backend == backendAWS {
			d, err := a.openDead(ctx, f.Stack)
			if err != nil {
				return err
			}
			v, err := direct(ctx, d)
			if err != nil {
				return err
			}
			raw, err = protocol.Marshal(v)
			return err
		}
		t, err := f.target(a)
		if err != nil {
			return err
		}
		return t.call(ctx, scopesAdmin, method, params, &raw)
	})
	if err != nil {
		return err
	}
	if f.JSON {
		return a.printJSON(raw)
	}
	return decode(raw, out)
}

type dlqListCommand struct {
	Limit int64 `default:"100" placeholder:"N" help:"At most so many."`

	dlqFlags
}

// Run lists dead letters.
func (c *dlqListCommand) Run(ctx context.Context, a *app) error {
	var list protocol.DLQList
	err := c.do(ctx, a, "dlq.list", protocol.DLQListParams{Lane: c.Lane, Limit: &c.Limit}, &list, func(ctx context.Context, d deadLetters) (any, error) {
		lanes, err := d.named(c.Lane)
		if err != nil {
			return nil, err
		}
		out := protocol.DLQList{Letters: []protocol.DeadLetter{}}
		for _, l := range lanes {
			found, err := d.store.DeadLetters(ctx, l, int(c.Limit)+1-len(out.Letters))
			if err != nil {
				return nil, err
			}
			for _, x := range found {
				if out.HasMore = len(out.Letters) == int(c.Limit); out.HasMore {
					return out, nil
				}
				out.Letters = append(out.Letters, rpc.DeadLetterRow(l, x))
			}
		}
		return out, nil
	})
	if err != nil || c.JSON {
		return err
	}
	if len(list.Letters) == 0 {
		fmt.Fprintln(a.stderr, "nothing was put aside")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LANE\tKIND\tSINCE\tTRIES\tTENANT\tSESSION\tREASON")
	for _, d := range list.Letters {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", d.Lane, d.Kind, when(&d.At), d.Receives, dash(d.Tenant), dash(d.SessionKey), dash(d.Reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if list.HasMore {
		fmt.Fprintf(a.stderr, "there are more: --limit %d\n", 4*c.Limit)
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type dlqRetryCommand struct{ dlqFlags }

// Run sends dead letters again.
func (c *dlqRetryCommand) Run(ctx context.Context, a *app) error {
	return c.each(ctx, a, "dlq.retry", "sent again", queue.DeadLetterStore.Redrive)
}

type dlqPurgeCommand struct{ dlqFlags }

// Run forgets dead letters.
func (c *dlqPurgeCommand) Run(ctx context.Context, a *app) error {
	return c.each(ctx, a, "dlq.purge", "forgotten", queue.DeadLetterStore.Purge)
}

func (f dlqFlags) each(ctx context.Context, a *app, method, what string, do func(queue.DeadLetterStore, context.Context, queue.Lane) (int, error)) error {
	var done protocol.DLQDone
	err := f.do(ctx, a, method, protocol.DLQParams{Lane: f.Lane}, &done, func(ctx context.Context, d deadLetters) (any, error) {
		lanes, err := d.named(f.Lane)
		if err != nil {
			return nil, err
		}
		out := protocol.DLQDone{OK: true, Lanes: map[string]int{}}
		for _, l := range lanes {
			n, derr := do(d.store, ctx, l)
			out.Count += n
			out.Lanes[cmpLane(l)] = n
			err = errors.Join(err, derr)
		}
		return out, err
	})
	if err != nil || f.JSON {
		return err
	}
	var parts []string
	for lane, n := range done.Lanes {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", n, lane))
		}
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		fmt.Fprintln(a.stderr, "nothing was put aside")
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", what, strings.Join(parts, ", "))
	return nil
}

func cmpLane(l queue.Lane) string {
	if l == "" {
		return protocol.DLQTimers
	}
	return string(l)
}
