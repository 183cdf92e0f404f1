package models

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

// Runtime 5.1, row "Agent runtime", over the wire: defaults.timeoutSeconds ends a run that
// names no limit, sessions.explain says why, and a run's own limit goes before it.
func TestRuntime51_ConfiguredRunTimeout(t *testing.T) {
	t.Parallel()
	b := start(t, `"defaults": {`, `"defaults": {"timeoutSeconds": 2, `)
	b.one.Script(mockmodel.Reply{Match: "stall", Text: []string{"half "}, Stall: true, Times: -1})
	run := id.UUID()
	b.call("chat.send", protocol.ChatSendParams{SessionKey: key, Message: "stall", IdempotencyKey: run}, nil)
	b.one.AwaitRequests(t, 1)
	if why := b.runTimeout(); why != "it is configured for all runs" {
		t.Errorf("the run's limit holds because %q", why)
	}
	var snap map[string]any
	b.call("agent.wait", protocol.AgentWaitParams{RunID: run}, &snap)
	if snap["status"] != "timeout" || snap["timeoutPhase"] != "provider" {
		t.Errorf("%v", snap)
	}
	zero := int64(0)
	gate := mockmodel.Reply{Match: "gated", Gate: "g", Text: []string{"at last"}}
	b.one.Script(gate)
	done := make(chan error, 1)
	go func() {
		_, err := b.conn.CallFinal(t.Context(), "agent", protocol.AgentParams{Message: "gated", SessionKey: key, IdempotencyKey: id.UUID(), Timeout: &zero}, nil)
		done <- err
	}()
	b.one.AwaitWaiting(t, "g")
	if why := b.runTimeout(); why != "" {
		t.Errorf("a run without a limit has one: %s", why)
	}
	b.one.Open("g")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// runTimeout is why the active run has a limit; empty: it has none.
func (b *bench) runTimeout() string {
	b.t.Helper()
	var x protocol.SessionExplained
	b.call("sessions.explain", protocol.SessionKeyParams{Key: key}, &x)
	for _, l := range x.Bounds {
		if l.Name == "run_timeout" {
			return l.Why
		}
	}
	return ""
}

// Runtime 7.5: the variable is read and checked when a gateway starts.
func TestFallbackSkip_7_5_TheVariable(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), serving.Binary(t), "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir())
	cmd.Env = []string{"HOME=" + t.TempDir(), "OPENCLAW_GATEWAY_TOKEN=x", "OPENCLAW_FALLBACK_SKIP_TTL_MS=1m"}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "OPENCLAW_FALLBACK_SKIP_TTL_MS: must be a number of milliseconds") {
		t.Errorf("%v: %s", err, out)
	}
}

// Runtime 7.5, rows of cron, over the wire: a job's model with the configured fallbacks,
// with its own, and with none.
func TestCronFallbacks_7_5(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		fallbacks []string
		status    string
		two       int
	}{
		{"not said: the configured ones", nil, "ok", 1},
		{"its own", []string{"two/small"}, "ok", 1},
		{"strict", []string{}, "error", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.one.Script(mockmodel.Reply{Status: 402, Times: -1})
			every := int64(3_600_000)
			var job protocol.CronJob
			b.call("cron.add", protocol.CronAddParams{
				Name: "job", Schedule: protocol.CronSchedule{Kind: "every", EveryMs: &every},
				Payload: protocol.CronPayload{Kind: "agentTurn", Message: "do it", Model: protocol.Some("one/plain"), Fallbacks: row.fallbacks},
			}, &job)
			var ran map[string]any
			b.call("cron.run", map[string]any{"id": job.ID}, &ran)
			var snap map[string]any
			b.call("agent.wait", map[string]any{"runId": ran["runId"]}, &snap)
			if snap["status"] != row.status || len(b.two.Requests()) != row.two {
				out, _ := json.Marshal(snap)
				t.Errorf("%s, the fallback was asked %d times", out, len(b.two.Requests()))
			}
		})
	}
}
