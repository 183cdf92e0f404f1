package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
)

// clients is what a client may expect of every gateway, whatever it runs on.
func clients(t *testing.T, g gateway, model *mockmodel.Server) {
	l := g.dial(t)
	key := func(name string) string { return "agent:main:" + name }

	t.Run("connect", func(t *testing.T) {
		if h := l.Hello(); h.Protocol != protocol.Version || h.Policy.MaxPayload == 0 {
			t.Errorf("hello: %s", h.Raw)
		}
		_, err := gateway{URL: g.URL, Token: "wrong"}.connect(within(t, patience))
		var refused *protocol.Error
		if !errors.As(err, &refused) || refused.Code == "" {
			t.Errorf("a wrong token: %v", err)
		}
	})
	t.Run("health", func(t *testing.T) {
		var h struct {
			OK bool `json:"ok"`
		}
		if l.call(t, "health", struct{}{}, &h); !h.OK {
			t.Error("not ok")
		}
	})
	t.Run("agent", func(t *testing.T) {
		p := protocol.AgentParams{Message: "one", SessionKey: key("agent"), IdempotencyKey: id.UUID()}
		f, err := l.final(within(t, patience), p)
		if err != nil || f.Status != protocol.StatusOK || reply(f) != "You said: one" {
			t.Fatalf("%+v, %v", f, err)
		}
		l.await(within(t, patience), t, "the end", func(e event) bool {
			return e.Name == protocol.EventAgent && e.RunID == p.IdempotencyKey && e.phase() == protocol.LifecycleEnd
		})
		if bad := unbroken(l.of(p.IdempotencyKey, protocol.EventAgent), 0); bad != "" {
			t.Error(bad)
		}
		again, err := l.final(within(t, patience), p)
		if err != nil || reply(again) != reply(f) {
			t.Errorf("the same key again: %+v, %v", again, err)
		}
		p.Message = "two"
		var refused *client.CallError
		if _, err := l.final(within(t, patience), p); !errors.As(err, &refused) || refused.Err.Code != protocol.CodeInvalidRequest {
			t.Errorf("the same key with another message: %v", err)
		}
		if got, want := l.history(t, key("agent")), []string{"user:one", "assistant:You said: one"}; !slices.Equal(got, want) {
			t.Errorf("history: %q", got)
		}
	})
	t.Run("agent.wait before, during and after", func(t *testing.T) { waits(t, l, model) })
	t.Run("chat.send", func(t *testing.T) {
		model.Script(mockmodel.Reply{Match: "in pieces", Text: []string{"a", "b", "c", "d"}, PauseMs: 400})
		run := id.UUID()
		var sent protocol.ChatSent
		l.call(t, "chat.send", protocol.ChatSendParams{SessionKey: key("chat"), Message: "in pieces", IdempotencyKey: run}, &sent)
		end := l.await(within(t, patience), t, "the final", func(e event) bool {
			return e.Name == protocol.EventChat && e.RunID == run && e.State == protocol.ChatStateFinal
		})
		shown, deltas := "", 0
		for _, e := range l.of(run, protocol.EventChat) {
			if e.State != protocol.ChatStateDelta {
				continue
			}
			deltas++
			if e.Replace {
				shown = ""
			}
			shown += e.Delta
		}
		if sent.Status != protocol.StatusStarted || deltas < 2 || shown != "abcd" || end.text() != "abcd" {
			t.Errorf("%+v; %d deltas show %q, the final %q", sent, deltas, shown, end.text())
		}
	})
	t.Run("abort in mid-stream", func(t *testing.T) {
		model.Script(mockmodel.Reply{Match: "for ever", Text: []string{"it ", "goes on"}, Stall: true})
		run := id.UUID()
		l.call(t, "chat.send", protocol.ChatSendParams{SessionKey: key("abort"), Message: "for ever", IdempotencyKey: run}, nil)
		l.await(within(t, patience), t, "a delta", func(e event) bool { return e.RunID == run && e.State == protocol.ChatStateDelta })
		var aborted protocol.ChatAborted
		l.call(t, "chat.abort", protocol.ChatAbortParams{SessionKey: key("abort"), RunID: run}, &aborted)
		l.await(within(t, patience), t, "the end", func(e event) bool { return e.RunID == run && e.State == protocol.ChatStateAborted })
		if !aborted.Aborted || !slices.Equal(aborted.RunIDs, []string{run}) {
			t.Errorf("%+v", aborted)
		}
		f, err := l.final(within(t, patience), protocol.AgentParams{Message: "after", SessionKey: key("abort"), IdempotencyKey: id.UUID()})
		if err != nil || reply(f) != "You said: after" {
			t.Errorf("the session after an abort: %+v, %v", f, err)
		}
	})
	t.Run("a tool", func(t *testing.T) {
		model.Script(
			mockmodel.Reply{Match: "look around", Text: []string{"Let me see. "}, Calls: []mockmodel.Call{{ID: "call_1", Name: "ls", Arguments: `{"path":"."}`}}},
			mockmodel.Reply{Match: "look around", After: true, Text: []string{"All ", "seen."}},
		)
		run := id.UUID()
		f, err := l.final(within(t, patience), protocol.AgentParams{Message: "look around", SessionKey: key("tool"), IdempotencyKey: run})
		if err != nil || f.Status != protocol.StatusOK || !strings.HasSuffix(reply(f), "All seen.") {
			t.Errorf("%+v, %v", f, err)
		}
		l.await(within(t, patience), t, "the end", func(e event) bool { return e.RunID == run && e.phase() == protocol.LifecycleEnd })
		var phases []string
		for _, e := range l.of(run, protocol.EventAgent) {
			if e.Stream == protocol.StreamTool {
				phases = append(phases, e.phase())
			}
		}
		if !slices.Equal(phases, []string{"start", "result"}) {
			t.Errorf("tool events: %q", phases)
		}
	})
	t.Run("a burst of 20 is executed in order", func(t *testing.T) { burst(t, l, key("burst"), 20) })
	t.Run("the connection goes in mid-stream", func(t *testing.T) { gone(t, g, l, model) })
	t.Run("latency", func(t *testing.T) { latency(t, g, l, key("latency")) })
}

// waits asks for a run before it is known, while it is active, and after it.
func waits(t *testing.T, l *listener, model *mockmodel.Server) {
	gate := id.UUID()
	model.Script(mockmodel.Reply{Match: "be waited for", Text: []string{"well ", "waited"}, Gate: gate})
	run := id.UUID()
	before := make(chan protocol.Wait, 1)
	go func() {
		var w protocol.Wait
		ms := patience.Milliseconds()
		if err := l.Call(t.Context(), "agent.wait", protocol.AgentWaitParams{RunID: run, TimeoutMs: &ms}, &w); err != nil {
			w.Error = err.Error()
		}
		before <- w
	}()
	if w := l.wait(t, run, 0); w.Status != protocol.StatusTimeout || w.EndedAt != 0 {
		t.Errorf("an unknown run: %+v", w)
	}
	l.call(t, "agent", protocol.AgentParams{Message: "be waited for", SessionKey: "agent:main:wait", IdempotencyKey: run}, nil)
	model.AwaitWaiting(t, gate)
	if w := l.wait(t, run, 100*time.Millisecond); w.Status != protocol.StatusTimeout || w.EndedAt != 0 {
		t.Errorf("an active run, for too short: %+v", w)
	}
	during := make(chan protocol.Wait, 1)
	go func() {
		var w protocol.Wait
		ms := patience.Milliseconds()
		if err := l.Call(t.Context(), "agent.wait", protocol.AgentWaitParams{RunID: run, TimeoutMs: &ms}, &w); err != nil {
			w.Error = err.Error()
		}
		during <- w
	}()
	// A longer wait than this costs the gateway nothing: it has a row and a timer.
	if w := l.wait(t, run, 3*time.Second); w.Status != protocol.StatusTimeout || w.EndedAt != 0 {
		t.Errorf("an active run, until the deadline: %+v", w)
	}
	model.Open(gate)
	first, second := <-before, <-during
	for name, w := range map[string]protocol.Wait{"before": first, "during": second, "after": l.wait(t, run, time.Second)} {
		if w.Status != protocol.StatusOK || w.EndedAt == 0 || w.TerminalReply == nil || w.TerminalReply.Text != "well waited" {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// burst sends n messages one after another without waiting for anything, each when
// the one before has been accepted, and wants them answered in that order.
func burst(t *testing.T, l *listener, key string, n int) {
	ctx := within(t, 2*patience)
	answers := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		accepted := make(chan struct{})
		wg.Go(func() {
			p := protocol.AgentParams{Message: fmt.Sprintf("message %02d", i), SessionKey: key, IdempotencyKey: id.UUID(), Lane: "main"}
			raw, err := l.CallFinal(ctx, "agent", p, func(json.RawMessage) { close(accepted) })
			answers[i] = err
			if err != nil {
				t.Errorf("message %d: %v %s", i, err, raw)
			}
		})
		select {
		case <-accepted:
		case <-ctx.Done():
			t.Fatal("not accepted in time")
		}
	}
	wg.Wait()
	var users []string
	for _, line := range l.history(t, key) {
		if text, ok := strings.CutPrefix(line, "user:"); ok {
			users = append(users, text)
		}
	}
	if !slices.IsSorted(users) || len(users) != n {
		t.Errorf("executed: %q", users)
	}
}

// gone ends a connection while its run streams. The run does not notice, and what
// was known of the connection goes.
func gone(t *testing.T, g gateway, l *listener, model *mockmodel.Server) {
	gate := id.UUID()
	model.Script(mockmodel.Reply{Match: "to nobody", Text: []string{"one ", "two ", "three"}, PauseMs: 300, Gate: gate, GateAt: 1})
	leaver, err := g.connect(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	run := id.UUID()
	leaver.call(t, "agent", protocol.AgentParams{Message: "to nobody", SessionKey: "agent:main:gone", IdempotencyKey: run}, nil)
	leaver.await(within(t, patience), t, "a delta", func(e event) bool { return e.RunID == run && e.Stream == protocol.StreamAssistant })
	leaver.Close()
	model.Open(gate)
	if w := l.wait(t, run, patience); w.Status != protocol.StatusOK || w.TerminalReply == nil || w.TerminalReply.Text != "one two three" {
		t.Errorf("%+v", w)
	}
	rows := &connection.Service{Store: g.Tables, Clock: clock.System{}}
	poll(t, patience, "the connection is still known", func() bool {
		_, err := rows.Load(t.Context(), leaver.Hello().Server.ConnID)
		return errors.Is(err, connection.ErrGone)
	})
}

// turns is how many turns are measured.
const turns = 20

// latency measures turns of one client, one after another.
func latency(t *testing.T, g gateway, l *listener, key string) {
	var accepted, whole []time.Duration
	for range turns {
		began := time.Now()
		p := protocol.AgentParams{Message: "quick", SessionKey: key, IdempotencyKey: id.UUID()}
		_, err := l.CallFinal(within(t, patience), "agent", p, func(json.RawMessage) { accepted = append(accepted, time.Since(began)) })
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, time.Since(began))
	}
	figure(t, g.Level, "call to accepted reply", accepted)
	figure(t, g.Level, "call to final reply, instant model", whole)
}
