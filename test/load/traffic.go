package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"laneway/test/load/caller"
	"laneway/test/load/provider"
)

// contains says whether a JSON text holds a text, line ends aside.
func contains(encoded, text string) bool { return strings.Contains(encoded, strings.TrimSpace(text)) }

// flood is a model that says 100 KB in 5,000 pieces and 80 ms.
func flood(ctx context.Context, t *target, _ int) error {
	p := provider.Plan{Deltas: 5000, Bytes: 20, Over: 80 * time.Millisecond}
	r, err := t.turn(ctx, t.fresh(), p)
	if err != nil {
		return err
	}
	t.last.add(r.Last.Sub(r.requests[0].Last))
	t.bytes.addValue(float64(r.EventBytes) / 1e6)
	// The stock gateway takes the space at the end away.
	if strings.TrimSpace(r.Text) != strings.TrimSpace(provider.Text(p.Deltas, p.Bytes)) {
		return fmt.Errorf("of %d bytes of text the events carried %d, or others", p.Deltas*p.Bytes, len(r.Text))
	}
	return nil
}

// together is how many runs are asked for at once.
const together = 20

// burst asks for runs on one session, all at once.
func (t *target) burst(ctx context.Context, session string, p provider.Plan) (runs []*caller.Run, tags []string, err error) {
	for range together {
		tag := t.tag()
		t.provider.Expect(tag, p)
		r, err := t.client.Start(ctx, session, tag, provider.Message(tag))
		if err != nil {
			return runs, tags, err
		}
		runs, tags = append(runs, r), append(tags, tag)
	}
	return runs, tags, nil
}

// drain waits for all.
func drain(ctx context.Context, runs []*caller.Run) error {
	var failed error
	for _, r := range runs {
		if _, err := r.Wait(ctx); err != nil {
			failed = err
		}
	}
	return failed
}

// order sees whether 20 calls at once are executed as they were sent.
func order(ctx context.Context, t *target, _ int) error {
	runs, tags, err := t.burst(ctx, t.fresh(), provider.Plan{})
	if err == nil {
		err = drain(ctx, runs)
	}
	var arrived []time.Time
	for _, tag := range tags {
		for _, r := range t.provider.Requests(tag)[:min(1, len(t.provider.Requests(tag)))] {
			arrived = append(arrived, r.Arrived)
		}
		t.provider.Forget(tag)
	}
	if err != nil {
		return err
	}
	inOrder := len(arrived) == together && slices.IsSortedFunc(arrived, time.Time.Compare)
	t.ordered.addValue(map[bool]float64{true: 1}[inOrder])
	return nil
}

// unhurried is a model that takes a time that a person would not notice.
var unhurried = provider.Plan{Wait: 100 * time.Millisecond}

// neighbour compares a run beside a session with a backlog with one on an idle gateway.
func neighbour(ctx context.Context, t *target, _ int) error {
	alone, err := t.turn(ctx, t.fresh(), unhurried)
	if err != nil {
		return err
	}
	runs, tags, err := t.burst(ctx, t.fresh(), unhurried)
	if err != nil {
		return err
	}
	// The backlog is there when it has been accepted.
	if err := accepted(ctx, runs); err != nil {
		return err
	}
	beside, err := t.turn(ctx, t.fresh(), unhurried)
	err = errors.Join(err, drain(ctx, runs))
	for _, tag := range tags {
		t.provider.Forget(tag)
	}
	if err != nil {
		return err
	}
	t.alone.add(alone.Final.Sub(alone.Sent))
	t.beside.add(beside.Final.Sub(beside.Sent))
	return nil
}

func accepted(ctx context.Context, runs []*caller.Run) error {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for _, r := range runs {
		for !r.Accepted() {
			select {
			case <-poll.C:
			case <-ctx.Done():
				return fmt.Errorf("the backlog was not accepted: %w", ctx.Err())
			}
		}
	}
	return nil
}

// turns is how long the session of the step growth gets, edge how many of its last turns
// are compared with first ones.
const (
	turns = 200
	edge  = 20
)

// growth is some more turns on one session. Beside each of the last ones a fresh session
// has its first: what the machine does then falls on both.
func growth(ctx context.Context, t *target, i int) error {
	if i == 0 {
		t.long = t.fresh()
	}
	for range edge {
		if len(t.grown) >= turns-edge {
			r, err := t.turn(ctx, t.fresh(), provider.Plan{})
			if err != nil {
				return err
			}
			t.fresher.add(r.overhead())
		}
		r, err := t.turn(ctx, t.long, provider.Plan{})
		if err != nil {
			return err
		}
		t.grown.add(r.overhead())
	}
	return nil
}

// endless is a model that asks for the same tool for ever.
func endless(ctx context.Context, t *target, _ int) error {
	tag := t.tag()
	t.provider.Expect(tag, read(-1))
	defer t.provider.Forget(tag)
	before := t.gateway.Usage().RSS
	session := t.fresh()
	r, err := t.client.Start(ctx, session, tag, provider.Message(tag))
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, scaled(ctx, 15*time.Second))
	defer cancel()
	seen, err := r.Wait(limit)
	t.calls.addValue(float64(len(t.provider.Requests(tag))))
	t.growthRSS.addValue(float64(t.gateway.Usage().RSS-before) / (1 << 20))
	t.stopped.addValue(map[bool]float64{true: 1}[!seen.Final.IsZero()])
	if seen.Final.IsZero() {
		return t.client.Call(ctx, "chat.abort", map[string]any{"sessionKey": session, "runId": tag})
	}
	_ = err // that the run ended with an error is what is wanted
	return nil
}
