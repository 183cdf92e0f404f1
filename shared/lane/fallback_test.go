package lane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

// counted is lane.Metrics that remembers.
type counted struct {
	mu sync.Mutex
	n  map[string]float64
}

func (c *counted) Count(name string, n float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]float64{}
	}
	c.n[name] += n
}

func (c *counted) of(name string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// inMode is a call whose message queues in a mode.
func inMode(w *lanetest.World, runID, mode string) lane.Call {
	c := w.Call(runID)
	c.Run.Method = "chat.send"
	c.Rules = func(context.Context) (lane.Rules, error) {
		r := lane.DefaultRules
		r.Mode, r.Debounce = mode, 0
		return r, nil
	}
	return c
}

// runOut starts, ends and settles whatever waits.
func runOut(t *testing.T, w *lanetest.World) (ran []string) {
	t.Helper()
	for !w.Idle() {
		m := w.Meta()
		if _, waits := m.Lowest(); waits && len(m.Unsettled) == 0 && len(m.Cut()) == 0 {
			h := w.Start()
			ran = append(ran, h.Meta().Active)
			w.Clock.Advance(time.Millisecond)
			w.End(h, run.OK)
		}
		w.Settle()
	}
	return ran
}

// fallbacks counts what the log and the metric say, which must be the same.
func fallbacks(t *testing.T, w *lanetest.World, m *counted) int {
	t.Helper()
	n := w.Log.Count("counter=" + lane.CounterFallback)
	if got := m.of(lane.MetricFallback); got != float64(n) {
		t.Errorf("the log has %d, the metric %v", n, got)
	}
	return n
}

// TestF11_ASteerForARunThatJustEnded: it comes between the last model call and the
// terminal write, or 1 ms after that. It becomes a run of its own, which ends, and is
// counted once; what is no such steer is not counted.
func TestF11_ASteerForARunThatJustEnded(t *testing.T) {
	t.Parallel()
	late := func(mode string) func(*testing.T, *lanetest.World, *claim.Holder) {
		return func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			w.End(h, run.OK)
			w.Clock.Advance(time.Millisecond)
			accept(t, w, inMode(w, "s1", mode))
		}
	}
	for name, c := range map[string]struct {
		steer func(t *testing.T, w *lanetest.World, h *claim.Holder)
		want  int
		ran   bool // a run of its own
	}{
		"the run is marked to end": {func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			stopRun(t, w, "r1")
			if d := accept(t, w, inMode(w, "s1", lane.Steer)); d.Reason != lane.RunEnding {
				t.Errorf("%+v", d)
			}
			w.End(h, run.Aborted)
		}, 1, true},
		"it was on its way when the run ended": {func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			// The gateway reads the session, decides to steer, and writes 1 ms after the terminal.
			writes := 0
			p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
				if c.Ops != nil {
					if writes++; writes == 2 { // the first is the guess of who has not read
						w.End(h, run.OK)
						w.Clock.Advance(time.Millisecond)
					}
				}
				return faulty.None
			}}))
			if d := accept(t, p, inMode(w, "s1", lane.Steer)); d.Kind != lane.IsStarted {
				t.Errorf("%+v", d)
			}
		}, 1, true},
		"1 ms after the terminal": {late(lane.Steer), 1, true},
		"1 ms after it, from a process that knows nothing": {func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			w.End(h, run.OK)
			w.Clock.Advance(time.Millisecond)
			accept(t, w.Process(nil), inMode(w, "s1", lane.Steer))
		}, 1, true},
		"1 ms after it, to be collected": {late(lane.Collect), 0, true},
		"1 ms after it, an interrupt":    {late(lane.Interrupt), 0, true},
		"1 ms after it, of its own right": {func(_ *testing.T, w *lanetest.World, h *claim.Holder) {
			w.End(h, run.OK)
			w.Clock.Advance(time.Millisecond)
			w.Accept("s1")
		}, 0, true},
		"when the end is told": {func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			w.End(h, run.OK)
			w.Settle()
			accept(t, w, inMode(w, "s1", lane.Steer))
		}, 0, true},
		"others wait": {func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			w.Accept("r2")
			if d := accept(t, w, inMode(w, "s1", lane.Steer)); d.Reason != "backlog" {
				t.Errorf("%+v", d)
			}
			w.End(h, run.OK)
		}, 0, true},
		"the run takes it": {func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			if d := accept(t, w, inMode(w, "s1", lane.Steer)); d.Kind != lane.IsSteered {
				t.Errorf("%+v", d)
			}
			deliver(t, w, h, "s1", 2)
			w.End(h, run.OK)
		}, 0, false},
		"its run is stopped before it begins": {func(t *testing.T, w *lanetest.World, h *claim.Holder) {
			w.End(h, run.OK)
			accept(t, w, inMode(w, "s1", lane.Steer))
			stopRun(t, w, "s1")
		}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				m := &counted{}
				w.Lanes.Metrics = m
				accept(t, w, inMode(w, "r1", lane.Steer))
				h := w.Start()
				w.Queue.Take()
				c.steer(t, w, h)
				ran := runOut(t, w)
				if slices.Contains(ran, "s1") != c.ran {
					t.Errorf("ran %v", ran)
				}
				if st := w.Status("s1"); c.ran && st.Outcome == nil {
					t.Errorf("the run id has no end: %+v", st)
				}
				if n := fallbacks(t, w, m); n != c.want {
					t.Errorf("counted %d times, want %d", n, c.want)
				}
				if got := w.Meta(); len(got.Fell) != 0 {
					t.Errorf("notes stay: %v", got.Fell)
				}
				w.Settle()
				if n := fallbacks(t, w, m); n != c.want {
					t.Errorf("counted %d times in the end", n)
				}
			})
		})
	}
}

func accept(t *testing.T, w *lanetest.World, c lane.Call) run.Disposition {
	t.Helper()
	acc, err := w.Lanes.Accept(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return acc.Status.Disposition
}

// TestF11_AFallbackIsCountedOnceWhateverIsRetried: the transaction that makes the steer a
// run, or the one that counts it, meets every fault; and the call is made again.
func TestF11_AFallbackIsCountedOnceWhateverIsRetried(t *testing.T) {
	t.Parallel()
	faults := map[string]faulty.Fault{
		"conflict": faulty.Conflict, "throttle": faulty.Throttle, "request lost": faulty.LostRequest,
		"answer lost": faulty.LostAnswer, "repeated": faulty.Repeated,
	}
	for name, fault := range faults {
		for _, at := range []string{"accept", "settle"} {
			t.Run(fmt.Sprint(at, ", ", name), func(t *testing.T) {
				t.Parallel()
				each(t, func(t *testing.T, w *lanetest.World) {
					accept(t, w, inMode(w, "r1", lane.Steer))
					w.End(w.Start(), run.OK)
					w.Clock.Advance(time.Millisecond)
					met := false
					p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
						if !met && notes(c.Ops, at == "accept") {
							met = true
							return fault
						}
						return faulty.None
					}}))
					m := &counted{}
					p.Lanes.Metrics = m
					for range 2 {
						accept(t, p, inMode(w, "s1", lane.Steer))
					}
					p.Settle()
					runOut(t, p)
					accept(t, p, inMode(w, "s1", lane.Steer))
					if n := fallbacks(t, w, m); n != 1 || !met {
						t.Errorf("counted %d times, fault %v", n, met)
					}
				})
			})
		}
	}
}

// notes says whether ops note a steer that falls back, or else take such a note away.
func notes(ops []table.Op, add bool) bool {
	return slices.ContainsFunc(ops, func(o table.Op) bool {
		list := o.TakeFrom
		if add {
			list = o.AddTo
		}
		return slices.ContainsFunc(list, func(m table.MemberOp) bool { return m.Attr == session.AttrFell })
	})
}

// TestF11_AFallbackIsCountedByWhoeverSettles: the process that accepted it dies with its
// answer, the one that settles dies before it has; another one does the work.
func TestF11_AFallbackIsCountedByWhoeverSettles(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]struct {
		add   bool
		fault faulty.Fault
	}{
		"the gateway dies behind its write": {true, faulty.DieAfter},
		"the settler dies before its write": {false, faulty.DieBefore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				m := &counted{}
				w.Lanes.Metrics = m
				accept(t, w, inMode(w, "r1", lane.Steer))
				w.End(w.Start(), run.OK)
				p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
					if notes(c.Ops, dies.add) {
						return dies.fault
					}
					return faulty.None
				}}))
				p.Lanes.Metrics = m
				_, err := p.Lanes.Accept(t.Context(), inMode(w, "s1", lane.Steer))
				if err == nil {
					err = p.Lanes.Settle(t.Context(), w.Meta(), w.Ends, "dies")
				}
				if !errors.Is(err, table.ErrClosed) {
					t.Fatalf("nobody died: %v", err)
				}
				accept(t, w, inMode(w, "s1", lane.Steer)) // the client asks again
				if ran := runOut(t, w); !slices.Equal(ran, []string{"s1"}) {
					t.Errorf("ran %v", ran)
				}
				if n := fallbacks(t, w, m); n != 1 {
					t.Errorf("counted %d times", n)
				}
			})
		})
	}
}
