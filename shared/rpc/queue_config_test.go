package rpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/rpc"
	"laneway/shared/wiring"
)

// TestRuntime22_QueueSettingsOfTheGateway: what the gateway is started with stands
// between a session's settings and the defaults; what is wrong is named.
func TestRuntime22_QueueSettingsOfTheGateway(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]lane.Rules{
		"":        lane.DefaultRules,
		"collect": {Mode: lane.Collect, Debounce: 500, Cap: 20, Drop: lane.DropSummarize},
		"Follow-Up debounce:2s cap=3 drop:oldest": {Mode: lane.Followup, Debounce: 2000, Cap: 3, Drop: lane.DropOld},
	} {
		if got, err := rpc.ParseQueue(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, named := range map[string]string{
		"default": "default", "steer collect": "collect", "queue": "queue", "steer-backlog": "steer-backlog",
		"cap:0": `"0"`, "cap:65": `"65"`, "drop:all": `"all"`, "debounce:soon": `"soon"`, "mode:steer": "mode:steer",
	} {
		if _, err := rpc.ParseQueue(text); !errors.Is(err, rpc.ErrQueue) || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRuntime22_TheGatewaysSettingsShow: in the command's answer, under what the session
// says.
func TestRuntime22_TheGatewaysSettingsShow(t *testing.T) {
	t.Parallel()
	rules, err := rpc.ParseQueue("collect cap:3")
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
