package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

// TestCrash_TextsInARowAreSaidOnce: three texts wait for more of their sender, and the
// process is killed while they are sent, wait, or are answered. Each is in the
// conversation once, in order, and has an end that is ok.
func TestCrash_TextsInARowAreSaidOnce(t *testing.T) {
	kills := int(number(t, envKills, 5))
	seed := number(t, envSeed, time.Now().UnixNano())
	t.Logf("%s=%d %s=%d", envSeed, seed, envKills, kills)
	rnd := rand.New(rand.NewPCG(uint64(seed), 2))
	w := &world{t: t, model: mockmodel.New(t)}
	w.opts = serving.Options{
		Data: t.TempDir(), Args: []string{"--lease", "1s", "--workspace", t.TempDir(), "--listen", w.port()},
		Env: []string{
			"OPENAI_BASE_URL=" + w.model.URL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/" + mockmodel.Model,
			"LANEWAY_INBOUND_DEBOUNCE=200ms",
		},
	}
	w.gateway = serving.Start(t, w.opts)
	for n := range kills {
		key := fmt.Sprintf("agent:main:texts%d", n)
		var want []string
		sent := make(chan struct{})
		for i := range 3 {
			want = append(want, fmt.Sprintf("text %d of %d", i+1, n))
		}
		go func() {
			defer close(sent)
			l := &line{w: w}
			for i, text := range want {
				l.until(t.Context(), "chat.send", map[string]any{"sessionKey": key, "message": text, "idempotencyKey": fmt.Sprintf("x%d.%d", n, i)}, nil, func() bool { return true })
			}
		}()
		<-time.After(time.Duration(rnd.IntN(450)) * time.Millisecond) // the moment of the kill is what this test is about
		w.kill()
		<-sent
		l := &line{w: w}
		for i := range want {
			var wait protocol.Wait
			l.until(t.Context(), "agent.wait", map[string]any{"runId": fmt.Sprintf("x%d.%d", n, i), "timeoutMs": 5000}, &wait, func() bool { return wait.EndedAt != 0 })
			if wait.Status != protocol.StatusOK {
				t.Errorf("%s: text %d ended %+v", key, i, wait)
			}
		}
		var h protocol.History
		l.until(t.Context(), "chat.history", map[string]any{"sessionKey": key}, &h, func() bool { return true })
		if got := people(h); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// line is a client that calls again when the gateway dies.
type line struct {
	w *world
	c *client.Conn
}

// until calls a method until it is answered, and the answer is what is waited for.
func (l *line) until(ctx context.Context, method string, params map[string]any, out any, good func() bool) {
	for ctx.Err() == nil {
		if l.c == nil {
			var err error
			if l.c, err = l.w.dial(ctx); err != nil {
				return
			}
		}
		if err := l.c.Call(ctx, method, params, out); err != nil {
			l.c.Close()
			l.c = nil
			continue
		}
		if good() {
			return
		}
	}
}

// people are the lines that people wrote into a conversation.
func people(h protocol.History) (lines []string) {
	for _, row := range h.Messages {
		if row.Role != "user" {
			continue
		}
		var text string
		if json.Unmarshal(row.Content, &text) != nil {
			var parts []struct{ Text string }
			_ = json.Unmarshal(row.Content, &parts) // of another form: it has no lines
			var all []string
			for _, p := range parts {
				all = append(all, p.Text)
			}
			text = strings.Join(all, "")
		}
		lines = append(lines, strings.Split(text, "\n")...)
	}
	return lines
}
