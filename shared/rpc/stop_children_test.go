package rpc_test

import (
	"context"
	"errors"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/rpc"
	"laneway/shared/session"
	"laneway/shared/wiring"
)

// tree is a directory of children by session key; of a name that it has not it fails.
type tree map[string][]string

func (t tree) Children(_ context.Context, ref session.Ref, _ string) (out []session.Ref, err error) {
	keys, ok := t[ref.Key]
	if !ok {
		return nil, errors.New("unreachable")
	}
	for _, k := range keys {
		out = append(out, session.Ref{Tenant: ref.Tenant, Key: k})
	}
	return out, nil
}

// TestRuntime55_AStopGoesOnToSubAgents: to those of those too, once each although they
// know each other, and past one whose children are not known; the answer counts them.
func TestRuntime55_AStopGoesOnToSubAgents(t *testing.T) {
	t.Parallel()
	var children rpc.Children = tree{
		"agent:main:s": {"agent:main:a", "agent:main:b"},
		"agent:main:a": {"agent:main:c", "agent:main:s"},
		"agent:main:c": {"agent:main:a"},
	}
	w := setup(t, settings(func(s *wiring.Settings) { s.Children = children }))
	c := w.user()
	reqs := make(map[string]string)
	for _, s := range []string{"s", "b", "c", "other"} {
		reqs[s] = c.post("agent", obj{"sessionKey": s, "message": "hold " + s, "idempotencyKey": "run-" + s})
		w.model.waitFor(t, "hold "+s)
	}
	var f protocol.Final
	c.ok("agent", obj{"sessionKey": "s", "message": "/stop", "idempotencyKey": "stop"}, &f)
	want := "⚙️ Agent was aborted. Stopped 2 sub-agent(s). Cancellation was incomplete for 1 sub-agent(s). Retry /stop."
	if f.Result == nil || len(f.Result.Payloads) != 1 || f.Result.Payloads[0].Text != want {
		t.Errorf("%+v", f.Result)
	}
	for _, s := range []string{"s", "b", "c"} {
		c.answer(reqs[s], 2)
	}
	var st protocol.Wait
	c.ok("agent.wait", obj{"runId": "run-other", "timeoutMs": 1}, &st)
	if st.Status != "timeout" {
		t.Errorf("a session that is nobody's child: %+v", st)
	}
	c.ok("chat.abort", obj{"sessionKey": "other"}, nil)
	c.answer(reqs["other"], 2)
}
