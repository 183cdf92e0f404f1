package lane_test

import (
	"errors"
	"fmt"
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

func sweep(t *testing.T, w *lanetest.World) lane.Swept {
	t.Helper()
	sum, err := w.Lanes.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestA2_AnOrphanGetsAWakeUpInAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		first := w.Queue.One(t) // lost
		if got := sweep(t, w); got != (lane.Swept{Active: 1}) {
			t.Fatalf("at once: %+v", got)
		}
		w.Clock.Advance(w.Times.Orphan - time.Millisecond)
		sweep(t, w)
		w.Queue.None(t)
		w.Clock.Advance(time.Millisecond)
		if got := sweep(t, w); got != (lane.Swept{Active: 1, Orphaned: 1, Woken: 1}) {
			t.Fatalf("after %v: %+v", w.Times.Orphan, got)
		}
		s := w.Queue.One(t)
		if s.Group == first.Group || s.Group != s.Dedup || s.Ref() != w.Ref || s.Lane != "main" {
			t.Fatalf("sent %+v", s)
		}
	})
}

// TestA2_TextsThatWaitForMoreAreNoOrphans: what waits for more of its sender has a timer;
// only where that is lost the watchdog comes.
func TestA2_TextsThatWaitForMoreAreNoOrphans(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		const wait = time.Minute
		texter{w}.send("a", "c1", wait)
		w.Queue.Take()
		w.Clock.Advance(wait + w.Times.Orphan - time.Millisecond)
		if got := sweep(t, w); got != (lane.Swept{Active: 1}) {
			t.Fatalf("while it waits: %+v", got)
		}
		w.Queue.None(t)
		w.Clock.Advance(time.Millisecond)
		if got := sweep(t, w); got != (lane.Swept{Active: 1, Orphaned: 1, Woken: 1}) {
			t.Fatalf("%v behind it: %+v", w.Times.Orphan, got)
		}
	})
}

func TestA2_TheWakeUpIsRepeatedWithPausesThatGrow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Queue.Take()
		w.Clock.Advance(w.Times.Orphan)
		var at []time.Time
		groups := make(map[string]bool)
		for range 3 * 60 { // an hour, three times a minute
			sweep(t, w)
			for _, s := range w.Queue.Take() {
				at = append(at, s.At)
				groups[s.Group] = true
			}
			w.Clock.Advance(20 * time.Second)
		}
		want := []int{1, 1, 2, 4, 8, 15, 15}
		for i, minutes := range want {
			if i+1 >= len(at) {
				t.Fatalf("only %d wake-ups in an hour", len(at))
			}
			if got := at[i+1].Sub(at[i]); got != time.Duration(minutes)*time.Minute {
				t.Errorf("pause %d is %v, want %d min", i, got, minutes)
			}
		}
		if len(groups) != len(at) {
			t.Errorf("%d groups for %d wake-ups", len(groups), len(at))
		}
	})
}

// What changed since is a new matter: it does not wait for the pauses of the old one.
func TestA2_PausesBeginAnewWithEveryChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *lanetest.World){
		"a run was accepted": func(w *lanetest.World) { w.Accept("r2") },
		"the run was begun":  func(w *lanetest.World) { w.Frozen().Start(); w.Expire() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				for range 6 {
					w.Clock.Advance(20 * time.Minute)
					sweep(t, w)
				}
				change(w)
				w.Queue.Take()
				w.Clock.Advance(w.Times.Orphan)
				sweep(t, w)
				w.Queue.One(t)
			})
		})
	}
}

func TestA2_WhatIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(t *testing.T, w *lanetest.World){
		"a live claim": func(_ *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.Clock.Advance(time.Hour)
			w.Frozen().Start()
			w.Accept("r2")
			w.Clock.Advance(w.Times.Lease)
		},
		"a run that sleeps": func(t *testing.T, w *lanetest.World) {
			w.Accept("r1")
			h := w.Start()
			sleep(t, w, h, 2*time.Hour)
			w.Clock.Advance(time.Hour)
		},
		"a claim that was over for less than 20 s": func(_ *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.Frozen().Start()
			w.Clock.Advance(w.Times.Lease + w.Times.Orphan - time.Millisecond)
		},
		"a claim that was released less than 20 s ago": func(t *testing.T, w *lanetest.World) {
			w.Accept("r1")
			p := w.Frozen()
			h := p.Start()
			w.Clock.Advance(time.Minute)
			p.Clock.Advance(time.Minute)
			sleep(t, p, h, 0) // a checkpoint
			w.Clock.Advance(w.Times.Orphan - time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				setup(t, w)
				w.Queue.Take()
				if got := sweep(t, w); got.Woken != 0 || got.Orphaned != 0 || got.Active != 1 {
					t.Fatalf("swept %+v", got)
				}
				w.Queue.None(t)
			})
		})
	}
}

func TestA2_WhatIsFound(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(t *testing.T, w *lanetest.World){
		"a dead claim": func(_ *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.Frozen().Start()
			w.Clock.Advance(w.Times.Lease)
		},
		"a sleeper whose alarm was lost": func(t *testing.T, w *lanetest.World) {
			w.Accept("r1")
			h := w.Start()
			sleep(t, w, h, 2*time.Hour)
			w.Clock.Advance(2 * time.Hour)
		},
		"a sleeper that is cut off": func(t *testing.T, w *lanetest.World) {
			w.Accept("r1")
			h := w.Start()
			sleep(t, w, h, 2*time.Hour)
			stopAll(t, w)
		},
		"an ended run whose settler died": func(_ *testing.T, w *lanetest.World) { ended(w, "r1") },
		"an ended run beside a live claim": func(t *testing.T, w *lanetest.World) {
			ended(w, "r1")
			w.Accept("r2")
			w.Frozen().Start()
		},
		"cut off runs beside a live claim": func(t *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.Frozen().Start()
			w.Accept("r2")
			stopAll(t, w)
		},
		"a command that died while a run came in": func(t *testing.T, w *lanetest.World) {
			if _, err := w.Frozen().Claims.Command(t.Context(), w.Ref, 0); err != nil {
				t.Fatal(err)
			}
			w.Accept("r1")
			w.Clock.Advance(w.Times.Lease)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				setup(t, w)
				w.Queue.Take()
				w.Clock.Advance(w.Times.Orphan)
				if got := sweep(t, w); got.Woken != 1 {
					t.Fatalf("swept %+v", got)
				}
				w.Queue.One(t)
			})
		})
	}
}

func TestA2_IdleSessionsAreNotEvenLookedAt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		ended(w, "r1")
		w.Settle()
		w.Clock.Advance(time.Hour)
		s := faulty.New(w.Store, faulty.Config{})
		if got := sweep(t, w.Process(s)); got.Active != 0 {
			t.Fatalf("swept %+v", got)
		}
		if n := s.Calls(); n != session.ActiveShards {
			t.Fatalf("%d calls of the store, want one for each part of the index", n)
		}
	})
}

// A sleep may be longer than a timer runs: the alarm is armed again until it is due.
func TestR1_TheAlarmOfALongSleepIsArmedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		sleep(t, w, w.Start(), 40*time.Minute)
		w.Queue.Take()
		if err := w.Lanes.NudgeLater(t.Context(), w.Meta(), 40*time.Minute, lane.ReasonAsleep); err != nil {
			t.Fatal(err)
		}
		for _, pause := range []time.Duration{15 * time.Minute, 15 * time.Minute, 10 * time.Minute} {
			w.Clock.Advance(pause - time.Second)
			w.Queue.None(t)
			w.Clock.Advance(time.Second)
			alarm := w.Queue.One(t)
			if !alarm.Timer {
				t.Fatalf("woken too early: %+v", alarm)
			}
			if err := w.Lanes.Forward(t.Context(), alarm.Wakeup); err != nil {
				t.Fatal(err)
			}
		}
		if s := w.Queue.One(t); s.Timer {
			t.Fatalf("armed again though it is due: %+v", s)
		}
		if d := lane.Decide(w.Meta(), "main", w.Clock.Now(), w.Times); d.Do != lane.Resume {
			t.Fatalf("the wake-up means %+v", d)
		}
	})
}

// Two watchdogs at once send one wake-up.
func TestA2_TwoSweepsAtOnceSendOneWakeUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Queue.Take()
		w.Clock.Advance(time.Minute)
		done := false
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops != nil && !done {
				done = true
				sweep(t, w)
			}
			return faulty.None
		}}))
		sweep(t, p)
		w.Queue.One(t)
	})
}

// The index may be behind: what it says is read again before anything is done.
func TestA2_AStaleIndexWakesNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		s := faulty.New(w.Store, faulty.Config{IndexLag: 50})
		p := w.Process(s)
		p.Accept("r1")
		p.Queue.Take()
		s.CatchUp()
		p.End(p.Start(), run.OK)
		p.Settle()
		p.Clock.Advance(time.Hour)
		if got := sweep(t, p); got.Active != 1 || got.Orphaned != 0 {
			t.Fatalf("swept %+v", got)
		}
		w.Queue.None(t)
	})
}

// One session that cannot be helped keeps nobody from the others.
func TestA2_ASessionThatCannotBeReadKeepsNobodyFromTheOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for n := range 12 {
			other := *w
			other.Ref.Key = fmt.Sprint("agent:main:", n)
			other.Accept(fmt.Sprint("r", n))
		}
		w.Queue.Take()
		w.Clock.Advance(time.Minute)
		refused := 0
		w.Queue.Fail = func(s lanetest.Sent) error {
			if s.Key == "agent:main:3" || s.Key == "agent:main:7" {
				refused++
				return lanetest.ErrDown
			}
			return nil
		}
		sum, err := w.Lanes.Sweep(t.Context())
		if !errors.Is(err, lanetest.ErrDown) || refused != 2 {
			t.Errorf("%d refused, got %v", refused, err)
		}
		if got := w.Queue.Take(); len(got) != 10 || sum.Active != 12 {
			t.Errorf("%d of 10 were woken: %+v", len(got), sum)
		}
	})
}

// F5: the runner dies 20 s into the run and its message stays blocked. With the
// defaults the session runs again within 90 s, and no expiry of an item is involved.
func TestF5_ADeadRunnersSessionRunsAgainWithin90Seconds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		dead := w.Frozen()
		h := dead.Start()
		for range 2 { // it renewed until it died
			w.Clock.Advance(w.Times.Renew)
			dead.Clock.Advance(w.Times.Renew)
			if err := h.Commit(t.Context(), claim.Tx{}); err != nil {
				t.Fatal(err)
			}
		}
		died := w.Clock.Now()
		w.Accept("r2")
		w.Queue.Take() // behind the message that the dead runner holds
		for {
			w.Clock.Advance(20 * time.Second)
			sweep(t, w)
			if got := w.Queue.Take(); len(got) > 0 {
				if d := lane.Decide(w.Meta(), got[0].Lane, w.Clock.Now(), w.Times); d.Do != lane.Resume {
					t.Fatalf("the wake-up means %+v", d)
				}
				break
			}
			if w.Clock.Now().Sub(died) > 90*time.Second {
				t.Fatal("not woken in 90 s")
			}
		}
		if took := w.Clock.Now().Sub(died); took > 90*time.Second {
			t.Fatalf("recovered after %v", took)
		}
		it, err := w.Store.Get(t.Context(), w.Ref.MetaKey())
		if err != nil || it.Attrs.Int(table.TTLAttr) != 0 {
			t.Fatalf("the hot item expires: %v, %v", it.Attrs, err)
		}
		w.End(w.Resume(), run.OK)
	})
}

// F18, the part of the tables: a run that was declared lost has an outcome that a new
// wait is answered with; until then it is as running as any.
func TestF18_ALostRunHasNoOutcomeUntilItsEndIsWritten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Frozen().Start()
		w.Clock.Advance(time.Minute)
		if st := w.Status("r1"); st.Done() || st.ExpiresAt != 0 {
			t.Fatalf("record %+v", st)
		}
		sweep(t, w)
		h := w.Resume()
		err := h.Commit(t.Context(), lanetest.Terminal(h, w.Clock.Now(), run.Outcome{Kind: run.Failed, ErrorKind: "no_progress", Error: "lost"}))
		if err != nil {
			t.Fatal(err)
		}
		w.Settle()
		st := w.Status("r1")
		if wait := st.Snapshot(); wait.Status != "error" || wait.StopReason != "no_progress" {
			t.Fatalf("a wait gets %+v", wait)
		}
	})
}
