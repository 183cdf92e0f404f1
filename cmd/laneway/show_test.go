package main

import (
	"strings"
	"testing"
	"time"

	"laneway/shared/protocol"
	"laneway/test/fakegateway"
)

// delta is an assistant event of a run.
func delta(c *fakegateway.Conn, runID, item, text string) {
	data, _ := protocol.Marshal(protocol.AssistantText{Text: text, ItemID: item})
	c.Event(protocol.EventAgent, protocol.AgentEvent{RunID: runID, Seq: 1, Stream: protocol.StreamAssistant, Data: data})
}

func TestTerminalShowsTextOnceAsItComes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deltas [][2]string // item, text so far
		final  []string
		want   string
	}{
		"streamed":         {[][2]string{{"s:1", "Hel"}, {"s:1", "Hello"}}, []string{"Hello"}, "Hello\n"},
		"nothing streamed": {nil, []string{"Hello"}, "Hello\n"},
		"rest in the end":  {[][2]string{{"s:1", "Hel"}}, []string{"Hello"}, "Hello\n"},
		"two messages": {
			[][2]string{{"s:1", "Let me look."}, {"s:2", "It is"}, {"s:2", "It is five."}},
			[]string{"It is five."},
			"Let me look.\n\nIt is five.\n",
		},
		"two messages, both final": {
			[][2]string{{"s:1", "Let me look."}, {"s:2", "Five."}},
			[]string{"Let me look.", "Five."},
			"Let me look.\n\nFive.\n",
		},
		"replaced":          {[][2]string{{"s:1", "Wrong"}, {"s:1", "Right"}}, []string{"Right"}, "Wrong\nRight\n"},
		"another final":     {[][2]string{{"s:1", "Draft"}}, []string{"Final"}, "Draft\nFinal\n"},
		"ends in a newline": {[][2]string{{"s:1", "Hello\n"}}, []string{"Hello\n"}, "Hello\n\n"},
		"silent":            {nil, nil, ""},
		"a card":            {[][2]string{{"s:1", "Hello"}}, []string{"Card", "Hello"}, "Hello\nCard\n"},
		"a card, no stream": {nil, []string{"Card", "Hello"}, "Card\n\nHello\n"},
		"a card, and rest":  {[][2]string{{"s:1", "Hel"}}, []string{"Card", "Hello"}, "Hello\nCard\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.app.stdoutTerminal = true
			w.gateway.On("agent", func(conn *fakegateway.Conn, r protocol.Request) {
				p := fakegateway.Params[protocol.AgentParams](t, r)
				accept(conn, r, p)
				delta(conn, "another run", "s:1", "not for us")
				for _, d := range c.deltas {
					delta(conn, p.IdempotencyKey, d[0], d[1])
				}
				conn.Result(r, protocol.FinalOK(p.IdempotencyKey, payloads(c.final...)))
			})
			w.runs(0, "agent", "-m", "hi")
			if got := w.out.String(); got != c.want {
				t.Errorf("stdout %q, want %q", got, c.want)
			}
		})
	}
}

// What is written to a file or a pipe is the reply alone, not how it came about.
func TestPipesGetTheReplyOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("agent", func(conn *fakegateway.Conn, r protocol.Request) {
		p := fakegateway.Params[protocol.AgentParams](t, r)
		accept(conn, r, p)
		delta(conn, p.IdempotencyKey, "s:1", "Let me look.")
		conn.Result(r, protocol.FinalOK(p.IdempotencyKey, payloads("Five.")))
	})
	w.runs(0, "agent", "-m", "hi")
	if got := w.out.String(); got != "Five.\n" {
		t.Errorf("stdout %q", got)
	}
}

// The progress line says what is going on and is gone in the end.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.app.stderrTerminal = true
	ticks := make(chan time.Time)
	w.app.clock = tickClock{ticks}
	w.gateway.On("agent", func(conn *fakegateway.Conn, r protocol.Request) {
		p := fakegateway.Params[protocol.AgentParams](t, r)
		accept(conn, r, p)
		data, err := protocol.Marshal(protocol.ToolItem{Kind: "tool", Phase: "start", Title: "Read from notes.txt"})
		if err != nil {
			t.Error(err)
		}
		conn.Event(protocol.EventAgent, protocol.AgentEvent{RunID: p.IdempotencyKey, Stream: protocol.StreamItem, Data: data})
		for !strings.Contains(w.err.String(), "notes.txt") {
			ticks <- time.Time{} // each is taken by the drawing loop
		}
		again, err := protocol.Marshal(retrying{Reason: "server_error", Attempt: 2, MaxAttempts: 9})
		if err != nil {
			t.Error(err)
		}
		conn.Event(protocol.EventAgent, protocol.AgentEvent{RunID: p.IdempotencyKey, Stream: protocol.StreamRunStatus, Data: again})
		for !strings.Contains(w.err.String(), "attempt") {
			ticks <- time.Time{}
		}
		conn.Result(r, protocol.FinalOK(p.IdempotencyKey, payloads("done")))
	})
	w.runs(0, "agent", "-m", "hi")
	got := w.err.String()
	contains(t, "stderr", got, "connecting", "Read from notes.txt", "server error: asking again, attempt 2 of 9")
	if !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("the line stays: %q", got)
	}
	if w.out.String() != "done\n" {
		t.Errorf("stdout %q", w.out)
	}
}

// tickClock is a clock whose waits end when the test says so.
type tickClock struct{ c chan time.Time }

func (tickClock) Now() time.Time { return time.Unix(0, 0) }

func (c tickClock) After(time.Duration) <-chan time.Time { return c.c }
