package diag_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/claim"
	"laneway/shared/diag"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/queue"
	"laneway/shared/table"
	"laneway/test/backends"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a world with somebody who looks.
type bench struct {
	*lanetest.World
	t       *testing.T
	diag    *diag.Service
	ops     *operators
	metrics bytes.Buffer
	log     *lanetest.Log
}

// each runs a test over every store.
func each(t *testing.T, f func(t *testing.T, b *bench), change ...func(*diag.Config)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, store table.Store) {
		b := &bench{World: lanetest.New(t, store), t: t, ops: &operators{}, log: &lanetest.Log{}}
		c := diag.Config{
			Store: store, Lanes: b.Lanes, Times: b.Times, Clock: b.Clock, NewID: b.NewID, Operators: b.ops,
			Metrics: &diag.EMF{W: &b.metrics, Stack: "test", Clock: b.Clock},
			Log:     slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		for _, f := range change {
			f(&c)
		}
		var err error
		b.diag, err = diag.New(c)
		must(t, err)
		f(t, b)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// look looks once, and moves the clock while it waits for a run to end.
func (b *bench) look() lane.Swept {
	b.t.Helper()
	return b.lookLate(0)
}

func (b *bench) lookLate(late time.Duration) lane.Swept {
	b.t.Helper()
	var sum lane.Swept
	done := make(chan error, 1)
	go func() {
		var err error
		sum, err = b.diag.Sweep(context.WithoutCancel(b.t.Context()), late)
		done <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	give := time.After(20 * time.Second)
	for {
		select {
		case err := <-done:
			must(b.t, err)
			return sum
		case <-tick.C:
			if b.ops.waits() {
				b.Clock.Advance(time.Second)
			}
		case <-give:
			b.t.Fatal("the look does not end")
		}
	}
}

// live moves the clock while a holder renews its claim.
func (b *bench) live(d time.Duration) {
	b.t.Helper()
	for ; d > 0; d -= b.Times.Renew {
		b.Clock.Waiting(b.t, 1)
		b.Clock.Advance(smaller(d, b.Times.Renew))
		b.Clock.Waiting(b.t, 1)
	}
}

func smaller(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

// commit writes what the holder has to say.
func (b *bench) commit(h *claim.Holder) {
	b.t.Helper()
	must(b.t, h.Commit(b.t.Context(), claim.Tx{}))
}

// said is an event that operators got.
type said struct {
	Name    string
	Payload map[string]any
}

func (e said) str(name string) string { v, _ := e.Payload[name].(string); return v }
func (e said) num(name string) int64  { v, _ := e.Payload[name].(float64); return int64(v) }

// operators are who listens to all sessions of a tenant.
type operators struct {
	mu     sync.Mutex
	events []said
	asked  bool // a recovery was requested and is not completed
}

// Tell implements diag.Operators.
func (o *operators) Tell(_ context.Context, tenant string, frames [][]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range frames {
		var e struct {
			Type, Event string
			Payload     map[string]any
		}
		if err := json.Unmarshal(f, &e); err != nil {
			return err
		}
		if tenant == "acme" && e.Type == "event" {
			o.events = append(o.events, said{e.Event, e.Payload})
		}
		switch e.Event {
		case "session.recovery.requested":
			o.asked = true
		case "session.recovery.completed":
			o.asked = false
		}
	}
	return nil
}

func (o *operators) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// take gives what was said and forgets it.
func (o *operators) take() []said {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.events
	o.events = nil
	return out
}

func namesOf(events []said) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Name)
	}
	return out
}

// one is the event of a name, of which there must be exactly one.
func (b *bench) one(events []said, name string) said {
	b.t.Helper()
	var found []said
	for _, e := range events {
		if e.Name == name {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		b.t.Fatalf("%d of %s in %v", len(found), name, namesOf(events))
	}
	return found[0]
}

// quiet fails the test where something was said.
func (b *bench) quiet(when string) {
	b.t.Helper()
	if got := b.ops.take(); len(got) > 0 {
		b.t.Fatalf("%s: %v", when, got)
	}
}

// stuckCount is the metric of the looks since the last call; 0 where none was written.
func (b *bench) stuckCount() float64 {
	b.t.Helper()
	defer b.metrics.Reset()
	sum := 0.0
	for line := range strings.Lines(b.metrics.String()) {
		var m map[string]any
		must(b.t, json.Unmarshal([]byte(line), &m))
		n, _ := m["StuckSessions"].(float64)
		if n <= 0 {
			b.t.Errorf("a metric of nothing: %s", line)
		}
		sum += n
	}
	return sum
}

// caps are lanes with room for so many.
func caps(n int) func(*diag.Config) {
	return func(c *diag.Config) {
		c.Caps = slices.Clone(queue.Definitions())
		for i := range c.Caps {
			c.Caps[i].Concurrency = n
		}
	}
}
