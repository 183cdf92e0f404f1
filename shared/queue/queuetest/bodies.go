package queuetest

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"laneway/shared/meter"
	"laneway/shared/queue"
)

func (c *check) bodies() {
	all := []string{
		"x", `{"a":"öß 😀","b":[1,2]}`, " \t\r\n ", "<&>\"'", "\u007f\u0080�",
		strings.Repeat("0123456789abcdef", queue.MaxBody/16),
	}
	came := make(map[string]string)
	handler := func(_ context.Context, m queue.Message) error {
		c.mu.Lock()
		came[m.Group+string(m.Lane)] += string(m.Body)
		c.mu.Unlock()
		c.note("one")
		return nil
	}
	c.start(handler, func(ctx context.Context, m queue.Message) error {
		m.Group = "timer"
		return handler(ctx, m)
	})
	const group = "!#$%&'()*+,-./:;<=>?@[]^_`{|}~"
	ids := []string{"1", strings.Repeat("d", 128), group}
	for i, b := range all {
		c.send(queue.Main, group+strconv.Itoa(i), ids[i%len(ids)], b)
	}
	long := strings.Repeat("g", 128)
	c.send(queue.Main, long, "1", "long group")
	c.after(0, all[len(all)-1])
	c.count(len(all) + 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, b := range all {
		if got := came[group+strconv.Itoa(i)+"main"]; got != b {
			c.Errorf("%.40q of %d bytes came as %.40q of %d", b, len(b), got, len(got))
		}
	}
	if came[long+"main"] != "long group" || came["timer"] != all[len(all)-1] {
		c.Error("the long group's or the timer's body is wrong")
	}
}

func (c *check) invalid() {
	ctx := c.Context()
	large := make([]byte, queue.MaxBody+1)
	for i := range large {
		large[i] = 'x'
	}
	for name, err := range map[string]error{
		"no lane":         c.Send(ctx, "", "g", "1", []byte("x")),
		"unknown lane":    c.Send(ctx, "nowhere", "g", "1", []byte("x")),
		"no group":        c.Send(ctx, queue.Main, "", "1", []byte("x")),
		"long group":      c.Send(ctx, queue.Main, strings.Repeat("g", 129), "1", []byte("x")),
		"space in group":  c.Send(ctx, queue.Main, "a b", "1", []byte("x")),
		"umlaut in group": c.Send(ctx, queue.Main, "ä", "1", []byte("x")),
		"no dedup":        c.Send(ctx, queue.Main, "g", "", []byte("x")),
		"long dedup":      c.Send(ctx, queue.Main, "g", strings.Repeat("d", 129), []byte("x")),
		"newline in id":   c.Send(ctx, queue.Main, "g", "1\n", []byte("x")),
		"no body":         c.Send(ctx, queue.Main, "g", "1", nil),
		"control in body": c.Send(ctx, queue.Main, "g", "1", []byte("a\x00b")),
		"no UTF-8":        c.Send(ctx, queue.Main, "g", "1", []byte("a\xff")),
		"large body":      c.Send(ctx, queue.Main, "g", "1", large),
		"negative delay":  c.After(ctx, -1, []byte("x")),
		"long delay":      c.After(ctx, queue.MaxDelay+1, []byte("x")),
		"timer's body":    c.After(ctx, 0, nil),
		"timer too large": c.After(ctx, 0, large),
	} {
		if !errors.Is(err, queue.ErrInvalid) {
			c.Errorf("%s: %v", name, err)
		}
		if err != nil && len(err.Error()) > 200 {
			c.Errorf("%s: the error carries the body", name)
		}
	}
	if err := c.After(ctx, queue.MaxDelay, []byte("x")); err != nil {
		c.Errorf("longest delay: %v", err)
	}
}

func (c *check) ended() {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if err := c.Send(ctx, queue.Main, "g", "1", []byte("x")); !errors.Is(err, context.Canceled) {
		c.Errorf("Send: %v", err)
	}
	if err := c.After(ctx, 0, []byte("x")); !errors.Is(err, context.Canceled) {
		c.Errorf("After: %v", err)
	}
	c.start(func(_ context.Context, m queue.Message) error {
		c.note(string(m.Body))
		return nil
	}, nil)
	c.send(queue.Main, "g", "2", "second")
	c.has("second")
	if got := c.log(); len(got) != 1 {
		c.Errorf("handled %q", got)
	}
}

func (c *check) counted() {
	var m meter.Meter
	ctx := meter.With(c.Context(), &m)
	for i, n := range []int{1, 64 << 10, 64<<10 + 1, queue.MaxBody} {
		if err := c.Send(ctx, queue.Main, "g", strconv.Itoa(i), []byte(strings.Repeat("x", n))); err != nil {
			c.Error(err)
		}
	}
	if err := c.After(ctx, 0, []byte("x")); err != nil {
		c.Error(err)
	}
	if n := m.Counts()[meter.QueueCalls]; n != 1+1+2+4+1 {
		c.Errorf("counted %v", n)
	}
}
