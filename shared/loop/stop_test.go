package loop_test

import (
	"testing"
	"time"

	"laneway/shared/run"
)

// TestEndStopped: a run that is to stop and whose holder is dead is ended by whoever
// asks, without a model, and its lane goes on; a live holder's is left to it.
func TestEndStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect()
	ended := func(want bool) {
		t.Helper()
		got, err := w.gw.runner.EndStopped(t.Context(), ref)
		if err != nil || got != want {
			t.Fatalf("ended: %v, %v, want %v", got, err, want)
		}
	}
	ended(false) // there is none
	gate := make(chan struct{})
	w.model.on(hold(gate, "half", ""), say("fine"))
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	first := p.start()
	<-w.model.asked
	w.accept(c, "r2", "next")
	w.box.take()
	ended(false) // nobody wants it to stop
	p.kill()
	if !w.stop("r1") {
		t.Fatal("not stopped")
	}
	ended(false) // its holder may live
	w.clock.Advance(time.Minute)
	ended(true)
	if st := w.status("r1"); !st.Done() || st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != "rpc" {
		t.Fatalf("%+v", st.Outcome)
	}
	if m := w.meta(); m.Active != "" || len(m.Pending) != 1 || len(m.Unsettled) > 0 {
		t.Fatalf("%+v", m)
	}
	ended(false)
	close(gate)
	_ = first.wait() // whatever a dead process says
	w.gw.serve()
	if st := w.status("r2"); st.Outcome == nil || st.Outcome.Kind != run.OK {
		t.Fatalf("%+v", st.Outcome)
	}
}
