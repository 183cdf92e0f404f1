package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"laneway/test/load/caller"
	"laneway/test/load/gateway"
	"laneway/test/load/provider"
)

// target is a gateway that is measured, and what was found.
type target struct {
	figures

	name     string
	provider *provider.Server
	gateway  *gateway.Gateway
	client   *caller.Client
	sessions atomic.Int64 // that were used so far
	tags     atomic.Int64
	failures []string
}

// start starts it, and measures the way to its hello and its first run.
func (t *target) start(ctx context.Context, launch func() (*gateway.Gateway, error)) (err error) {
	if t.gateway, err = launch(); err != nil {
		return err
	}
	hello, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if t.client, err = t.gateway.Connect(hello); err != nil {
		return err
	}
	t.hello.add(t.client.Hello.Sub(t.gateway.Started))
	first, err := t.turn(hello, t.fresh(), provider.Plan{})
	if err != nil {
		return fmt.Errorf("first run on %s: %w", t.name, err)
	}
	t.firstRun.add(first.Final.Sub(first.Sent))
	return nil
}

// stop ends it; what was measured stays.
func (t *target) stop() {
	if t.client != nil {
		t.client.Close()
		t.client = nil
	}
	if t.gateway != nil {
		t.gateway.Stop()
	}
	t.sessions.Store(0)
}

// fresh is the key of a session that was never used.
func (t *target) fresh() string {
	return "agent:main:load-" + strconv.FormatInt(t.sessions.Add(1), 10)
}

// tag names a run. Both gateways share the provider, so it names the gateway too.
func (t *target) tag() string {
	return t.name + "-" + strconv.FormatInt(t.tags.Add(1), 10)
}

// turn is a run as the client saw it, and its requests as the provider did.
type turn struct {
	caller.Seen
	requests []provider.Request
}

// turn makes a run and waits for its end.
func (t *target) turn(ctx context.Context, session string, p provider.Plan) (turn, error) {
	tag := t.tag()
	t.provider.Expect(tag, p)
	defer t.provider.Forget(tag)
	r, err := t.client.Start(ctx, session, tag, provider.Message(tag))
	if err != nil {
		return turn{}, err
	}
	seen, err := r.Wait(ctx)
	out := turn{seen, t.provider.Requests(tag)}
	if err == nil && len(out.requests) == 0 {
		err = fmt.Errorf("run %s ended well without a model request", tag)
	}
	return out, err
}

// overhead is what of the turn was not spent waiting for the provider.
func (t turn) overhead() time.Duration {
	d := t.Final.Sub(t.Sent)
	for _, r := range t.requests {
		d -= r.Done.Sub(r.Arrived)
	}
	return d
}

// failed notes a run that did not end well.
func (t *target) failed(step string, err error) {
	t.failures = append(t.failures, fmt.Sprintf("%s, %s: %v", t.name, step, err))
}
