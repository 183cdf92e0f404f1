package loop_test

import (
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/run"
)

// TestF25_AStalledModelIsNoSuccess: a scheduled run whose model stalls beyond the limit
// has failed, with that reason, and what it had said is not its result.
func TestF25_AStalledModelIsNoSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one")
	m.all[0].Endpoint = model.Cloud
	m.on(t, "a/one", hold(nil, "half an answer", ""))
	c := w.connect()
	w.accept(c, "r1", "go", func(st *run.Status) { st.Lane, st.Input.TimeoutMs = "cron", 600_000 })
	began := w.clock.Now()
	i := w.process(nil, chained(m)).start()
	<-m.fakes["a/one"].asked
	w.until(i)
	st := w.status("r1")
	if st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != "idle_timeout" || strings.Contains(st.Outcome.Text, "half") || st.Snapshot().Status == "ok" {
		t.Errorf("%+v", st.Outcome)
	}
	if took := w.clock.Now().Sub(began); took < 60*time.Second || took > 70*time.Second {
		t.Errorf("it was noticed after %s", took) // runtime 5.2 row 3
	}
	for _, p := range st.Outcome.Payloads {
		if !p.IsError {
			t.Errorf("delivered: %+v", p)
		}
	}
}

// A scheduled run in such a case with somebody else to ask has that one's answer.
func TestF25_AStalledModelIsReplacedByAFallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.all[0].Endpoint = model.Cloud
	m.on(t, "a/one", hold(nil, "half an answer", ""))
	m.on(t, "b/two", say("whole"))
	c := w.connect()
	w.accept(c, "r1", "go", func(st *run.Status) { st.Lane, st.Input.TimeoutMs = "cron", 600_000 })
	i := w.process(nil, chained(m)).start()
	<-m.fakes["a/one"].asked
	w.until(i)
	if st := w.status("r1"); st.Outcome.Kind != run.OK || !strings.HasSuffix(st.Outcome.Text, "whole") || strings.Contains(st.Outcome.Text, "half") {
		t.Errorf("%+v", st.Outcome)
	}
	shown := ""
	for _, f := range c.all(event("agent", "assistant", "")) {
		shown = str(f, "payload.data.text")
	}
	if shown != "whole" {
		t.Errorf("the screen says %q", shown)
	}
}

// TestF14_AFallbackBringsNoEarlierAnswerBack: a run that was stopped between two models
// ends aborted, and nothing that was said before is said again.
func TestF14_AFallbackBringsNoEarlierAnswerBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", say("the earlier answer"), fail(model.Billing))
	gate := make(chan struct{})
	m.on(t, "b/two", hold(gate, "", "never"))
	c := w.connect()
	w.accept(c, "r1", "first")
	w.process(nil, chained(m)).serve()
	w.accept(c, "r2", "second")
	p := w.process(nil, chained(m))
	i := p.start()
	<-m.fakes["b/two"].asked
	w.stop("r2")
	w.until(i)
	st := w.status("r2")
	if st.Outcome.Kind != run.Aborted || st.Outcome.Text != "" {
		t.Errorf("%+v", st.Outcome)
	}
	for _, f := range c.all(event("agent", "assistant", "")) {
		if str(f, "payload.runId") == "r2" && str(f, "payload.data.text") != "" {
			t.Errorf("said: %v", f)
		}
	}
}

// Runtime 7.4: a credential that is left alone is probed shortly before its time is
// over, by one run in 30 seconds; the others go on to the next model.
func TestFailover_7_4_Probes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", fail(model.Overloaded))
	m.on(t, "b/two", say("hello"))
	c := w.connect()
	for i, want := range []string{
		"a/one, b/two",
		"a/one, b/two, a/one, b/two",        // the probe
		"a/one, b/two, a/one, b/two, b/two", // too soon for another one
	} {
		id := "r" + string(rune('0'+i))
		w.accept(c, id, "hi")
		w.process(nil, chained(m)).serve()
		if m.asked() != want {
			t.Fatalf("run %d: asked %s, want %s", i, m.asked(), want)
		}
	}
}
