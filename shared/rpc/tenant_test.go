package rpc_test

import (
	"context"
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/run"
)

// TestK2_AnotherTenantsThingsLookUnknown: whatever a stranger names that is ours is
// answered exactly as if it did not exist, and nothing of ours changes.
func TestK2_AnotherTenantsThingsLookUnknown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c, stranger, nobody := w.user(), w.stranger(), w.stranger()
	c.says("s", "ours", "the secret")
	c.ok("sessions.patch", obj{"key": "s", "label": "Secret"}, nil)
	sid := w.idle(key).SessionID
	held := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "active"})
	w.model.waitFor(t, "hold")
	before := w.meta(key)
	for _, q := range []struct {
		method       string
		ours, absent obj
	}{
		{"agent.wait", obj{"runId": "ours", "timeoutMs": 0}, obj{"runId": "none", "timeoutMs": 0}},
		{"agent.wait", obj{"runId": "active", "timeoutMs": 50}, obj{"runId": "none", "timeoutMs": 50}},
		{"chat.history", obj{"sessionKey": key}, obj{"sessionKey": "none"}},
		{"chat.history", obj{"sessionKey": key, "sessionId": sid}, obj{"sessionKey": "none", "sessionId": sid}},
		{"chat.startup", obj{"shortId": sid, "agentId": "main"}, obj{"shortId": "none", "agentId": "main"}},
		{"chat.abort", obj{"sessionKey": key}, obj{"sessionKey": "none"}},
		{"chat.abort", obj{"sessionKey": key, "runId": "active"}, obj{"sessionKey": "none", "runId": "none"}},
		{"chat.inject", obj{"sessionKey": key, "message": "m"}, obj{"sessionKey": "none", "message": "m"}},
		{"sessions.describe", obj{"key": key}, obj{"key": "none"}},
		{"sessions.resolve", obj{"key": key}, obj{"key": "none"}},
		{"sessions.resolve", obj{"sessionId": sid}, obj{"sessionId": "none"}},
		{"sessions.resolve", obj{"label": "Secret"}, obj{"label": "none"}},
		{"sessions.resolve", obj{"shortId": sid[:8]}, obj{"shortId": "none"}},
		{"sessions.get", obj{"key": key}, obj{"key": "none"}},
		{"sessions.preview", obj{"keys": []string{key}}, obj{"keys": []string{"agent:main:none"}}},
		{"sessions.abort", obj{"key": key}, obj{"key": "none"}},
		{"sessions.abort", obj{"runId": "active"}, obj{"runId": "none"}},
		{"sessions.reset", obj{"key": key}, obj{"key": "none"}},
		{"sessions.delete", obj{"key": key}, obj{"key": "none"}},
		{"sessions.list", nil, nil},
	} {
		theirs, none := stranger.call(q.method, q.ours), nobody.call(q.method, q.absent)
		say := func(f protocol.Frame) string {
			s := string(f.Payload)
			if f.Err != nil {
				s = f.Err.Error()
			}
			for _, name := range []string{key, "agent:main:none", `"displayName":"s"`, `"displayName":"none"`, sid, sid[:8], "active", "ours", "Secret", "none"} {
				s = strings.ReplaceAll(s, name, "NAME")
			}
			return timeless(s)
		}
		if a, b := say(theirs), say(none); a != b {
			t.Errorf("%s %v\n ours:   %s\n absent: %s", q.method, q.ours, a, b)
		}
	}
	if m := w.meta(key); m.Active != before.Active || m.Cancel != "" || m.Cutoff != before.Cutoff || m.Head != before.Head || len(m.Stops) != 0 {
		t.Errorf("before %+v\nafter %+v", before, m)
	}
	// A run id of ours is free under another tenant, and theirs is not ours.
	if f := stranger.says("s", "ours", "my own"); f.Status != "ok" || f.Result.Payloads[0].Text != "you said my own" {
		t.Errorf("%+v", f)
	}
	st, err := run.Load(context.Background(), w.store, run.RefOf("default", "ours"))
	if err != nil || st.Outcome.Text != "you said the secret" {
		t.Errorf("%+v, %v", st.Outcome, err)
	}
	w.model.release()
	var f protocol.Final
	if into(t, c.answer(held, 2), &f); f.Status != "ok" {
		t.Errorf("our run: %+v", f)
	}
	if strings.Contains(stranger.dump(), "the secret") {
		t.Error("something of ours was told")
	}
}

// timeless takes the times out of a reply.
func timeless(s string) string {
	var b strings.Builder
	digits := 0
	for _, r := range s {
		if r >= '0' && r <= '9' {
			digits++
			continue
		}
		if digits > 0 {
			b.WriteByte('0')
		}
		digits = 0
		b.WriteRune(r)
	}
	return b.String()
}

// TestK2_SubscriptionsStayInTheirTenant: neither by key nor by "all" does anybody
// hear of another tenant's runs.
func TestK2_SubscriptionsStayInTheirTenant(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c, stranger := w.user(), w.stranger()
	c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "k"})
	w.model.waitFor(t, "hold")
	stranger.ok("sessions.messages.subscribe", obj{"key": key}, nil)
	stranger.ok("sessions.subscribe", nil, nil)
	before := w.meta(key)
	w.model.release()
	w.idle(key)
	if d := stranger.dump(); strings.Contains(d, `"event":"agent"`) || strings.Contains(d, `"event":"chat"`) {
		t.Errorf("a stranger hears of our run:\n%s", d)
	}
	if before.SubRev != 0 {
		t.Error("a stranger's subscription has touched our session")
	}
}

// TestK2_AWaitOfAnotherTenantIsNotAnsweredByOurRun: the waiter of a run that only
// has its name in common is not woken.
func TestK2_AWaitOfAnotherTenantIsNotAnsweredByOurRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c, stranger := w.user(), w.stranger()
	wait := stranger.post("agent.wait", obj{"runId": "k", "timeoutMs": 3_600_000})
	c.says("s", "k", "hello")
	w.idle(key)
	if n := stranger.answers(wait); n != 0 {
		t.Errorf("%d answers\n%s", n, stranger.dump())
	}
	stranger.says("x", "k", "mine")
	var got protocol.Wait
	if into(t, stranger.answer(wait, 1), &got); got.TerminalReply == nil || got.TerminalReply.Text != "you said mine" {
		t.Errorf("%+v", got)
	}
}
