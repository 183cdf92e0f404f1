package lane_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/table/faulty"
)

// frame is a call in a frame of connection c1 that came at a time in µs.
func frame(w *lanetest.World, runID string, at int64) lane.Call {
	c := w.Call(runID)
	c.ConnectionID, c.FrameAt = "c1", at
	return c
}

// base is the clock of the frames.
func base(w *lanetest.World) int64 { return w.Clock.Now().UnixMicro() }

func stopFrame(w *lanetest.World, runID string, at int64) lane.Stop {
	return lane.Stop{Ref: w.Ref, RunID: runID, Reason: "rpc", ConnectionID: "c1", FrameAt: at}
}

func TestK1_AStopOvertakesAnEarlierFrame(t *testing.T) {
	t.Parallel()
	for name, stopped := range map[string]string{"of the session": "", "of the run": "r1"} {
		for where, used := range map[string]bool{"a used session": true, "a new session": false} {
			t.Run(name+", in "+where, func(t *testing.T) {
				t.Parallel()
				each(t, func(t *testing.T, w *lanetest.World) {
					at := base(w)
					if used {
						w.Accept("r0")
						w.End(w.Start(), run.OK)
						w.Settle()
						w.Queue.Take()
					}
					stop := stopFrame(w, stopped, at+2)
					var err error
					if stopped == "" {
						_, err = w.Lanes.StopAll(t.Context(), stop)
					} else {
						_, err = w.Lanes.StopRun(t.Context(), stop)
					}
					if err != nil {
						t.Fatal(err)
					}
					for name, p := range map[string]*lanetest.World{"warm": w, "cold": w.Process(nil)} {
						acc, err := p.Lanes.Accept(t.Context(), frame(w, "r1", at+1))
						if err != nil || !acc.Stopped && !acc.Repeat {
							t.Fatalf("%s: %+v, %v", name, acc, err)
						}
					}
					wantAborted(t, w, "r1", "rpc")
					w.Queue.None(t)
					if m := w.Meta(); m.Busy || len(m.Pending) != 0 {
						t.Fatalf("session %+v", m)
					}
					// The next frame of that connection is a message like any other.
					acc, err := w.Lanes.Accept(t.Context(), frame(w, "r2", at+3))
					if err != nil || acc.Stopped {
						t.Fatalf("a later frame: %+v, %v", acc, err)
					}
					if m := w.Meta(); m.SessionID == "" || len(m.Pending) != 1 {
						t.Fatalf("session %+v", m)
					}
				})
			})
		}
	}
}

func TestK1_AStopOfOneRunSparesTheOthersOfItsConnection(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		at := base(w)
		if ok, err := w.Lanes.StopRun(t.Context(), stopFrame(w, "r1", at+9)); ok || err != nil {
			t.Fatal(ok, err)
		}
		for _, id := range []string{"r0", "r1", "r2"} {
			acc, err := w.Lanes.Accept(t.Context(), frame(w, id, at+1))
			if err != nil || acc.Stopped != (id == "r1") {
				t.Errorf("%s: %+v, %v", id, acc, err)
			}
		}
	})
}

func TestK1_AStopCountsForItsOwnConnectionOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		at := base(w)
		if _, err := w.Lanes.StopAll(t.Context(), stopFrame(w, "", at+9)); err != nil {
			t.Fatal(err)
		}
		c := frame(w, "r1", at+1)
		c.ConnectionID = "c2"
		if acc, err := w.Lanes.Accept(t.Context(), c); err != nil || acc.Stopped {
			t.Fatalf("%+v, %v", acc, err)
		}
	})
}

// The mark is a condition of the accepting transaction, not a reading before it.
func TestK1_AStopBetweenReadingAndWritingIsSeen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r0")
		w.Queue.Take()
		at := base(w)
		done := false
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			// The second transaction is made of what was found by the first.
			if c.N == 1 && !done {
				done = true
				if _, err := w.Lanes.StopAll(t.Context(), stopFrame(w, "", at+2)); err != nil {
					t.Error(err)
				}
			}
			return faulty.None
		}}))
		acc, err := p.Lanes.Accept(t.Context(), frame(w, "r1", at+1))
		if err != nil || !acc.Stopped || !done {
			t.Fatalf("%+v, %v", acc, err)
		}
	})
}

func TestK1_ASteerIsOvertakenToo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		at := base(w)
		done := false
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops != nil && !done {
				done = true
				if _, err := w.Lanes.StopRun(t.Context(), stopFrame(w, "s1", at+2)); err != nil {
					t.Error(err)
				}
			}
			return faulty.None
		}}))
		_, steered, err := p.Lanes.Steer(t.Context(), frame(w, "s1", at+1))
		if steered || err != nil || !done {
			t.Fatal(steered, err)
		}
		acc, err := p.Lanes.Accept(t.Context(), frame(w, "s1", at+1))
		if err != nil || !acc.Stopped {
			t.Fatalf("%+v, %v", acc, err)
		}
		if m := w.Meta(); m.Marked() {
			t.Error("the run that it would have gone into is marked")
		}
		w.End(h, run.OK)
	})
}

// A stop covers everything that was accepted up to it: what comes in between its
// reading and its mark as well.
func TestK1_AStopOverlooksNothingThatIsAcceptedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]string{"of the session": "", "of the run": "r1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r0")
				w.End(w.Start(), run.OK)
				w.Settle()
				at := base(w)
				done := false
				p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
					if c.Ops != nil && !done {
						done = true
						if _, err := w.Lanes.Accept(t.Context(), frame(w, "r1", at+1)); err != nil {
							t.Error(err)
						}
					}
					return faulty.None
				}}))
				q := stopFrame(w, stop, at+2)
				if stop == "" {
					hit, err := p.Lanes.StopAll(t.Context(), q)
					if err != nil || len(hit) != 1 {
						t.Fatal(hit, err)
					}
				} else if ok, err := p.Lanes.StopRun(t.Context(), q); !ok || err != nil {
					t.Fatal(ok, err)
				}
				w.Settle()
				wantAborted(t, w, "r1", "rpc")
			})
		})
	}
}

// Marks are forgotten when no frame can be on its way any more, and there are never
// many of them: the hot item is written often.
func TestK1_MarksAreForgottenAndFew(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for n := range 200 {
			at := base(w) + int64(n)
			if _, err := w.Lanes.StopRun(t.Context(), stopFrame(w, fmt.Sprint("never-", n), at)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(w.Meta().Stops); n > 40 || n < 8 {
			t.Fatalf("%d marks", n)
		}
		w.Clock.Advance(2 * time.Minute)
		for n := range 10 {
			w.Accept(fmt.Sprint("r", n))
			w.End(w.Start(), run.OK)
			w.Settle()
		}
		if n := len(w.Meta().Stops); n != 0 {
			t.Fatalf("%d marks are left after two minutes", n)
		}
	})
}

// Settling forgets old marks. One that is renewed in that moment stays.
func TestK1_AMarkThatIsRenewedWhileItIsForgottenStays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		if _, err := w.Lanes.StopAll(t.Context(), stopFrame(w, "", base(w))); err != nil {
			t.Fatal(err)
		}
		w.Clock.Advance(2 * time.Minute)
		w.Accept("r1")
		w.End(w.Start(), run.OK)
		at := base(w)
		done := false
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops != nil && !done {
				done = true
				if _, err := w.Lanes.StopAll(t.Context(), stopFrame(w, "", at+2)); err != nil {
					t.Error(err)
				}
			}
			return faulty.None
		}}))
		p.Settle()
		acc, err := w.Lanes.Accept(t.Context(), frame(w, "r2", at+1))
		if err != nil || !acc.Stopped || !done {
			t.Fatalf("%+v, %v", acc, err)
		}
	})
}

func TestK1_ARepeatOfAStoppedRunIsAnsweredAsStopped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		at := base(w)
		if _, err := w.Lanes.StopAll(t.Context(), stopFrame(w, "", at+2)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Lanes.Accept(t.Context(), frame(w, "r1", at+1)); err != nil {
			t.Fatal(err)
		}
		acc, err := w.Lanes.Accept(t.Context(), frame(w, "r1", at+5)) // from a new frame
		if err != nil || !acc.Repeat || acc.Status.Outcome.Kind != run.Aborted {
			t.Fatalf("%+v, %v", acc, err)
		}
		c := frame(w, "r1", at+1)
		c.Run.RequestHash = "another"
		var conflict *lane.ConflictError
		if _, err := w.Lanes.Accept(t.Context(), c); !errors.As(err, &conflict) {
			t.Fatalf("got %v", err)
		}
	})
}

// The record of a stopped run is written and the answer is lost: the write that comes
// again finds its own, and the caller is told the end, which nobody else would tell.
func TestK1_ALostAnswerToTheRecordOfAStoppedRunIsNoRepeat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		if _, err := w.Lanes.StopAll(t.Context(), stopFrame(w, "", base(w)+2)); err != nil {
			t.Fatal(err)
		}
		lost := false
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if len(c.Ops) == 1 && c.Ops[0].Key == run.RefOf(w.Ref.Tenant, "r1").StatusKey() && !lost {
				lost = true
				return faulty.LostAnswer
			}
			return faulty.None
		}}))
		acc, err := p.Lanes.Accept(t.Context(), frame(w, "r1", base(w)+1))
		if err != nil || !lost || !acc.Stopped || acc.Repeat || acc.Status.Outcome == nil {
			t.Fatalf("%+v, %v, lost %v", acc, err, lost)
		}
		w.Queue.None(t)
	})
}
