package main

import (
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/test/fakegateway"
)

func TestCostPrintsARowForEverythingUsed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway.On("runs.cost", func(conn *fakegateway.Conn, r protocol.Request) {
		if p := fakegateway.Params[protocol.RunsCostParams](t, r); p.RunID != "r1" {
			t.Errorf("asked for %q", p.RunID)
		}
		conn.Result(r, protocol.RunCost{
			RunID: "r1", Provider: "openai", Model: "m", Usage: &protocol.Usage{TotalTokens: 12}, USD: 0.5, Prices: "2026-11-30",
			Used: map[string]float64{"sqs.calls": 2, "dynamodb.calls": 3}, Items: map[string]float64{"sqs.calls": 0.5},
			Unpriced: []string{"tokens of openai/m"},
		})
	})
	w.runs(0, "cost", "r1")
	for _, want := range []string{"sqs.calls", "0.50000000", "tokens (openai/m)", "dynamodb.calls"} {
		if !strings.Contains(w.out.String(), want) {
			t.Errorf("stdout lacks %q:\n%s", want, w.out.String())
		}
	}
	for _, want := range []string{"has not ended", "tokens of openai/m"} {
		if !strings.Contains(w.err.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, w.err.String())
		}
	}
}
