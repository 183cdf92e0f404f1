package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/shared/table"
)

// gateway is one that clients can connect to.
type gateway struct {
	Level      string // for figures: how it runs
	URL, Token string
	Tables     table.Store // what it keeps
}

// patience is how long a step may take that does not wait for a time limit of the
// product. An invocation on an endpoint costs 50 ms, on a busy machine more.
const patience = 60 * time.Second

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// listener is a connection and what it has heard.
type listener struct {
	*client.Conn

	mu      sync.Mutex
	heard   []event
	changed chan struct{} // closed and replaced at each event
}

// event is an agent or chat event: what both have, and what either has.
type event struct {
	Name    string          `json:"-"`
	RunID   string          `json:"runId"`
	Seq     int64           `json:"seq"`
	Stream  string          `json:"stream"`
	State   string          `json:"state"`
	Data    json.RawMessage `json:"data"`
	Delta   string          `json:"deltaText"`
	Replace bool            `json:"replace"`
	Message *struct {
		Content []protocol.ContentPart `json:"content"`
	} `json:"message"`
}

// text is the text of a chat event's message.
func (e event) text() string {
	out := ""
	if e.Message != nil {
		for _, c := range e.Message.Content {
			out += c.Text
		}
	}
	return out
}

// phase is that of a lifecycle or tool event.
func (e event) phase() string {
	var d struct {
		Phase string `json:"phase"`
	}
	_ = json.Unmarshal(e.Data, &d) // of another shape: it has no phase
	return d.Phase
}

// dial connects, and closes with the test.
func (g gateway) dial(t *testing.T) *listener {
	t.Helper()
	l, err := g.connect(within(t, patience))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(l.Close)
	return l
}

func (g gateway) connect(ctx context.Context) (*listener, error) {
	l := &listener{changed: make(chan struct{})}
	var err error
	l.Conn, err = client.Dial(ctx, client.Config{
		URL: g.URL, Token: g.Token, OnEvent: l.hear, Caps: []string{"tool-events"},
		Scopes: []string{protocol.ScopeAdmin, protocol.ScopeRead, protocol.ScopeWrite},
	})
	return l, err
}

func (l *listener) hear(e client.Event) {
	got := event{Name: e.Name}
	if json.Unmarshal(e.Payload, &got) != nil || got.RunID == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, got)
	close(l.changed)
	l.changed = make(chan struct{})
}

// of are the events of a run by their name, in the order in which they came.
func (l *listener) of(runID, name string) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.heard), func(e event) bool { return e.RunID != runID || e.Name != name })
}

// await waits for an event, also one that has come already.
func (l *listener) await(ctx context.Context, t *testing.T, what string, match func(event) bool) event {
	t.Helper()
	for {
		l.mu.Lock()
		changed, i := l.changed, slices.IndexFunc(l.heard, match)
		var found event
		if i >= 0 {
			found = l.heard[i]
		}
		l.mu.Unlock()
		if i >= 0 {
			return found
		}
		select {
		case <-changed:
		case <-l.Done():
			t.Fatalf("%s: the connection ended: %v", what, l.Err())
		case <-ctx.Done():
			t.Fatalf("%s did not come", what)
		}
	}
}

// call makes a request that must succeed.
func (l *listener) call(t *testing.T, method string, params, out any) {
	t.Helper()
	if err := l.Call(within(t, patience), method, params, out); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// final sends an agent call and waits for its second reply.
func (l *listener) final(ctx context.Context, p protocol.AgentParams) (protocol.Final, error) {
	var f protocol.Final
	raw, err := l.CallFinal(ctx, "agent", p, nil)
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	return f, err
}

// wait asks for the end of a run.
func (l *listener) wait(t *testing.T, runID string, window time.Duration) protocol.Wait {
	t.Helper()
	var w protocol.Wait
	ms := window.Milliseconds()
	if err := l.Call(within(t, window+patience), "agent.wait", protocol.AgentWaitParams{RunID: runID, TimeoutMs: &ms}, &w); err != nil {
		t.Fatalf("agent.wait: %v", err)
	}
	return w
}

// history is a session's texts as role:text.
func (l *listener) history(t *testing.T, key string) []string {
	t.Helper()
	var h protocol.History
	limit := int64(200)
	l.call(t, "chat.history", protocol.ChatHistoryParams{SessionKey: key, Limit: &limit}, &h)
	var out []string
	for _, m := range h.Messages {
		text := ""
		var parts []protocol.ContentPart
		if json.Unmarshal(m.Content, &text) != nil && json.Unmarshal(m.Content, &parts) == nil {
			for _, p := range parts {
				text += p.Text
			}
		}
		out = append(out, m.Role+":"+text)
	}
	return out
}

// reply is the text of a final reply.
func reply(f protocol.Final) string {
	out := ""
	if f.Result != nil {
		for _, p := range f.Result.Payloads {
			out += p.Text
		}
	}
	return out
}

// unbroken says what is wrong with the sequence of a run's events, as a client that
// was there from the start has heard them; nothing, where nothing is. An attempt that
// follows on a crash does not know whether the start was told, and tells it again.
func unbroken(events []event, crashes int) string {
	wrong := ""
	starts, ends := 0, 0
	for i, e := range events {
		switch {
		case i == 0 && e.Seq != 1:
			wrong = "it does not begin with 1"
		case i > 0 && e.Seq <= events[i-1].Seq:
			wrong = "a number does not grow"
		}
		if e.Stream != protocol.StreamLifecycle {
			continue
		}
		switch e.phase() {
		case protocol.LifecycleStart:
			starts++
		case protocol.LifecycleEnd, protocol.LifecycleError:
			if ends++; i != len(events)-1 {
				wrong = "something came after the end"
			}
		}
	}
	switch {
	case wrong != "":
	case starts < 1 || starts > 1+crashes || ends != 1:
		wrong = fmt.Sprintf("%d starts, %d ends", starts, ends)
	default:
		return ""
	}
	var all strings.Builder
	for _, e := range events {
		fmt.Fprintf(&all, " %d:%s/%s", e.Seq, e.Stream, e.phase())
	}
	return wrong + ":" + all.String()
}
