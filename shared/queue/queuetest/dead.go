package queuetest

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"laneway/shared/queue"
)

// letters waits for n dead letters of a lane and gives their bodies.
func (c *check) letters(lane queue.Lane, n int) []string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	for {
		dead, err := c.Dead.DeadLetters(ctx, lane, 100)
		if err != nil {
			c.Fatalf("DeadLetters(%q): %v", lane, err)
		}
		if len(dead) >= n {
			var bodies []string
			for _, d := range dead {
				if d.Lane != lane || d.ID == "" || d.Receives < MaxReceives {
					c.Errorf("dead letter %+v", d)
				}
				bodies = append(bodies, string(d.Body))
			}
			return bodies
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			c.Fatalf("%d dead letters of %q, want %d", len(dead), lane, n)
		}
	}
}

func (c *check) deadLetters() {
	c.start(c.failing("bad"), nil)
	c.send(queue.Main, "g", "1", "bad")
	c.send(queue.Main, "g", "2", "next")
	c.has("next#1")
	if got, want := c.log(), []string{"bad#1", "bad#2", "bad#3", "next#1"}; !slices.Equal(got, want) {
		c.Errorf("handled %q, want %q", got, want)
	}
	if got := c.letters(queue.Main, 1); !slices.Equal(got, []string{"bad"}) {
		c.Errorf("dead letters %q", got)
	}
	if dead, err := c.Dead.DeadLetters(c.Context(), queue.Cron, 10); len(dead) != 0 || err != nil {
		c.Errorf("dead letters of another lane: %v, %v", dead, err)
	}
}

// failing is a handler to which one body is poison.
func (c *check) failing(body string) queue.Handler {
	return func(_ context.Context, m queue.Message) error {
		c.note(string(m.Body) + "#" + strconv.Itoa(m.Receives))
		if string(m.Body) == body {
			return errNo
		}
		return nil
	}
}

func (c *check) redrive() {
	var healed atomic.Bool
	c.start(func(_ context.Context, m queue.Message) error {
		if !healed.Load() {
			return errNo
		}
		c.note(string(m.Lane) + string(m.Body))
		return nil
	}, func(_ context.Context, m queue.Message) error {
		if !healed.Load() {
			return errNo
		}
		c.note("timer " + string(m.Body))
		return nil
	})
	c.send(queue.Main, "g", "1", "a")
	c.send(queue.Cron, "g", "1", "b")
	c.after(0, "c")
	for lane, want := range map[queue.Lane]string{queue.Main: "a", queue.Cron: "b", "": "c"} {
		if got := c.letters(lane, 1); !slices.Equal(got, []string{want}) {
			c.Errorf("dead letters of %q: %q, want %q", lane, got, want)
		}
	}
	healed.Store(true)
	if n, err := c.Dead.Purge(c.Context(), queue.Cron); n != 1 || err != nil {
		c.Errorf("Purge: %d, %v", n, err)
	}
	for _, lane := range []queue.Lane{queue.Main, "", queue.Cron} {
		want := 1
		if lane == queue.Cron {
			want = 0
		}
		if n, err := c.Dead.Redrive(c.Context(), lane); n != want || err != nil {
			c.Errorf("Redrive(%q): %d, %v, want %d", lane, n, err, want)
		}
		if dead, err := c.Dead.DeadLetters(c.Context(), lane, 10); len(dead) != 0 || err != nil {
			c.Errorf("dead letters of %q after that: %v, %v", lane, dead, err)
		}
	}
	got := c.count(2)
	slices.Sort(got)
	if !slices.Equal(got, []string{"maina", "timer c"}) {
		c.Errorf("redriven %q", got)
	}
}

func (c *check) timers() {
	type fired struct {
		at   time.Time
		lane queue.Lane
	}
	times := make(map[string]fired)
	c.start(nil, func(_ context.Context, m queue.Message) error {
		c.mu.Lock()
		times[string(m.Body)] = fired{time.Now(), m.Lane}
		c.mu.Unlock()
		c.note(string(m.Body))
		return nil
	})
	delays := []time.Duration{0, 300 * time.Millisecond, time.Second, 2500 * time.Millisecond}
	sent := make(map[string]time.Time)
	for _, d := range delays {
		sent[d.String()] = time.Now()
		c.after(d, d.String())
	}
	c.count(len(delays))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range delays {
		f := times[d.String()]
		if waited := f.at.Sub(sent[d.String()]); waited < d || waited > d+10*time.Second || f.lane != "" {
			c.Errorf("timer of %v came after %v in lane %q", d, waited, f.lane)
		}
	}
}

func (c *check) failedTimer() {
	c.start(nil, c.failing("bad"))
	c.after(0, "bad")
	c.after(0, "good")
	c.has("good#1")
	c.has("bad#" + strconv.Itoa(MaxReceives))
	if got := c.letters("", 1); !slices.Equal(got, []string{"bad"}) {
		c.Errorf("dead letters %q", got)
	}
}
