package run_test

import (
	"reflect"
	"testing"

	"laneway/shared/model"
	"laneway/shared/run"
)

func TestCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		st   run.Status
		want run.Counters
	}{
		"not begun": {run.Status{}, run.Counters{}},
		"at work": {
			run.Status{Checkpoint: []byte(`{"step":3,"tools":2,"usage":{"input":7},"asked":true}`)},
			run.Counters{Step: 3, ToolCalls: 2, Usage: model.Usage{Input: 7}},
		},
		"damaged": {run.Status{Checkpoint: []byte(`{"step":"x"`)}, run.Counters{}},
		"ended": {
			run.Status{Outcome: &run.Outcome{Steps: 4, ToolCalls: 1, Usage: &model.Usage{Output: 5}}},
			run.Counters{Step: 4, ToolCalls: 1, Usage: model.Usage{Output: 5}},
		},
	} {
		if got := c.st.Counted(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
