package queuetest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"laneway/shared/queue"
)

var errNo = errors.New("no")

func (c *check) order() {
	const n = 15
	var want []string
	for i := range n {
		c.send(queue.Main, "g", strconv.Itoa(i), strconv.Itoa(i))
		want = append(want, strconv.Itoa(i))
	}
	var busy atomic.Int32
	c.start(func(_ context.Context, m queue.Message) error {
		if busy.Add(1) > 1 {
			c.Error("two handlers in one group")
		}
		defer busy.Add(-1)
		if m.Lane != queue.Main || m.Group != "g" || m.Receives != 1 || m.ID == "" {
			c.Errorf("delivery %+v", m)
		}
		c.note(string(m.Body))
		return nil
	}, nil)
	if got := c.count(n); !slices.Equal(got, want) {
		c.Errorf("handled %q", got)
	}
}

func (c *check) headOfLine() {
	var failed, again time.Time
	c.start(func(_ context.Context, m queue.Message) error {
		c.note(string(m.Body) + "#" + strconv.Itoa(m.Receives))
		switch {
		case string(m.Body) != "bad":
			return nil
		case m.Receives == 1:
			failed = time.Now()
			return errNo
		}
		again = time.Now()
		return nil
	}, nil)
	c.send(queue.Main, "g", "1", "bad")
	c.has("bad#1")
	c.send(queue.Main, "g", "2", "next")
	c.send(queue.Main, "h", "1", "other")
	c.has("next#1")
	if got := slices.DeleteFunc(c.log(), func(l string) bool { return l == "other#1" }); !slices.Equal(got, []string{"bad#1", "bad#2", "next#1"}) {
		c.Errorf("group g: %q", got)
	}
	if got := c.log(); slices.Index(got, "other#1") != 1 {
		c.Errorf("group h was held up: %q", got)
	}
	// The clocks of a service and of a test are not one.
	if waited := again.Sub(failed); waited < c.Visibility*8/10 {
		c.Errorf("came again after %v, before the visibility timeout of %v", waited, c.Visibility)
	}
}

func (c *check) batches() {
	var busy sync.Map
	var once sync.Once
	want := []string{"g/0", "h/0"}
	for i := range 6 {
		c.send(queue.Main, "g", strconv.Itoa(i), "g/"+strconv.Itoa(i))
		want = append(want, "g/"+strconv.Itoa(i))
	}
	c.send(queue.Main, "h", "0", "h/0")
	c.start(func(_ context.Context, m queue.Message) error {
		if _, two := busy.LoadOrStore(m.Group, true); two {
			c.Errorf("two handlers in group %s", m.Group)
		}
		defer busy.Delete(m.Group)
		c.note(string(m.Body))
		fail := false
		if m.Group == "g" {
			once.Do(func() { fail = true })
		}
		if fail {
			return errNo
		}
		return nil
	}, nil)
	got := c.count(len(want))
	if c.differs(DisorderInFlight, "only that all come is checked") {
		slices.Sort(got)
		slices.Sort(want)
	} else {
		// Group h comes when it comes.
		got = slices.DeleteFunc(got, func(l string) bool { return l == "h/0" })
		want = slices.DeleteFunc(want, func(l string) bool { return l == "h/0" })
	}
	if !slices.Equal(got, want) {
		c.Errorf("handled %q, want %q", got, want)
	}
}

func (c *check) panics() {
	c.start(func(_ context.Context, m queue.Message) error {
		c.note(string(m.Body) + "#" + strconv.Itoa(m.Receives))
		if m.Receives == 1 {
			panic("no")
		}
		return nil
	}, nil)
	c.send(queue.Main, "g", "1", "a")
	c.has("a#2")
}

func (c *check) dedup() {
	c.start(func(_ context.Context, m queue.Message) error {
		c.note(string(m.Body))
		return nil
	}, nil)
	c.send(queue.Main, "g", "1", "first")
	c.send(queue.Main, "g", "1", "twin of one that may wait")
	c.has("first")
	c.send(queue.Main, "g", "1", "twin of one that was handled")
	c.send(queue.Cron, "g", "1", "another lane")
	c.send(queue.Main, "g", "2", "last")
	got := c.count(3)
	slices.Sort(got)
	if !slices.Equal(got, []string{"another lane", "first", "last"}) {
		c.Errorf("handled %q", got)
	}
}

func (c *check) parallel() {
	const groups = 3 * Cap
	full, open := make(chan struct{}), make(chan struct{})
	var busy atomic.Int32
	stop := c.start(func(_ context.Context, m queue.Message) error {
		switch n := busy.Add(1); {
		case n == Cap:
			close(full)
		case n > Cap:
			c.Errorf("%d handlers at once", n)
		}
		<-open
		busy.Add(-1)
		c.note(m.Group)
		return nil
	}, nil)
	for i := range groups {
		c.send(queue.Main, "g"+strconv.Itoa(i), "1", "x")
	}
	// All handlers are in messages of different groups at the same time.
	select {
	case <-full:
	case <-time.After(patience):
		c.Errorf("%d handlers at once, want %d", busy.Load(), Cap)
	}
	// Only now more could come; a cap that leaks would show at once or later.
	busy.Store(0)
	c.note("open")
	close(open)
	got := c.count(groups + 1)
	stop()
	slices.Sort(got)
	if got = slices.Compact(got); len(got) != groups+1 {
		c.Errorf("handled %q", got)
	}
}

func (c *check) busyGroup() {
	const backlog = 20
	one, open := make(chan struct{}, backlog), make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(open) })
	for i := range backlog {
		c.send(queue.Main, "busy", strconv.Itoa(i), strconv.Itoa(i))
	}
	c.start(func(_ context.Context, m queue.Message) error {
		if m.Group == "busy" {
			one <- struct{}{}
			<-open
		}
		c.note(m.Group + string(m.Body))
		return nil
	}, nil)
	<-one // the head of the backlog is being handled, and will be for long
	for i := range 5 {
		c.send(queue.Main, "quick", strconv.Itoa(i), strconv.Itoa(i))
	}
	want := []string{"quick0", "quick1", "quick2", "quick3", "quick4"}
	if got := c.count(5); !slices.Equal(got, want) {
		c.Errorf("beside a backlog: %q", got)
	}
	once.Do(func() { close(open) })
	for i := range backlog {
		want = append(want, "busy"+strconv.Itoa(i))
	}
	if got := c.count(len(want)); !slices.Equal(got, want) {
		c.Errorf("handled %q", got)
	}
}

func (c *check) lanes() {
	open := make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(open) })
	c.start(func(_ context.Context, m queue.Message) error {
		if m.Lane == queue.Cron {
			c.note("cron")
			<-open
		}
		c.note(string(m.Lane) + " done")
		return nil
	}, nil)
	for i := range Cap {
		c.send(queue.Cron, "g"+strconv.Itoa(i), "1", "x")
	}
	c.count(Cap) // every handler of cron is taken
	c.send(queue.Main, "g", "1", "x")
	c.has("main done")
	once.Do(func() { close(open) })
	c.until("cron done", func(lines []string) bool {
		return strings.Count(strings.Join(lines, ","), "cron done") == Cap
	})
}

func (c *check) stop() {
	began := make(chan struct{})
	var returned atomic.Bool
	stop := c.start(func(ctx context.Context, m queue.Message) error {
		if m.Group == "g" {
			close(began)
			<-ctx.Done()
			c.note("told to end")
			returned.Store(true)
		}
		return ctx.Err()
	}, nil)
	c.send(queue.Main, "g", "1", "a")
	select {
	case <-began:
	case <-time.After(patience):
		c.Fatal("nothing was delivered")
	}
	stop()
	if !returned.Load() {
		c.Error("Run returned before its handler")
	}
	c.send(queue.Main, "g", "2", "b")
	c.start(func(_ context.Context, m queue.Message) error {
		c.note(string(m.Body))
		return nil
	}, nil)
	c.has("b")
	if got := c.log(); !slices.Equal(got, []string{"told to end", "a", "b"}) {
		c.Errorf("%q", got)
	}
}
