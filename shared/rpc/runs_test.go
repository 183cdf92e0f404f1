package rpc_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/diag"
	"laneway/shared/protocol"
	"laneway/shared/wiring"
)

// fastLease makes claims end soon, and holders that do not react lose them at once.
func fastLease(s *wiring.Settings) {
	s.Times = claim.Times{Lease: 300 * time.Millisecond, Renew: 30 * time.Millisecond, Poll: 10 * time.Millisecond}
	s.Diagnostics = diag.Thresholds{Settle: time.Millisecond}
}

// claimed takes the claim for the run that is next, as a runner does that goes no
// further.
func (w *world) claimed(key string) *claim.Holder {
	w.t.Helper()
	m := w.meta(key)
	p, ok := m.Lowest()
	if !ok {
		w.t.Fatal("no run waits")
	}
	h, err := w.core.Claims.Start(context.Background(), m, p)
	must(w.t, err)
	w.t.Cleanup(h.Close)
	return h
}

func (c *client) runs(p obj) protocol.RunsList {
	c.t.Helper()
	var l protocol.RunsList
	c.ok("runs.list", p, &l)
	return l
}

func idsOf(l protocol.RunsList) []string {
	out := []string{}
	for _, r := range l.Runs {
		out = append(out, r.RunID)
	}
	slices.Sort(out)
	return out
}

func TestRunsList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	if l := c.runs(obj{}); len(l.Runs) != 0 || l.NextCursor != "" {
		t.Errorf("%+v", l)
	}
	for i := range 3 {
		k := fmt.Sprint("s", i)
		c.ok("agent", obj{"sessionKey": k, "message": "hold " + k, "idempotencyKey": "run-" + k}, nil)
		w.model.waitFor(t, "hold "+k)
		for j := range 2 {
			c.ok("agent", obj{"sessionKey": k, "message": "next", "idempotencyKey": fmt.Sprintf("wait-%s-%d", k, j)}, nil)
		}
	}
	c.ok("agent", obj{"agentId": "other", "message": "hold other", "idempotencyKey": "run-other"}, nil)
	w.model.waitFor(t, "hold other")
	all := []string{"run-other", "run-s0", "run-s1", "run-s2", "wait-s0-0", "wait-s0-1", "wait-s1-0", "wait-s1-1", "wait-s2-0", "wait-s2-1"}
	for _, x := range []struct {
		p    obj
		want []string
	}{
		{obj{}, all},
		{obj{"state": "running"}, all[:4]},
		{obj{"state": "pending"}, all[4:]},
		{obj{"state": "sleeping"}, []string{}},
		{obj{"agentId": "other"}, all[:1]},
		{obj{"sessionKey": "s1"}, []string{"run-s1", "wait-s1-0", "wait-s1-1"}},
		{obj{"lane": "main"}, all},
		{obj{"lane": "cron"}, []string{}},
	} {
		if got := idsOf(w.scoped(protocol.ScopeRead).runs(x.p)); !slices.Equal(got, x.want) {
			t.Errorf("%v: %v, want %v", x.p, got, x.want)
		}
	}
	// Page by page nothing is missed and nothing comes twice.
	for limit := 1; limit <= 4; limit++ {
		var got []string
		p := obj{"limit": limit}
		for {
			l := c.runs(p)
			if len(l.Runs) > limit {
				t.Fatalf("%d rows of %d", len(l.Runs), limit)
			}
			got = append(got, idsOf(l)...)
			if l.NextCursor == "" {
				break
			}
			p["cursor"] = l.NextCursor
		}
		if slices.Sort(got); !slices.Equal(got, all) {
			t.Errorf("by %d: %v", limit, got)
		}
	}
	for _, r := range c.runs(obj{"sessionKey": "s0"}).Runs {
		switch r.RunID {
		case "run-s0":
			if r.State != "running" || r.OwnerLive == nil || !*r.OwnerLive || r.Attempt != 1 || r.StartedAt == 0 || r.Lane != "main" || r.SessionKey != "agent:main:s0" || r.Method != "agent" || r.LastProgressAgeMs == nil {
				t.Errorf("%+v", r)
			}
		case "wait-s0-1":
			if r.State != "pending" || r.Position != 2 || r.StartedAt != 0 || r.AcceptedAt == 0 {
				t.Errorf("%+v", r)
			}
		}
	}
	if l := w.stranger().runs(obj{}); len(l.Runs) != 0 {
		t.Errorf("K2: a stranger sees %v", idsOf(l))
	}
	for _, bad := range []string{"?", "MTAw", "OTl8MXx4"} {
		c.fails("runs.list", obj{"cursor": bad}, protocol.CodeInvalidRequest, "invalid cursor")
	}
	w.scoped().fails("runs.list", obj{}, protocol.CodeForbidden, "scope")
}

func TestRunsAbort(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.scoped(protocol.ScopeRead, protocol.ScopeWrite)
	c.fails("runs.abort", obj{"runId": "nope"}, protocol.CodeInvalidRequest, "No run found")
	c.ok("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "r1"}, nil)
	w.model.waitFor(t, "hold")
	c.ok("agent", obj{"sessionKey": "s", "message": "next", "idempotencyKey": "r2"}, nil)
	w.stranger().fails("runs.abort", obj{"runId": "r1"}, protocol.CodeInvalidRequest, "No run found")
	w.scoped(protocol.ScopeRead).fails("runs.abort", obj{"runId": "r1"}, protocol.CodeForbidden, "scope")
	for _, id := range []string{"r2", "r1"} { // one that waits, one that runs
		var a protocol.RunAborted
		c.ok("runs.abort", obj{"runId": id, "reason": "wrong one"}, &a)
		if want := (protocol.RunAborted{OK: true, RunID: id, SessionKey: key, Aborted: true, Status: "aborted", Outcome: "aborted"}); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
	w.idle(key)
	if w.model.count("next") != 0 {
		t.Error("a stopped run ran")
	}
}

// A holder that lives and does not react loses its claim, and its run ends.
func TestRunsAbort_AHolderThatDoesNotReact(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner, settings(fastLease))
	c := w.user()
	c.ok("agent", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "r1"}, nil)
	h := w.claimed(key)
	var a protocol.RunAborted
	c.ok("runs.abort", obj{"runId": "r1"}, &a)
	if !a.Aborted || a.Status != "aborted" {
		t.Errorf("%+v", a)
	}
	if err := h.Commit(context.Background(), claim.Tx{}); err == nil {
		t.Error("the old holder still writes")
	}
	if m := w.meta(key); m.Active != "" || m.Owner != "" || m.LastEnd != "aborted" {
		t.Errorf("%+v", m)
	}
}

// A message that was steered into a run is a part of it.
func TestRunsAbort_ADeliveredMessage(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	c.ok("agent", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "r1"}, nil)
	w.claimed(key)
	c.ok("chat.send", obj{"sessionKey": "s", "message": "and", "idempotencyKey": "s1", "queueMode": "steer"}, nil)
	if m := w.meta(key); m.MailN != 1 {
		t.Fatalf("%+v", m)
	}
	var e protocol.SessionExplained
	c.ok("sessions.explain", obj{"key": "s"}, &e)
	if len(e.Queue) != 1 || e.Queue[0].RunID != "s1" || e.Queue[0].Mode != "steer" || e.Active.UndeliveredSteers != 1 {
		t.Errorf("%+v", e.Queue)
	}
	var a protocol.RunAborted
	c.ok("runs.abort", obj{"runId": "s1"}, &a)
	if !a.Aborted || a.Status != "aborted" {
		t.Errorf("undelivered: %+v", a)
	}
	if m := w.meta(key); m.MailN != 0 || m.Active == "" {
		t.Errorf("%+v", m)
	}
}
