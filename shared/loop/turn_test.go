package loop_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
)

const key = "agent:main:t"

func TestTurn_TextStreamsAndEndsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.model.on(say("Hello ", "there."))
	c := b.connect()
	b.send(c, key, "r1", "hi")
	f := b.final(c, "r1")
	if got := str(f, "payload.result.payloads.0.text"); got != "Hello there." || str(f, "payload.status") != "ok" {
		t.Fatalf("final: %v", f)
	}
	m := b.idle(key)
	if m.Head != 2 || m.Active != "" || m.Owner != "" || m.LastEnd != "ok" {
		t.Fatalf("session after the turn: %+v", m)
	}
	for _, phase := range []string{"start", "end"} {
		if n := len(c.all(event("agent", "lifecycle", phase))); n != 1 {
			t.Errorf("lifecycle %s came %d times: %s", phase, n, c.dump())
		}
	}
	if n := len(c.all(event("chat", "", "final"))); n != 1 {
		t.Errorf("chat final came %d times", n)
	}
}

func TestTurn_ToolsRunAndResultsGoBackInCallOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must(t, os.WriteFile(filepath.Join(b.ws, "a.txt"), []byte("content of a"), 0o600))
	b.model.on(
		callTools(
			model.Block{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a.txt"}`)},
			model.Block{ID: "c2", Name: "ls", Arguments: json.RawMessage(`{}`)},
			model.Block{ID: "c3", Name: "nope", Arguments: json.RawMessage(`{}`)}),
		say("done"))
	c := b.connect("tool-events")
	b.send(c, key, "r1", "look")
	if f := b.final(c, "r1"); str(f, "payload.result.payloads.0.text") != "done" {
		t.Fatalf("final: %v", f)
	}
	calls := b.model.calls()
	if len(calls) != 2 {
		t.Fatalf("model calls: %d", len(calls))
	}
	var ids []string
	for _, m := range calls[1].Messages {
		if m.Role == model.ToolResult {
			ids = append(ids, m.ToolCallID)
		}
	}
	if len(ids) != 3 || ids[0] != "c1" || ids[1] != "c2" || ids[2] != "c3" {
		t.Fatalf("results: %v", ids)
	}
	if n := len(c.all(event("agent", "tool", "result"))); n != 3 {
		t.Errorf("tool results told: %d", n)
	}
	if m := b.idle(key); m.Head != 6 {
		t.Errorf("rows: %d, want user, call, three results, answer", m.Head)
	}
}

func TestTurn_AbortKeepsThePartialTextAndEndsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gate := make(chan struct{})
	b.model.on(hold(gate, "partial ", "never"))
	c := b.connect()
	b.send(c, key, "r1", "hi")
	c.until(t, "a delta", event("agent", "assistant", ""))
	ref := session.Ref{Tenant: session.DefaultTenant, Key: key}
	ok, err := b.core.Lanes.StopRun(t.Context(), lane.Stop{Ref: ref, RunID: "r1", Reason: "rpc"})
	must(t, err)
	if !ok {
		t.Fatal("not stopped")
	}
	f := b.final(c, "r1")
	if str(f, "payload.status") != "timeout" || str(f, "payload.stopReason") != "rpc" {
		t.Fatalf("final: %v", f)
	}
	m := b.idle(key)
	rows, err := b.core.Transcripts.Context(t.Context(), m)
	must(t, err)
	if len(rows) != 2 || strings.TrimSpace(rows[1].Text()) != "partial" || rows[1].Abort == nil {
		t.Fatalf("rows: %+v", rows)
	}
	st, err := run.Load(t.Context(), b.store, run.RefOf(session.DefaultTenant, "r1"))
	must(t, err)
	if st.Outcome.Kind != run.Aborted {
		t.Fatalf("outcome: %+v", st.Outcome)
	}
}

func TestTurn_RecoveredErrorLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.model.on(fail(model.ServerError), fail(model.Overloaded), say("ok now"))
	c := b.connect()
	b.send(c, key, "r1", "hi")
	if f := b.final(c, "r1"); str(f, "payload.result.payloads.0.text") != "ok now" {
		t.Fatalf("final: %v", f)
	}
	if m := b.idle(key); m.Head != 2 {
		t.Fatalf("rows: %d", m.Head)
	}
}

func TestTurn_FailureIsToldAndTheLaneGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.model.on(fail(model.Auth), say("next"))
	c := b.connect()
	b.send(c, key, "r1", "hi")
	b.send(c, key, "r2", "again")
	f := b.final(c, "r1")
	if f["ok"] != false || str(f, "error.code") != "UNAVAILABLE" || str(f, "payload.status") != "error" {
		t.Fatalf("final: %v", f)
	}
	if f := b.final(c, "r2"); str(f, "payload.result.payloads.0.text") != "next" {
		t.Fatalf("second: %v", f)
	}
}
