package crash

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

const (
	envRecovery = "LANEWAY_RECOVERY"
	// recoverWithin is what is promised with default settings (R3).
	recoverWithin = 90 * time.Second
)

// TestRecovery_DefaultSettings: a gateway is killed while a model streams, and started
// again at once, as a service manager does. The reply goes on by itself within 90
// seconds, LANEWAY_RECOVERY times.
func TestRecovery_DefaultSettings(t *testing.T) {
	times := number(t, envRecovery, 0)
	if times == 0 {
		t.Skip("not run: recovery with default leases, for real, needs LANEWAY_RECOVERY=3 (make recovery)")
	}
	model := mockmodel.New(t)
	o := serving.Options{
		Data: t.TempDir(), Args: []string{"--workspace", t.TempDir(), "--listen", fmt.Sprintf("127.0.0.1:%d", serving.FreePort(t))},
		Env: []string{"OPENAI_BASE_URL=" + model.URL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/" + mockmodel.Model},
	}
	g := serving.Start(t, o)
	var answers []time.Duration
	for n := range times {
		message := fmt.Sprintf("recover %d.", n)
		model.Script(
			mockmodel.Reply{Match: message, Text: []string{"lost ", "words"}, Stall: true},
			mockmodel.Reply{Match: message, Text: []string{"back ", "again"}},
		)
		p := protocol.AgentParams{Message: message, SessionKey: "agent:main:recovery", IdempotencyKey: fmt.Sprintf("recovery-%d", n)}
		heard := make(chan struct{}, 100)
		c := dialed(t, g, p.IdempotencyKey, heard)
		if err := c.Call(t.Context(), "agent", p, nil); err != nil {
			t.Fatal(err)
		}
		<-heard
		killed := time.Now()
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		c.Close()
		g = serving.Start(t, o)
		c = dialed(t, g, p.IdempotencyKey, make(chan struct{}, 100))
		var f protocol.Final
		raw, err := c.CallFinal(t.Context(), "agent", p, nil)
		answers = append(answers, time.Since(killed))
		if err != nil || json.Unmarshal(raw, &f) != nil || f.Status != protocol.StatusOK || !strings.Contains(string(raw), "back again") {
			t.Fatalf("%s, %v", raw, err)
		}
		c.Close()
	}
	t.Logf("from the kill to the answer, with default settings: %v", answers)
	if longest := slices.Max(answers); longest > recoverWithin {
		t.Errorf("it took %s", longest)
	}
}

// dialed is a connection that tells of each piece of a run's text.
func dialed(t *testing.T, g *serving.Gateway, runID string, heard chan<- struct{}) *client.Conn {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{
		URL: g.URL, Token: serving.Token, Scopes: []string{protocol.ScopeAdmin},
		OnEvent: func(e client.Event) {
			var p struct {
				RunID  string `json:"runId"`
				Stream string `json:"stream"`
			}
			if json.Unmarshal(e.Payload, &p) == nil && p.RunID == runID && p.Stream == protocol.StreamAssistant {
				heard <- struct{}{}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
