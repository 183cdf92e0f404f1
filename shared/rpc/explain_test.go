package rpc_test

import (
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/session"
)

// TestSessionsExplain: who has the claim, what its run is at, what waits at which
// place, which limits are in force, and what comes next.
func TestSessionsExplain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.scoped(protocol.ScopeRead, protocol.ScopeWrite)
	c.fails("sessions.explain", obj{"key": "s"}, protocol.CodeInvalidRequest, "No session found")
	c.ok("chat.send", obj{"sessionKey": "s", "message": "hold it", "idempotencyKey": "r1"}, nil)
	w.model.waitFor(t, "hold it")
	for _, id := range []string{"r2", "r3"} {
		c.ok("agent", obj{"sessionKey": "s", "message": "next " + id, "idempotencyKey": id}, nil)
	}
	var e protocol.SessionExplained
	w.scoped(protocol.ScopeRead).ok("sessions.explain", obj{"key": "s"}, &e)
	if e.Key != key || e.State != "processing" || e.Claim == nil || e.Claim.Kind != "run" || e.Claim.RunID != "r1" || !e.Claim.Live || e.Claim.Attempt != 1 || e.Claim.LeaseLeft <= 0 {
		t.Errorf("%+v, claim %+v", e, e.Claim)
	}
	if r := e.Active; r == nil || r.RunID != "r1" || r.State != "running" || r.Lane != "main" || r.Attempt != 1 || r.StartedAt == 0 {
		t.Errorf("active %+v", r)
	}
	if len(e.Queue) != 2 || e.Queue[0].RunID != "r2" || e.Queue[0].Position != 1 || e.Queue[1].RunID != "r3" || e.Queue[1].Position != 2 {
		t.Errorf("queue %+v", e.Queue)
	}
	names := []string{}
	for _, b := range e.Bounds {
		names = append(names, b.Name)
	}
	for _, want := range []string{"run_timeout", "lease", "stuck_warn", "stuck_abort"} {
		if !strings.Contains(strings.Join(names, " "), want) {
			t.Errorf("bounds %v lack %s", names, want)
		}
	}
	if e.Next.Action == "" || e.Next.At < e.TS {
		t.Errorf("next %+v", e.Next)
	}
	for _, want := range []string{key + " is processing", "claim: run r1, attempt 1", "waiting 2: run r3 in lane main", "next: "} {
		if !strings.Contains(e.Text, want) {
			t.Errorf("no %q in\n%s", want, e.Text)
		}
	}
	w.stranger().fails("sessions.explain", obj{"key": "s"}, protocol.CodeInvalidRequest, "No session found")
	w.scoped().fails("sessions.explain", obj{"key": "s"}, protocol.CodeForbidden, "scope")
	w.model.release()
	w.idle(key)
	c.ok("sessions.explain", obj{"key": "s"}, &e)
	if e.State != "idle" || e.Next.Action != "none" || len(e.Queue) != 0 {
		t.Errorf("%+v", e)
	}
}

// TestF28_ADeadRunIsShownAsDead: with its owner and age; an operator's stop returns the
// session to idle though nobody takes wake-ups.
func TestF28_ADeadRunIsShownAsDead(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner, settings(fastLease))
	c := w.user()
	c.ok("agent", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "r1"}, nil)
	h := w.claimed(key)
	c.ok("agent", obj{"sessionKey": "s", "message": "next", "idempotencyKey": "r2"}, nil)
	h.Close() // its process died
	var e protocol.SessionExplained
	w.until("the holder is seen as dead", func() bool {
		c.ok("sessions.explain", obj{"key": "s"}, &e)
		return !e.Claim.Live
	})
	if e.Active.State != "dead" || e.Claim.RunID != "r1" || e.Claim.LeaseAgeMs <= 0 || e.Next.Action != "resume" || !strings.Contains(e.Text, "run r1, attempt 1") {
		t.Errorf("%+v %+v\n%s", e.Active, e.Claim, e.Text)
	}
	var a protocol.RunAborted
	c.ok("runs.abort", obj{"runId": "r1"}, &a)
	if !a.OK || !a.Aborted || a.Status != "aborted" || a.Outcome != "aborted" || a.SessionKey != key {
		t.Errorf("%+v", a)
	}
	if m := w.meta(key); m.Active != "" || len(m.Pending) != 1 || len(m.Unsettled) != 0 {
		t.Errorf("%+v", m)
	}
	c.ok("runs.abort", obj{"runId": "r2"}, &a)
	if !a.Aborted || a.Status != "aborted" {
		t.Errorf("%+v", a)
	}
	c.ok("runs.abort", obj{"runId": "r2"}, &a)
	if a.Aborted || a.Status != "ended" || a.Outcome != "aborted" {
		t.Errorf("again: %+v", a)
	}
	if got := w.meta(key); got.SessionID == "" || session.AgentOf(got.Key) != "main" {
		t.Errorf("%+v", got)
	}
}
