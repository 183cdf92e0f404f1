package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"laneway/test/load/gateway"
	"laneway/test/load/provider"
)

// step is a part of the measurement. do measures one target for the i-th time.
type step struct {
	name   string
	times  int           // how often each target is measured
	ours   int           // how often laneway is for each of these; 0: once
	within time.Duration // for each target; then it stops with what there is
	do     func(ctx context.Context, t *target, i int) error
}

// steps are in their order: memory is looked at when 200 sessions have had one turn
// each and nothing else has happened.
var steps = []step{
	{name: "warm", times: 8, ours: 4, within: 40 * time.Second, do: warm},
	{name: "latency", times: 24, ours: 5, within: 30 * time.Second, do: latency},
	{name: "tools", times: 6, ours: 3, within: 20 * time.Second, do: tools},
	{name: "memory", times: 1, within: 2 * time.Minute, do: memory},
	{name: "throughput 16", times: 1, within: time.Minute, do: throughput16},
	{name: "throughput 64", times: 1, within: 90 * time.Second, do: throughput64},
	{name: "flood", times: 5, within: 25 * time.Second, do: flood},
	{name: "order", times: 10, within: 60 * time.Second, do: order},
	{name: "neighbour", times: 3, ours: 3, within: 35 * time.Second, do: neighbour},
	{name: "growth", times: turns / edge, within: 90 * time.Second, do: growth},
	{name: "endless", times: 1, within: 30 * time.Second, do: endless},
}

// step measures all targets turn about.
func (b *bench) step(ctx context.Context, s step) error {
	if len(b.only) > 0 && !slices.Contains(b.only, s.name) {
		return nil
	}
	times := max(1, int(float64(s.times)*b.scale+0.5))
	b.sayf("%s", s.name)
	spent := make(map[*target]time.Duration)
	for i := range times {
		for _, t := range b.targets {
			if err := b.settle(ctx); err != nil {
				return err
			}
			again := 1
			if t == b.ours {
				again = max(1, s.ours)
			}
			for k := range again {
				if spent[t] > s.within || ctx.Err() != nil {
					break
				}
				begun := time.Now()
				if err := b.once(ctx, s, t, i*again+k); err != nil {
					t.failed(s.name, err)
					if len(t.failures) > 20 {
						return fmt.Errorf("%s fails again and again: %w", t.name, err)
					}
				}
				spent[t] += time.Since(begun)
			}
		}
	}
	return ctx.Err()
}

// settled is how long what a turn leaves behind may keep the other gateway's turn from
// having the machine for itself.
const settled = 150 * time.Millisecond

// settle waits that long, where there is another gateway.
func (b *bench) settle(ctx context.Context) error {
	if len(b.targets) == 1 {
		return ctx.Err()
	}
	select {
	case <-time.After(settled):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// once measures one target, in a time that is bounded also for one that hangs.
func (b *bench) once(ctx context.Context, s step, t *target, i int) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.within, time.Minute))
	defer cancel()
	return s.do(context.WithValue(ctx, scaleKey{}, b.scale), t, i)
}

type scaleKey struct{}

// scaled is a time of a step that is not made of repetitions.
func scaled(ctx context.Context, d time.Duration) time.Duration {
	f, _ := ctx.Value(scaleKey{}).(float64)
	return max(time.Second/2, time.Duration(float64(d)*f))
}

func warm(ctx context.Context, t *target, _ int) error {
	_, err := t.turn(ctx, t.fresh(), provider.Plan{})
	return err
}

// latency is one turn on a fresh session of an idle gateway.
func latency(ctx context.Context, t *target, _ int) error {
	r, err := t.turn(ctx, t.fresh(), provider.Plan{})
	if err != nil {
		return err
	}
	t.accept.add(r.Accepted.Sub(r.Sent))
	t.model.add(r.requests[0].Arrived.Sub(r.Sent))
	if !r.First.IsZero() {
		t.first.add(r.First.Sub(r.requests[0].First))
	}
	t.overhead.add(r.overhead())
	return nil
}

// rounds is how many tool rounds a turn of the step tools has.
const rounds = 5

// read asks for the small file.
func read(n int) provider.Plan {
	return provider.Plan{Rounds: n, Tool: "read", Args: `{"path":"` + gateway.Note + `"}`}
}

// tools is a turn that reads the small file five times.
func tools(ctx context.Context, t *target, _ int) error {
	r, err := t.turn(ctx, t.fresh(), read(rounds))
	if err != nil {
		return err
	}
	if len(r.requests) != rounds+1 {
		return fmt.Errorf("%d requests, not %d", len(r.requests), rounds+1)
	}
	for i := range rounds {
		if !contains(r.requests[i+1].Result, gateway.NoteText) {
			return fmt.Errorf("the tool did not read the file: %.200s", r.requests[i+1].Result)
		}
		t.round.add(r.requests[i+1].Arrived.Sub(r.requests[i].Done))
	}
	return nil
}

// sessions is when memory is looked at.
const sessions = 200

// memory makes the 200 sessions full, four at a time, or as many as the time lets it.
func memory(ctx context.Context, t *target, _ int) error {
	until := time.Now().Add(scaled(ctx, 80*time.Second))
	work := make(chan string)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range 4 {
		wg.Go(func() {
			for session := range work {
				if _, err := t.turn(ctx, session, provider.Plan{}); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	for t.sessions.Load() < sessions && time.Now().Before(until) && ctx.Err() == nil {
		work <- t.fresh()
	}
	close(work)
	wg.Wait()
	if failed != nil {
		return failed
	}
	t.filled = t.sessions.Load()
	t.rss.addValue(float64(t.gateway.Usage().RSS) / (1 << 20))
	return nil
}

func throughput16(ctx context.Context, t *target, _ int) error {
	return t.throughput(ctx, 16, scaled(ctx, 12*time.Second), &t.runs16, &t.accept16, &t.cpu16)
}

// With 64 sessions the stock gateway takes half a minute for one run of each: the time
// is for those that are quicker.
func throughput64(ctx context.Context, t *target, _ int) error {
	return t.throughput(ctx, 64, scaled(ctx, 5*time.Second), &t.runs64, &t.accept64, &t.cpu64)
}

// throughput keeps n sessions busy for a time; runs that have begun are waited for.
func (t *target) throughput(ctx context.Context, n int, during time.Duration, runs, accepts, cpu *sample) error {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = t.fresh()
	}
	var mu sync.Mutex
	var failed error
	done := 0
	before := t.gateway.Usage().CPU
	begun := time.Now()
	until := begun.Add(during)
	var last time.Time
	var wg sync.WaitGroup
	for _, key := range keys {
		wg.Go(func() {
			for time.Now().Before(until) && ctx.Err() == nil {
				r, err := t.turn(ctx, key, provider.Plan{})
				mu.Lock()
				if err != nil {
					failed = err
					mu.Unlock()
					return
				}
				done++
				accepts.add(r.Accepted.Sub(r.Sent))
				if r.Final.After(last) {
					last = r.Final
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if done > 0 {
		// To the last reply: otherwise the runs of the last moment would count for more.
		runs.addValue(float64(done) / last.Sub(begun).Seconds())
		cpu.addValue((t.gateway.Usage().CPU - before).Seconds() * 1000 / float64(done))
	}
	return failed
}
