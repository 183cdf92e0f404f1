package loop_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

// client is a connection that collects what it is sent.
type client struct {
	id     string
	mu     sync.Mutex
	frames []map[string]any
	more   chan struct{}
}

func (c *client) Write(_ context.Context, message []byte) error {
	var f map[string]any
	if err := json.Unmarshal(message, &f); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames = append(c.frames, f)
	close(c.more)
	c.more = make(chan struct{})
	return nil
}

func (c *client) Close(int, string) error { return nil }

// until waits for the first frame that is wanted, from the first on.
func (c *client) until(t *testing.T, what string, want func(map[string]any) bool) map[string]any {
	t.Helper()
	end := time.After(within)
	for i := 0; ; {
		c.mu.Lock()
		for ; i < len(c.frames); i++ {
			if want(c.frames[i]) {
				f := c.frames[i]
				c.mu.Unlock()
				return f
			}
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-end:
			t.Fatalf("no frame: %s; got %s", what, c.dump())
		}
	}
}

func (c *client) dump() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, _ := json.Marshal(c.frames)
	return string(b)
}

func (c *client) all(want func(map[string]any) bool) (out []map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		if want(f) {
			out = append(out, f)
		}
	}
	return out
}

// str walks to a string member by path.
func str(f map[string]any, path string) string {
	var v any = f
	for k := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[k]
		case []any:
			if k != "0" || len(x) == 0 {
				return ""
			}
			v = x[0]
		default:
			return ""
		}
	}
	s, _ := v.(string)
	return s
}

func event(name, stream, phase string) func(map[string]any) bool {
	return func(f map[string]any) bool {
		return f["event"] == name && (stream == "" || str(f, "payload.stream") == stream) && (phase == "" || str(f, "payload.data.phase") == phase || str(f, "payload.state") == phase)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
