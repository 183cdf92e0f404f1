package rpc_test

import (
	"testing"

	"laneway/shared/meter"
	"laneway/shared/protocol"
)

func TestRunsCost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.fails("runs.cost", obj{"runId": "nobody"}, protocol.CodeInvalidRequest, "No run found: nobody")

	c.ok("agent", obj{"message": "hold it", "idempotencyKey": "cost-1"}, nil)
	w.model.waitFor(t, "hold it")
	var m protocol.RunCost
	c.ok("runs.cost", obj{"runId": "cost-1"}, &m)
	if m.Ended || m.Used[string(meter.TableWriteUnits)] == 0 || m.CloudUSD <= 0 {
		t.Errorf("at work: %+v", m)
	}

	w.stranger().fails("runs.cost", obj{"runId": "cost-1"}, protocol.CodeInvalidRequest, "No run found")

	w.model.release()
	c.ok("agent.wait", obj{"runId": "cost-1", "timeoutMs": 20_000}, nil)
	var end protocol.RunCost
	c.ok("runs.cost", obj{"runId": "cost-1"}, &end)
	if !end.Ended || end.USD < end.CloudUSD || end.Prices == "" || end.DurationMs <= 0 {
		t.Errorf("ended: %+v", end)
	}
}
