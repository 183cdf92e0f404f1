package rpc_test

import (
	"sync"
	"testing"

	"laneway/shared/protocol"
)

// TestRuntime33_ResetWithATextSentTwiceAtOnceIsDoneOnce: two copies of a message that
// starts the session over and goes on are one reset and one run, which neither of them
// ends.
func TestRuntime33_ResetWithATextSentTwiceAtOnceIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"chat.send", "agent"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, w *world, c, _ *client) {
				t.Helper()
				c.says("s", "before", "an old story")
				w.idle(key)
				for _, id := range []string{"k1", "k2", "k3"} {
					var both sync.WaitGroup
					var sent [2]protocol.Frame
					two := []*client{c, w.user()}
					for i, x := range two {
						both.Go(func() {
							req := x.post(method, obj{"sessionKey": "s", "message": "/reset tell me " + id, "idempotencyKey": id})
							sent[i] = x.answer(req, 1)
						})
					}
					both.Wait()
					for _, f := range sent {
						if !f.OK {
							t.Errorf("%s: %v", id, f.Err)
						}
					}
					c.ok("agent.wait", obj{"runId": id, "timeoutMs": 15000}, nil)
					w.idle(key)
					var got protocol.Wait
					c.ok("agent.wait", obj{"runId": id, "timeoutMs": 15000}, &got)
					if got.Status != "ok" {
						t.Errorf("%s: %+v", id, got)
					}
					if n := w.model.count("tell me " + id); n != 1 {
						t.Errorf("%s: asked %d times", id, n)
					}
					if texts := w.model.texts(); len(texts) != 1 {
						t.Errorf("%s: the model saw %q", id, texts)
					}
				}
			})
		})
	}
}
