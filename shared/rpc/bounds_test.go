package rpc_test

import (
	"testing"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/table"
	"laneway/shared/wiring"
	"laneway/test/backends"
)

// TestRuntime51_ExplainSaysWhichLimitsHoldAndWhy: the limits of a run that is at work,
// each with its reason.
func TestRuntime51_ExplainSaysWhichLimitsHoldAndWhy(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		limit any // timeoutMs; nil: not given
		want  map[string]string
	}{
		{"the default", nil, map[string]string{"run_timeout": "the default of runs"}},
		{"the caller's", 60_000, map[string]string{"run_timeout": "its caller asked for it", "model_silence": "row 4: the run's own limit, at most what the endpoint's class allows"}},
		{"none", 0, map[string]string{"run_timeout": ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			backends.Each(t, func(t *testing.T, store table.Store) {
				w := setup(t, over(store), settings(func(s *wiring.Settings) { s.Times.Renew = 100 * time.Millisecond }))
				c := w.user()
				p := obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "k"}
				if row.limit != nil {
					p["timeoutMs"] = row.limit
				}
				c.ok("chat.send", p, nil)
				w.model.waitFor(t, "hold")
				var got map[string]string
				w.until("the holder says what it is at", func() bool {
					var x protocol.SessionExplained
					c.ok("sessions.explain", obj{"key": "s"}, &x)
					got = map[string]string{}
					for _, b := range x.Bounds {
						if b.Why == "" {
							t.Errorf("%s holds for no reason", b.Name)
						}
						got[b.Name] = b.Why
					}
					return got["lease"] != "" && (row.want["model_silence"] == "" || got["model_silence"] != "")
				})
				for name, why := range row.want {
					if got[name] != why {
						t.Errorf("%s: %q, want %q", name, got[name], why)
					}
				}
				c.ok("chat.abort", obj{"sessionKey": "s"}, nil)
				w.idle(key)
			})
		})
	}
}
