package loop_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/diag"
	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/wiring"
)

// fallbacks is how often a steer was counted that became a run of its own: by the log,
// and by the metrics, which must say the same.
func (w *world) fallbacks(emf *bytes.Buffer) int {
	w.t.Helper()
	n, metrics := w.log.count("counter=steer_fallback"), strings.Count(emf.String(), `"SteerFallbacks":1`)
	if n != metrics {
		w.t.Errorf("the log has %d, the metrics %d: %s", n, metrics, emf)
	}
	return n
}

// measured gives processes the metrics of a function.
func measured(out *bytes.Buffer) func(*process, *wiring.Settings, *wiring.RunnerConfig) {
	m := &diag.EMF{W: out, Stack: "test"}
	return func(_ *process, s *wiring.Settings, _ *wiring.RunnerConfig) { s.Metrics = m }
}

// TestF11_ASteerAtTheEndOfItsRun comes between the last model call and the terminal
// write, or 1 ms after it. An end that is ok is refused by it, and the run takes it; every
// other one gives it back. It is in the conversation once, ends, and is counted if it was
// a run of its own: also where the end is settled by another process, and where the
// terminal is written again.
func TestF11_ASteerAtTheEndOfItsRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after bool // 1 ms after the terminal write, not before it
		model answerFunc
		fault faulty.Fault // of the terminal write
		dies  bool         // between the terminal write and its settling
		want  int
	}{
		{"before an end that is ok", false, say("done"), faulty.None, false, 0},
		{"before an error", false, fail(model.Auth), faulty.None, false, 1},
		{"before an error whose answer is lost", false, fail(model.Auth), faulty.LostAnswer, false, 1},
		{"before an error whose write is lost", false, fail(model.Auth), faulty.LostRequest, false, 1},
		{"before an error that meets a conflict", false, fail(model.Auth), faulty.Conflict, false, 1},
		{"before an error behind which the runner dies", false, fail(model.Auth), faulty.DieAfter, true, 1},
		{"before an error at which the runner dies", false, fail(model.Auth), faulty.DieBefore, true, 0}, // the next attempt takes it
		{"after an end that is ok", true, say("done"), faulty.None, false, 1},
		{"after an error", true, fail(model.Auth), faulty.None, false, 1},
		{"after an end behind which the runner dies", true, say("done"), faulty.DieAfter, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(slices.Repeat([]answerFunc{c.model}, 2)...)
			emf := &bytes.Buffer{}
			cl, other := w.connect(), w.connect()
			w.accept(cl, "r1", "hi")
			ends := 0
			steer := func() { w.write(other, "s1", "and this?", lane.Steer) }
			p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
				if !isTerminal(ops) {
					return faulty.None
				}
				ends++
				switch {
				case ends == 1 && !c.after:
					steer() // which refuses this write: the next one is of a turn that knows it
				case ends == 1 || ends == 2 && !c.after:
					return c.fault
				}
				return faulty.None
			}), measured(emf))
			late := func() error {
				w.clock.Advance(time.Millisecond)
				steer()
				return nil
			}
			if c.after && !c.dies {
				p.runner.Ends = lateEnds{p.runner.Ends, late}
			}
			err := p.deliver(w.next())
			if c.dies {
				if err == nil {
					t.Fatal("nobody died")
				}
				if c.after {
					must(t, late())
				}
				w.clock.Advance(lost)
				p = w.process(nil, measured(emf))
			}
			p.serve()
			if st := w.status("s1"); !st.Done() || st.Outcome == nil || (st.Into == "r1") != (c.want == 0) {
				t.Errorf("the message's run: %+v", st)
			}
			if got := w.users(); !slices.Equal(got, []string{"hi", "and this?"}) {
				t.Errorf("messages %q", got)
			}
			if n := w.fallbacks(emf); n != c.want {
				t.Errorf("counted %d times, want %d", n, c.want)
			}
		})
	}
}

// TestF11_AStopOfTheSessionLeavesNoFallback: it ends the run and what was steered into
// it.
func TestF11_AStopOfTheSessionLeavesNoFallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(hold(nil, "part", ""))
	emf := &bytes.Buffer{}
	cl := w.connect()
	w.accept(cl, "r1", "hi")
	p := w.process(nil, measured(emf))
	i := p.start()
	<-w.model.asked
	if !w.steer(cl, "s1", "and this?") {
		t.Fatal("not steered")
	}
	w.stopAll()
	w.until(i)
	p.serve()
	if st := w.status("s1"); st.Outcome == nil || st.Outcome.Kind != run.Aborted {
		t.Errorf("the message's run: %+v", st)
	}
	if n := w.fallbacks(emf); n != 0 {
		t.Errorf("counted %d times", n)
	}
}
