package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/queueing"
	"laneway/shared/wiring"
)

// TestRuntime22_TheGatewaysSettingsShow: in the command's answer, under what the session
// says.
func TestRuntime22_TheGatewaysSettingsShow(t *testing.T) {
	t.Parallel()
	rules, err := queueing.Parse("collect cap:3")
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t, settings(func(s *wiring.Settings) { s.QueueRules = rules }))
	c := w.user()
	for i, row := range []struct{ send, want string }{
		{"/queue", "mode=collect, debounce=500ms, cap=3"},
		{"/queue cap:7", "mode=collect, debounce=500ms, cap=7"},
		{"/queue default", "mode=collect, debounce=500ms, cap=3"},
	} {
		if got := c.command(row.send, fmt.Sprint("k", i)); !strings.Contains(got, row.want) {
			t.Errorf("%s: %s", row.send, got)
		}
	}
	c.ok("sessions.patch", obj{"key": "s", "queueDrop": "old"}, nil)
	var d protocol.SessionDescribed
	c.ok("sessions.describe", obj{"key": "s"}, &d)
	if r := d.Session; r.EffectiveQueueMode != "collect" || *r.QueueCap != 3 || *r.QueueDebounceMs != 500 || r.QueueDrop != "old" {
		t.Errorf("%+v", r)
	}
}
