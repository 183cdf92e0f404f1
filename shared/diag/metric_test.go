package diag_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"laneway/shared/diag"
	"laneway/shared/meter"
	"laneway/shared/run"
)

// A line is metrics only if each that it announces is one of its members.
func TestEMFRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		st   run.Status
		want map[string]float64
	}{
		"ended well": {
			run.Status{
				AcceptedAt: 1000, StartedAt: 1200, EndedAt: 3200,
				Outcome: &run.Outcome{Kind: run.OK, Steps: 2, Used: map[meter.Name]float64{meter.PostCalls: 7}},
			},
			map[string]float64{"RunsEnded": 1, "RunsFailed": 0, "Steps": 2, "Posts": 7, "QueueWait": 200, "RunTime": 2000},
		},
		"never began": {
			run.Status{AcceptedAt: 1000, EndedAt: 3200, Outcome: &run.Outcome{Kind: run.Failed}},
			map[string]float64{"RunsEnded": 1, "RunsFailed": 1, "Steps": 0, "Posts": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			(&diag.EMF{W: &out, Stack: "s"}).Run(c.st)
			var line map[string]any
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			for name, want := range c.want {
				if line[name] != want {
					t.Errorf("%s is %v, want %v", name, line[name], want)
				}
			}
			if len(line) != len(c.want)+2 || line["Stack"] != "s" {
				t.Errorf("%s", out.String())
			}
		})
	}
}
