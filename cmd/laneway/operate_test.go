package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/test/fakegateway"
)

func TestSessionsExplain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("sessions.explain", func(conn *fakegateway.Conn, r protocol.Request) {
		conn.Result(r, protocol.SessionExplained{Key: "agent:main:s", Text: "agent:main:s is idle\nnext: none\n"})
	})
	w.runs(0, "sessions", "explain", "s", "--agent", "main")
	if w.out.String() != "agent:main:s is idle\nnext: none\n" {
		t.Errorf("stdout %q", w.out)
	}
	if p := fakegateway.Params[protocol.SessionKeyParams](t, w.gateway.Await("sessions.explain")); p.Key != "s" || p.AgentID != "main" {
		t.Errorf("%+v", p)
	}
	w.runs(0, "sessions", "explain", "s", "--json")
	contains(t, "stdout", w.out.String(), `"text":"agent:main:s is idle`)
}

func TestRunsList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	no, yes := false, true
	w.gateway.On("runs.list", func(conn *fakegateway.Conn, r protocol.Request) {
		conn.Result(r, protocol.RunsList{NextCursor: "more", Runs: []protocol.RunRow{
			{RunID: "r1", State: "running", OwnerLive: &yes, Lane: "main", SessionKey: "agent:main:a", ForMs: 72_000, StartedAt: 1, Step: 3, Tool: "exec", Usage: &protocol.Usage{TotalTokens: 42}},
			{RunID: "r2", State: "pending", Position: 2, Lane: "cron", SessionKey: "agent:main:a"},
			{RunID: "r3", State: "running", OwnerLive: &no, Lane: "main", SessionKey: "agent:main:b", StartedAt: 1},
			{RunID: "r4", State: "running", OwnerLive: &yes, Stopping: true, Lane: "main", SessionKey: "agent:main:c", StartedAt: 1},
		}})
	})
	w.runs(0, "runs", "list", "--limit", "4", "--state", "running", "--lane", "main")
	for i, want := range []string{"RUN STATE FOR LANE SESSION STEP TOKENS DOING", "r1 running 1m12s main agent:main:a 3 42 tool exec", "r2 pending (2) 0s cron agent:main:a - - -", "r3 dead", "r4 stopping"} {
		line := strings.Join(strings.Fields(strings.Split(w.out.String(), "\n")[i]), " ")
		if !strings.HasPrefix(line, want) {
			t.Errorf("line %d: %q, want %q", i, line, want)
		}
	}
	contains(t, "stderr", w.err.String(), "--limit 16")
	p := fakegateway.Params[protocol.RunsListParams](t, w.gateway.Await("runs.list"))
	if *p.Limit != 4 || p.State != "running" || p.Lane != "main" {
		t.Errorf("%+v", p)
	}
	w.runs(0, "runs", "list", "--json")
	contains(t, "stdout", w.out.String(), `"nextCursor":"more"`)
}

func TestRunsAbort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies     []protocol.RunAborted
		code        int
		out, stderr string
	}{
		"stopped":   {[]protocol.RunAborted{{RunID: "r", Aborted: true, Status: "aborted"}}, 0, "run r is stopped\n", ""},
		"ended":     {[]protocol.RunAborted{{RunID: "r", Status: "ended", Outcome: "ok"}}, 0, "run r had ended before: ok\n", ""},
		"delivered": {[]protocol.RunAborted{{RunID: "r", Status: "delivered", Into: "q"}}, 1, "", "part of run q"},
		"does not react": {
			[]protocol.RunAborted{{RunID: "r", Status: "stopping"}, {RunID: "r", Aborted: true, Status: "aborted"}},
			0, "run r is stopped\n", "does not react",
		},
		"never": {[]protocol.RunAborted{{RunID: "r", Status: "stopping"}}, 1, "", "try again in a minute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			m := clocktest.New()
			m.Short = time.Minute // its pauses end at once
			w.app.clock = m
			n := 0
			w.gateway.On("runs.abort", func(conn *fakegateway.Conn, r protocol.Request) {
				conn.Result(r, c.replies[min(n, len(c.replies)-1)])
				n++
			})
			w.runs(c.code, "runs", "abort", "r", "--reason", "wrong")
			if w.out.String() != c.out {
				t.Errorf("stdout %q", w.out)
			}
			contains(t, "stderr", w.err.String(), c.stderr)
			if p := fakegateway.Params[protocol.RunsAbortParams](t, w.gateway.Await("runs.abort")); p.RunID != "r" || p.Reason != "wrong" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestDLQ(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := int64(1_796_058_131_523)
	w.gateway.On("dlq.list", func(conn *fakegateway.Conn, r protocol.Request) {
		conn.Result(r, protocol.DLQList{HasMore: true, Letters: []protocol.DeadLetter{{Lane: "main", Kind: "wake", At: at, Receives: 5, Tenant: "acme", SessionKey: "agent:main:s"}}})
	})
	done := protocol.DLQDone{OK: true, Count: 3, Lanes: map[string]int{"main": 2, "timers": 1, "cron": 0}}
	for _, m := range []string{"dlq.retry", "dlq.purge"} {
		w.gateway.On(m, func(conn *fakegateway.Conn, r protocol.Request) { conn.Result(r, done) })
	}
	w.runs(0, "dlq", "list", "--lane", "main")
	contains(t, "stdout", w.out.String(), "acme", "agent:main:s", "wake")
	contains(t, "stderr", w.err.String(), "--limit 400")
	w.runs(0, "dlq", "retry")
	contains(t, "stdout", w.out.String(), "sent again: 1 of timers, 2 of main")
	w.runs(0, "dlq", "purge", "--json")
	contains(t, "stdout", w.out.String(), `"count":3`)
	w.runs(1, "dlq", "list", "--lane", "other")
}

// deadBox is the dead-letter queues of a stack.
type deadBox struct {
	letters map[queue.Lane][]queue.DeadLetter
}

func (b *deadBox) DeadLetters(_ context.Context, l queue.Lane, limit int) ([]queue.DeadLetter, error) {
	return b.letters[l][:min(limit, len(b.letters[l]))], nil
}

func (b *deadBox) Redrive(ctx context.Context, l queue.Lane) (int, error) { return b.Purge(ctx, l) }

func (b *deadBox) Purge(_ context.Context, l queue.Lane) (int, error) {
	n := len(b.letters[l])
	delete(b.letters, l)
	return n, nil
}

// TestDLQ_OfAStack: with an operator's own credentials, without a gateway.
func TestDLQ_OfAStack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	box := &deadBox{letters: map[queue.Lane][]queue.DeadLetter{
		queue.Main: {{ID: "1", Body: []byte(`{"t":"acme","k":"agent:main:s","l":"cron"}`)}, {ID: "2", Body: []byte(`{"t":"acme","k":"agent:main:u","l":"main"}`)}},
		"":         {{ID: "3", Body: []byte(`{"kind":"post"}`)}},
	}}
	w.app.openDead = func(_ context.Context, stack string) (deadLetters, error) {
		if stack != "prod" {
			t.Errorf("stack %q", stack)
		}
		return deadLetters{store: box, lanes: []queue.Lane{queue.Main, ""}}, nil
	}
	aws := func(code int, args ...string) {
		w.t.Helper()
		w.runs(code, append(args, "--backend", "aws", "--stack", "prod")...)
	}
	aws(0, "dlq", "list", "--limit", "2")
	contains(t, "stdout", w.out.String(), "agent:main:s", "agent:main:u")
	contains(t, "stderr", w.err.String(), "there are more")
	aws(1, "dlq", "retry", "--lane", "cron")
	contains(t, "stderr", w.err.String(), "share one dead-letter queue")
	aws(0, "dlq", "retry", "--lane", "timers")
	contains(t, "stdout", w.out.String(), "sent again: 1 of timers")
	aws(0, "dlq", "purge")
	contains(t, "stdout", w.out.String(), "forgotten: 2 of main")
	if len(w.gateway.Requests()) != 0 {
		t.Error("a gateway was asked")
	}
}
