package rpc_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/transcript"
	"laneway/shared/wiring"
	"laneway/test/backends"
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

// TestRuntime33_AStaleSessionStartsOver: a message that comes after the session went
// stale begins a transcript of its own, which says why; the one before it is kept, and
// known as the previous one.
func TestRuntime33_AStaleSessionStartsOver(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := setup(t, over(s), settings(func(s *wiring.Settings) { s.Reset.Base = session.ResetPolicy{Idle: time.Nanosecond} }))
		c := w.user()
		c.says("s", "k1", "the old story")
		before := w.idle(key)
		c.says("s", "k2", "a new one")
		after := w.idle(key)
		if after.SessionID == before.SessionID || after.PrevID != before.SessionID || after.Began == 0 {
			t.Errorf("%s after %s: %+v", after.SessionID, before.SessionID, after)
		}
		var d protocol.SessionDescribed
		var l protocol.SessionsList
		var e protocol.SessionExplained
		c.ok("sessions.describe", obj{"key": "s"}, &d)
		c.ok("sessions.list", obj{}, &l)
		c.ok("sessions.explain", obj{"key": "s"}, &e)
		if d.Session.PreviousID != before.SessionID || len(l.Sessions) != 1 || l.Sessions[0].PreviousID != before.SessionID || e.PreviousID != before.SessionID {
			t.Errorf("before it was %s: %+v, %+v, %+v", before.SessionID, d.Session, l.Sessions, e)
		}
		if !strings.Contains(e.Text, "before it was transcript "+before.SessionID) {
			t.Errorf("%s", e.Text)
		}
		if texts := w.model.texts(); len(texts) != 1 || texts[0] != "a new one" {
			t.Errorf("the model saw %q", texts)
		}
		rows, err := w.core.Transcripts.Range(t.Context(), after.Ref, after.SessionID, 1, after.Head)
		must(t, err)
		if len(rows) != 3 || rows[0].Type != transcript.Reset || rows[0].Reason != session.ResetIdle {
			t.Errorf("%+v", rows)
		}
		old, err := w.core.Transcripts.Range(t.Context(), before.Ref, before.SessionID, 1, before.Head)
		must(t, err)
		if len(old) != 2 {
			t.Errorf("the old transcript: %+v", old)
		}
	})
}
