package loop_test

import (
	"context"
	"testing"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
)

// chooses fails, after somebody has chosen another model for the session with /model.
func chooses(w *world, provider, id string) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		_, err := session.UpdateEntry(w.t.Context(), w.store, ref, func(e *session.Entry) error {
			e.ModelProvider, e.ModelOverride, e.ModelSource = provider, id, "user"
			return nil
		})
		if err != nil {
			w.t.Error(err)
		}
		yield(model.Part{}, &model.Error{Class: model.Billing, Message: "no"})
	}
}

// TestFailover_7_5_LiveSwitch: what is chosen while a run is at work holds from its next
// failure on: one that comes later in the chain jumps ahead, for one beside the chain the
// run goes on with the session's new choice.
func TestFailover_7_5_LiveSwitch(t *testing.T) {
	t.Parallel()
	cron := func(st *run.Status) { st.Lane, st.Method = "cron", "cron" }
	nobody := func(*run.Status) {}
	for _, row := range []struct {
		name   string
		change func(*run.Status)
		picks  []string // who is chosen while the models answer, one after the other
		want   string
		kind   run.OutcomeKind
	}{
		{"a later configured target jumps ahead", nobody, []string{"three"}, "a/one, c/three", run.OK},
		{"outside the chain", nobody, []string{"beside1"}, "a/one, x/beside1", run.OK},
		{"three times", nobody, []string{"beside1", "beside2", "three"}, "a/one, x/beside1, x/beside2, c/three", run.OK},
		{"cron: twice", cron, []string{"beside1", "three"}, "a/one, x/beside1, c/three", run.OK},
		{"cron: no third time", cron, []string{"beside1", "beside2", "three"}, "a/one, x/beside1, x/beside2", run.Failed},
		{"not where the run names its model", func(st *run.Status) { st.Input.Model = "one" }, []string{"three"}, "a/one, b/two", run.OK},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one", "b/two", "c/three")
			beside := newModels(t, "x/beside1", "x/beside2")
			m.beside = beside.all
			for i := range m.beside {
				m.beside[i].Provider = m.fake(t, m.beside[i].Ref())
			}
			provider := map[string]string{"one": "a", "two": "b", "three": "c", "beside1": "x", "beside2": "x"}
			at := "one"
			for _, pick := range row.picks {
				m.on(t, provider[at]+"/"+at, chooses(w, provider[pick], pick))
				at = pick
			}
			m.on(t, "b/two", say("two"))
			if len(row.picks) > 0 && row.kind == run.OK {
				m.on(t, provider[at]+"/"+at, say("answer of "+at))
			}
			w.accept(w.connect(), "r1", "hi", row.change)
			w.process(nil, chained(m)).serve()
			if st := w.status("r1"); m.asked() != row.want || st.Outcome.Kind != row.kind {
				t.Errorf("asked %s, %+v", m.asked(), st.Outcome)
			}
		})
	}
}
