package loop_test

import (
	"context"
	"testing"
	"time"

	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/wiring"
)

// TestRuntime51_AgentRuntime: row "Agent runtime" and how it bounds a silent model
// (5.2 rows 1 and 5 to 8), with a model that says something every so often.
func TestRuntime51_AgentRuntime(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, row := range []struct {
		name       string
		configured time.Duration // for all runs; negative: as none
		inputMs    int64         // of the call; -1: 0
		endpoint   model.Endpoint
		every      time.Duration // between two words of the model; 0: it says nothing
		kind       run.OutcomeKind
		errorKind  string
		want       time.Duration
	}{
		{"configured; progress does not reset it", 300 * s, 0, model.Cloud, 20 * s, run.Timeout, "timeout", 300 * s},
		{"configured as none", -1, 0, model.Cloud, 20 * s, run.OK, "", 320 * s},
		{"of the call, over the configured one", 300 * s, 70_000, model.Cloud, 20 * s, run.Timeout, "timeout", 70 * s},
		{"0 of the call: none", 300 * s, -1, model.Cloud, 20 * s, run.OK, "", 320 * s},
		{"0 of the call: a silent cloud model is cut all the same", 300 * s, -1, model.Cloud, 0, run.Failed, "idle_timeout", 120 * s},
		{"5.2 row 5: bounds a model that may be silent for ever otherwise", 200 * s, 0, model.Local, 0, run.Timeout, "timeout", 200 * s},
		{"5.2 row 7", -1, 0, model.SelfHosted, 0, run.Failed, "idle_timeout", 300 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one")
			m.all[0].Endpoint = row.endpoint
			m.on(t, "a/one", func(ctx context.Context, _ model.Request, yield func(model.Part, error) bool) {
				for n := 0; n < 16 || row.every == 0; n++ {
					var word <-chan time.Time
					if row.every > 0 {
						word = w.clock.After(row.every)
					}
					select {
					case <-word:
					case <-ctx.Done():
						yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "cancelled", Err: ctx.Err()})
						return
					}
					if !yield(model.Part{Text: "word "}, nil) {
						return
					}
				}
				yield(done("stop"), nil)
			})
			w.accept(w.connect(), "r1", "hi", func(st *run.Status) { st.Input.TimeoutMs = row.inputMs })
			began := w.clock.Now()
			w.until(w.process(nil, chained(m), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
				rc.Preferred = func(string) loop.Preferred { return loop.Preferred{Timeout: row.configured} }
			}).start())
			took := w.clock.Now().Sub(began)
			if st := w.status("r1"); st.Outcome.Kind != row.kind || st.Outcome.ErrorKind != row.errorKind {
				t.Errorf("%+v", st.Outcome)
			}
			if took < row.want || took > row.want+20*s {
				t.Errorf("it took %s, want %s", took, row.want)
			}
		})
	}
}
