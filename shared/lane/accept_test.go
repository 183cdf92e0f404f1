package lane_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/id"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

func TestA1_OneTransactionPutsTheRunIntoRecordAndSession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		t.Helper()
		var writes [][]table.Op
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops != nil {
				writes = append(writes, c.Ops)
			}
			return faulty.None
		}}))
		acc := p.Accept("r1")
		if len(writes) != 1 {
			t.Fatalf("accepting into a new session took %d writes", len(writes))
		}
		st, m := w.Status("r1"), w.Meta()
		if st.State != run.Pending || st.Seq != 1 || st.Input.Message != "message of r1" || st.AcceptedAt != w.Clock.Now().UnixMilli() || st.ExpiresAt != 0 {
			t.Errorf("record %+v", st)
		}
		want := []session.Pending{{Seq: 1, Lane: "main", Run: "r1"}}
		if m.Seq != 1 || len(m.Pending) != 1 || m.Pending[0] != want[0] || !m.Busy || m.SessionID == "" {
			t.Errorf("session %+v", m)
		}
		if acc.Repeat || acc.Stopped || acc.Status.Disposition.Kind != "started" {
			t.Errorf("accepted as %+v", acc)
		}
		key, err := session.KeyOfID(t.Context(), w.Store, w.Ref.Tenant, m.SessionID)
		if err != nil || key != w.Ref.Key {
			t.Errorf("the session id leads to %q, %v", key, err)
		}
		page, err := w.Store.Index(t.Context(), table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: w.Ref.ActivePK()})
		if err != nil || len(page.Keys) != 1 || page.Keys[0].Key != w.Ref.MetaKey() {
			t.Errorf("active index: %+v, %v", page, err)
		}
	})
}

// A warm process accepts without reading, too.
func TestA1_TheNextRunOfAWarmProcessIsOneWrite(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		t.Helper()
		s := faulty.New(w.Store, faulty.Config{})
		p := w.Process(s)
		p.Accept("r1")
		h := p.Start()
		w.End(h, run.OK)
		w.Settle()
		before := s.Calls()
		p.Accept("r2")
		if n := s.Calls() - before; n != 1 {
			t.Fatalf("%d calls of the store", n)
		}
	})
}

func TestA1_TheWakeUpFollowsWithGroupAndDeduplicationIDOfTheRule(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		t.Helper()
		c := w.Call("r1")
		c.Run.Lane = "cron"
		c.Accepted = func(acc lane.Accepted) {
			if len(w.Queue.Waiting()) != 0 {
				t.Error("told after the wake-up, want before it")
			}
			if _, err := run.Load(t.Context(), w.Store, acc.Status.Ref); err != nil {
				t.Errorf("told before the transaction: %v", err)
			}
		}
		if _, err := w.Lanes.Accept(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		got := w.Queue.One(t)
		if got.Queue != queue.Cron || got.Ref() != w.Ref || got.Lane != "cron" {
			t.Errorf("sent %+v", got)
		}
		if got.Group != id.Hash(w.Ref.Tenant, w.Ref.Key) || got.Dedup != id.Hash(w.Ref.Tenant, "r1") {
			t.Errorf("group %s, dedup %s", got.Group, got.Dedup)
		}
	})
}

func TestA1_AFailedSendIsLoggedAndTheRunStaysAccepted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Queue.Fail = func(lanetest.Sent) error { return lanetest.ErrDown }
		told := 0
		c := w.Call("r1")
		c.Accepted = func(lane.Accepted) { told++ }
		acc, err := w.Lanes.Accept(t.Context(), c)
		if err != nil || acc.Repeat || told != 1 {
			t.Fatalf("accepted %+v, told %d times, %v", acc, told, err)
		}
		if w.Log.Count("wake-up not sent") != 1 {
			t.Error("not logged")
		}
		if len(w.Meta().Pending) != 1 {
			t.Error("the run is gone")
		}
	})
}

func TestA1_FullListIsUnavailable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for n := range session.MaxPending {
			w.Accept(fmt.Sprint("r", n))
		}
		for name, p := range map[string]*lanetest.World{"warm": w, "cold": w.Process(nil)} {
			if _, err := p.Lanes.Accept(t.Context(), p.Call("more")); !errors.Is(err, lane.ErrFull) {
				t.Errorf("%s: got %v, want ErrFull", name, err)
			}
			// Its own run is not refused to a caller who repeats it.
			if acc, err := p.Lanes.Accept(t.Context(), p.Call("r7")); err != nil || !acc.Repeat {
				t.Errorf("%s: a repeat got %+v, %v", name, acc, err)
			}
		}
		if _, err := run.Load(t.Context(), w.Store, run.RefOf(w.Ref.Tenant, "more")); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("a refused run left a record: %v", err)
		}
		// One place is free again as soon as one has begun.
		w.Start()
		w.Accept("more")
	})
}

func TestA1_QueuedRunsSayWhereTheyStand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Start()
		for name, p := range map[string]*lanetest.World{"warm": w, "cold": w.Process(nil)} {
			n := len(w.Meta().Pending)
			acc := p.Accept("queued-" + name)
			if d := acc.Status.Disposition; d.Kind != "queued" || d.Position != n+1 {
				t.Errorf("%s: %+v with %d before it", name, d, n)
			}
			if st := w.Status("queued-" + name); st.Disposition != acc.Status.Disposition {
				t.Errorf("%s: recorded %+v", name, st.Disposition)
			}
		}
	})
}

// The item of a session with 64 waiting runs of long ids stays far below what a store
// takes, because ids over 64 bytes stand there by their hash.
func TestA1_LongRunIDsStandInTheSessionByTheirHash(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for n := range session.MaxPending {
			w.Accept(fmt.Sprintf("%03d-%s", n, strings.Repeat("x", 500)))
		}
		it, err := w.Store.Get(t.Context(), w.Ref.MetaKey())
		if err != nil || it.Size() > 8<<10 {
			t.Fatalf("the hot item has %d bytes, %v", it.Size(), err)
		}
		if st := w.Status("007-" + strings.Repeat("x", 500)); len(st.RunID) != 504 {
			t.Errorf("record of %q", st.RunID)
		}
	})
}

func TestA2_TheReplyNeverPrecedesTheTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for name, fault := range map[string]faulty.Fault{"dies before": faulty.DieBefore, "no capacity": faulty.Throttle} {
			told := false
			p := w.Process(faulty.New(w.Store, faulty.Config{At: func(faulty.Call) faulty.Fault {
				w.Clock.Advance(time.Second)
				return fault
			}}))
			c := p.Call("r-" + name)
			c.Accepted = func(lane.Accepted) { told = true }
			_, err := p.Lanes.Accept(t.Context(), c)
			if err == nil || told {
				t.Errorf("%s: told %v, error %v", name, told, err)
			}
			if fault == faulty.Throttle && !errors.Is(err, lane.ErrUnavailable) {
				t.Errorf("%s: got %v, want ErrUnavailable", name, err)
			}
		}
	})
}

func TestA3_TheSameKeyIsAnsweredFromItsRecord(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		first := w.Accept("r1")
		w.Queue.Take()
		w.Clock.Advance(10 * time.Minute) // its deduplication id is forgotten
		told := 0
		c := w.Call("r1")
		c.Accepted = func(lane.Accepted) { told++ }
		acc, err := w.Lanes.Accept(t.Context(), c)
		if err != nil || !acc.Repeat || told != 0 || acc.Status.AcceptedAt != first.Status.AcceptedAt || acc.Status.Seq != 1 {
			t.Fatalf("repeat: %+v, told %d, %v", acc, told, err)
		}
		w.Queue.One(t) // a repeat sends the wake-up again

		h := w.Start()
		w.End(h, run.OK)
		w.Settle()
		w.Clock.Advance(24 * time.Hour)
		acc, err = w.Lanes.Accept(t.Context(), w.Call("r1"))
		if err != nil || !acc.Repeat || !acc.Status.Done() {
			t.Fatalf("repeat after a day: %+v, %v", acc, err)
		}
		w.Queue.None(t)
		if m := w.Meta(); m.Seq != 1 || m.Busy {
			t.Errorf("a repeat changed the session: %+v", m)
		}
	})
}

func TestA3_AnotherRequestUnderTheKeyIsAConflict(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		for name, accept := range map[string]func(lane.Call) error{
			"accept": func(c lane.Call) error { _, err := w.Lanes.Accept(t.Context(), c); return err },
			"steer":  func(c lane.Call) error { _, _, err := w.Lanes.Steer(t.Context(), c); return err },
		} {
			if name == "steer" {
				w.Start() // there is something to steer into
			}
			c := w.Call("r1")
			c.Run.RequestHash = "another"
			var conflict *lane.ConflictError
			if err := accept(c); !errors.As(err, &conflict) || conflict.Method != "agent" {
				t.Errorf("%s: got %v, want a ConflictError of agent", name, err)
			}
		}
	})
}

// A key is looked up under its tenant.
func TestA3_TheKeyOfAnotherTenantIsAnotherRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		other := *w
		other.Ref.Tenant = "other"
		if acc := other.Accept("r1"); acc.Repeat {
			t.Fatal("answered from another tenant's record")
		}
	})
}

func TestF29_TenParallelAcceptsWithOneKeyAreOneRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		processes := []*lanetest.World{w, w.Process(nil)}
		var wg sync.WaitGroup
		var mu sync.Mutex
		fresh, at := 0, make(map[int64]bool)
		for n := range 10 {
			wg.Go(func() {
				acc, err := processes[n%2].Lanes.Accept(t.Context(), w.Call("r1"))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if !acc.Repeat {
					fresh++
				}
				at[acc.Status.AcceptedAt] = true
			})
		}
		wg.Wait()
		if m := w.Meta(); fresh != 1 || len(at) != 1 || m.Seq != 1 || len(m.Pending) != 1 {
			t.Fatalf("%d accepted it, at %v: %+v", fresh, at, m)
		}
		if n := len(w.Queue.All()); n != 1 {
			t.Fatalf("%d wake-ups passed the deduplication", n)
		}
	})
}

func TestC5_ALostAnswerOfAnAcceptIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{
		"answer lost": faulty.LostAnswer, "request lost": faulty.LostRequest, "conflict": faulty.Conflict, "throttled": faulty.Throttle,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				n := 0
				s := faulty.New(w.Store, faulty.Config{At: func(faulty.Call) faulty.Fault {
					if n++; n == 1 {
						return fault
					}
					return faulty.None
				}})
				p := w.Process(s)
				told := 0
				c := p.Call("r1")
				c.Accepted = func(lane.Accepted) { told++ }
				acc, err := p.Lanes.Accept(t.Context(), c)
				if err != nil || acc.Repeat || told != 1 {
					t.Fatalf("%+v, told %d times, %v", acc, told, err)
				}
				if m := w.Meta(); m.Seq != 1 || len(m.Pending) != 1 {
					t.Fatalf("accepted %d times: %+v", m.Seq, m)
				}
				w.Queue.One(t)
			})
		})
	}
}

func TestC6_AGatewayTriesForFiveSecondsThenIsUnavailable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		began := w.Clock.Now()
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(faulty.Call) faulty.Fault {
			w.Clock.Advance(100 * time.Millisecond)
			return faulty.Conflict
		}}))
		_, err := p.Lanes.Accept(t.Context(), p.Call("r1"))
		if !errors.Is(err, lane.ErrUnavailable) || errors.Is(err, table.ErrCondition) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
		if took := w.Clock.Now().Sub(began); took < 4500*time.Millisecond || took > 5500*time.Millisecond {
			t.Fatalf("tried for %v", took)
		}
	})
}

// A4, the part of the tables: claiming a run leaves its message in the record, where
// history shows it as pending; only the first commit takes it into the transcript.
func TestA4_TheMessageStaysInItsRecordUntilTheFirstCommit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Frozen().Start()
		w.Expire()
		w.Resume() // the first attempt died without a commit
		if st := w.Status("r1"); st.Input.Message != "message of r1" || st.UserSeq != 0 || st.Done() {
			t.Fatalf("record %+v", st)
		}
		if m := w.Meta(); m.Head != 0 || m.Attempt != 2 {
			t.Fatalf("session %+v", m)
		}
	})
}

// F1: a run holds the claim for ten minutes. Messages, steers and readers come and go
// meanwhile as if it did not.
func TestF1_AHeldClaimStarvesNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		for range 10 * 60 {
			w.Clock.Waiting(t, 1) // its poll
			w.Clock.Advance(time.Second)
		}
		// Nothing of what follows may wait: nobody moves the clock.
		if !steer(t, w, "s1") {
			t.Error("a steer was refused")
		}
		w.Accept("r2")
		if m := w.Meta(); m.Active != "r1" || m.MailN != 1 || len(m.Pending) != 1 {
			t.Errorf("session %+v", m)
		}
		deliver(t, w, h, "s1", 2)
		w.End(h, run.OK)
		if m := w.Meta(); m.Token != 1 {
			t.Errorf("the claim was taken over: token %d", m.Token)
		}
	})
}
