package lane_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

// ended accepts and ends runs: they are unsettled then.
func ended(w *lanetest.World, runs ...string) {
	w.T.Helper()
	for _, id := range runs {
		w.Accept(id)
		w.End(w.Start(), run.OK)
	}
	w.Queue.Take()
}

func TestL5_SettlingTakesAwayExactlyItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		ended(w, "r1", "r2")
		if err := w.Lanes.Settled(t.Context(), w.Ref, []string{"r1", "someone else's"}, "s"); err != nil {
			t.Fatal(err)
		}
		if m := w.Meta(); !slices.Equal(m.Unsettled, []string{"r2"}) || !m.Busy {
			t.Fatalf("session %+v", m)
		}
		w.Queue.One(t) // for the other one
		if err := w.Lanes.Settled(t.Context(), w.Ref, []string{"r2"}, "s"); err != nil {
			t.Fatal(err)
		}
		if !w.Idle() {
			t.Fatal("not idle")
		}
		w.Queue.None(t)
	})
}

func TestL5_SettlingWakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lane  string
		setup func(t *testing.T, w *lanetest.World)
		want  int
	}{
		{"nothing is left", "", func(*testing.T, *lanetest.World) {}, 0},
		{"a run waits", "main", func(_ *testing.T, w *lanetest.World) { w.Accept("r2") }, 1},
		{"a run waits in another lane", "cron", func(t *testing.T, w *lanetest.World) {
			c := w.Call("r2")
			c.Run.Lane = "cron"
			if _, err := w.Lanes.Accept(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"a run is active under a live claim", "", func(_ *testing.T, w *lanetest.World) { w.Accept("r2"); w.Frozen().Start() }, 0},
		{"and one waits behind it", "", func(_ *testing.T, w *lanetest.World) { w.Accept("r2"); w.Frozen().Start(); w.Accept("r3") }, 0},
		{"a run is active under a dead claim", "main", func(_ *testing.T, w *lanetest.World) {
			w.Accept("r2")
			w.Frozen().Start()
			w.Expire()
		}, 1},
		{"a run sleeps", "", func(t *testing.T, w *lanetest.World) { w.Accept("r2"); sleep(t, w, w.Start(), time.Hour) }, 0},
		{"a run is between two attempts", "main", func(t *testing.T, w *lanetest.World) { w.Accept("r2"); sleep(t, w, w.Start(), 0) }, 1},
		{"cut off runs wait beside a live claim", "main", func(t *testing.T, w *lanetest.World) {
			w.Accept("r2")
			w.Frozen().Start()
			w.Accept("r3")
			stopAll(t, w)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				ended(w, "r1")
				c.setup(t, w)
				w.Queue.Take()
				if err := w.Lanes.Settled(t.Context(), w.Ref, []string{"r1"}, "s"); err != nil {
					t.Fatal(err)
				}
				got := w.Queue.Take()
				if len(got) != c.want || c.want > 0 && got[0].Lane != c.lane {
					t.Fatalf("sent %+v, want %d to lane %q", got, c.want, c.lane)
				}
				if m := w.Meta(); slices.Contains(m.Unsettled, "r1") || m.Busy == w.Idle() {
					t.Fatalf("session %+v", m)
				}
			})
		})
	}
}

// Other ended runs beside a live claim are woken for, too: their settler may be dead.
func TestL5_OtherEndedRunsAreWokenForBesideALiveClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		ended(w, "r1", "r2")
		w.Accept("r3")
		w.Frozen().Start()
		w.Queue.Take()
		if err := w.Lanes.Settled(t.Context(), w.Ref, []string{"r1"}, "s"); err != nil {
			t.Fatal(err)
		}
		w.Queue.One(t)
	})
}

func TestL5_WakeUpsHaveGroupsOfTheirOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		seen := make(map[string]bool)
		for n := range 4 {
			ended(w, fmt.Sprint("a", n))
			w.Accept(fmt.Sprint("b", n))
			w.Queue.Take()
			if err := w.Lanes.Settled(t.Context(), w.Ref, []string{fmt.Sprint("a", n)}, "sender"); err != nil {
				t.Fatal(err)
			}
			s := w.Queue.One(t)
			if s.Group == w.Ref.Hash() || s.Group != s.Dedup || seen[s.Group] {
				t.Fatalf("group %s, dedup %s", s.Group, s.Dedup)
			}
			seen[s.Group] = true
			w.End(w.Start(), run.OK)
			w.Settle()
		}
	})
}

// The order of L5: told, looked, woken, and only then removed. A crash between any
// two of them loses nothing: the next settler does it again.
func TestL5_ACrashBetweenAnyTwoStepsLosesNothing(t *testing.T) {
	t.Parallel()
	for dies := range 12 {
		t.Run(fmt.Sprint("at call ", dies), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				ended(w, "r1")
				w.Accept("r2")
				stopRun(t, w, "r2") // a second one, ended without having begun
				w.Accept("r3")
				w.Queue.Take()
				for _, fault := range []faulty.Fault{faulty.DieBefore, faulty.DieAfter} {
					p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
						if c.N == dies {
							return fault
						}
						return faulty.None
					}}))
					m := w.Meta()
					err := p.Lanes.Settle(t.Context(), m, w.Ends, "s/"+w.NewID())
					if err != nil && !errors.Is(err, table.ErrClosed) {
						t.Fatal(err)
					}
					if after := w.Meta(); len(after.Unsettled) == 0 && !slices.Contains(w.Ends.Told(), "r2") {
						t.Fatal("removed before it was told")
					}
				}
				w.Settle()
				if m := w.Meta(); len(m.Unsettled) != 0 || !m.Busy || len(m.Pending) != 1 {
					t.Fatalf("session %+v", m)
				}
				for _, id := range []string{"r1", "r2"} {
					if !slices.Contains(w.Ends.Told(), id) {
						t.Errorf("%s was never told", id)
					}
				}
				if len(w.Queue.Take()) == 0 {
					t.Error("nobody was woken for the run that waits")
				}
				w.End(w.Start(), run.OK)
				w.Settle()
				if !w.Idle() {
					t.Fatal("not idle")
				}
			})
		})
	}
}

// Two settlers, each with a part of the ended runs, at once: whoever is last takes the
// key out of the index, however their steps are mixed.
func TestL5_OfTwoSettlersAtOnceTheLastOneTakesTheKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for n := range 25 {
			a, b := fmt.Sprint("a", n), fmt.Sprint("b", n)
			ended(w, a, b)
			var wg sync.WaitGroup
			for _, id := range []string{a, b, a} {
				wg.Go(func() {
					if err := w.Lanes.Settled(t.Context(), w.Ref, []string{id}, "s/"+w.NewID()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if !w.Idle() {
				t.Fatalf("round %d: not idle: %+v", n, w.Meta())
			}
		}
	})
}

func TestL5_TheKeyStaysForWhatIsAcceptedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, w *lanetest.World){
		"a run":             func(_ *testing.T, w *lanetest.World) { w.Accept("r2") },
		"a run that began":  func(_ *testing.T, w *lanetest.World) { w.Accept("r2"); w.Start() },
		"a run that ended":  func(_ *testing.T, w *lanetest.World) { ended(w, "r2") },
		"a run and a steer": func(t *testing.T, w *lanetest.World) { w.Accept("r2"); w.Start(); steer(t, w, "s") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				ended(w, "r1")
				done := false
				p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
					if c.Ops != nil && !done {
						done = true
						between(t, w)
					}
					return faulty.None
				}}))
				if err := p.Lanes.Settled(t.Context(), w.Ref, []string{"r1"}, "s"); err != nil {
					t.Fatal(err)
				}
				if w.Idle() || !done {
					t.Fatalf("the key is gone: %+v", w.Meta())
				}
			})
		})
	}
}

// A run that another answerer holds stays unsettled and is looked at again later: a
// wake-up at once would find it as it is, send the next one, and so on.
func TestL5_AHeldRunIsLookedAtAgainLaterNotAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		ended(w, "r1", "r2")
		w.Accept("r3")
		w.Queue.Take()
		held := true
		w.Ends.Do = func(st run.Status) (bool, error) { return held && st.RunID == "r1", nil }
		w.Settle()
		if m := w.Meta(); !slices.Equal(m.Unsettled, []string{"r1"}) || !m.Busy {
			t.Fatalf("session %+v", m)
		}
		w.Queue.None(t)
		waits := w.Queue.Waiting()
		if len(waits) != 1 || !waits[0].Timer || waits[0].At.Sub(w.Clock.Now()) != w.Times.Answer {
			t.Fatalf("armed %+v", waits)
		}
		w.Clock.Advance(w.Times.Answer)
		w.Queue.Take()
		held = false
		w.Settle()
		if m := w.Meta(); len(m.Unsettled) != 0 {
			t.Fatalf("session %+v", m)
		}
		w.Queue.One(t) // for r3
	})
}

// An end that cannot be told fails the message, so that it comes again; the others
// are settled, and no further wake-up is sent for what comes again anyway.
func TestL5_AnEndThatCannotBeToldKeepsNobodyElse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		ended(w, "r1", "r2")
		broken := errors.New("broken")
		w.Ends.Do = func(st run.Status) (bool, error) {
			if st.RunID == "r1" {
				return false, broken
			}
			return false, nil
		}
		err := w.Lanes.Settle(t.Context(), w.Meta(), w.Ends, "s")
		if !errors.Is(err, broken) {
			t.Fatalf("got %v", err)
		}
		if m := w.Meta(); !slices.Equal(m.Unsettled, []string{"r1"}) || !slices.Equal(w.Ends.Told(), []string{"r2"}) {
			t.Fatalf("session %+v, told %v", m, w.Ends.Told())
		}
		w.Queue.None(t)
	})
}

func TestL5_ARecordThatHasExpiredIsSettled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		ended(w, "r1")
		if _, err := w.Store.Write(t.Context(), table.Op{Kind: table.Delete, Key: run.RefOf(w.Ref.Tenant, "r1").StatusKey()}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if !w.Idle() {
			t.Fatal("not idle")
		}
	})
}

func TestC5_ALostAnswerOfARemovalIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{
		"answer lost": faulty.LostAnswer, "request lost": faulty.LostRequest, "conflict": faulty.Conflict, "repeated below": faulty.Repeated,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				ended(w, "r1")
				n := 0
				p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
					if c.Ops == nil {
						return faulty.None
					}
					if n++; n == 1 {
						return fault
					}
					return faulty.None
				}}))
				if err := p.Lanes.Settled(t.Context(), w.Ref, []string{"r1"}, "s"); err != nil {
					t.Fatal(err)
				}
				if !w.Idle() {
					t.Fatal("not idle")
				}
			})
		})
	}
}

// A burst of wake-ups for one session ends: none of them makes more than one new one,
// and at idle none makes any.
func TestL5_ABurstOfWakeUpsEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		for range 30 {
			m := w.Meta()
			if err := w.Lanes.Nudge(t.Context(), m, "burst", "burst/"+w.NewID()); err != nil {
				t.Fatal(err)
			}
		}
		handled := 0
		for sent := w.Queue.Take(); len(sent) > 0; sent = append(sent[1:], w.Queue.Take()...) {
			if handled++; handled > 100 {
				t.Fatal("wake-ups for ever")
			}
			m := w.Meta()
			switch d := lane.Decide(m, sent[0].Lane, w.Clock.Now(), w.Times); d.Do {
			case lane.Start:
				h, err := w.Claims.Start(t.Context(), m, d.Run)
				if err != nil {
					t.Fatal(err)
				}
				w.End(h, run.OK)
			case lane.Settle:
				w.Settle()
			case lane.Leave:
			default:
				t.Fatalf("decided %+v", d)
			}
		}
		if !w.Idle() {
			t.Fatal("not idle")
		}
	})
}
