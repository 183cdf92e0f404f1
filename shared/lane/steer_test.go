package lane_test

import (
	"errors"
	"fmt"
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

func steer(t *testing.T, w *lanetest.World, runID string) bool {
	t.Helper()
	_, steered, err := w.Lanes.Steer(t.Context(), w.Call(runID))
	if err != nil {
		t.Fatal(err)
	}
	return steered
}

func mailbox(t *testing.T, w *lanetest.World) []lane.Mail {
	t.Helper()
	mail, err := lane.Mailbox(t.Context(), w.Store, w.Ref)
	if err != nil {
		t.Fatal(err)
	}
	return mail
}

func TestL3_ASteerIsOneTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		w.Queue.Take()
		writes := 0
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops != nil {
				writes++
			}
			return faulty.None
		}}))
		told := 0
		c := p.Call("s1")
		c.Accepted = func(lane.Accepted) { told++ }
		acc, steered, err := p.Lanes.Steer(t.Context(), c)
		if err != nil || !steered || acc.Repeat || told != 1 || writes != 1 {
			t.Fatalf("steered %v, told %d, %d writes, %+v, %v", steered, told, writes, acc, err)
		}
		st, m := w.Status("s1"), w.Meta()
		if st.State != run.Steered || st.Into != "r1" || st.Seq != 2 || st.Disposition.Kind != "steered" || st.Disposition.RunID != "r1" {
			t.Errorf("record %+v", st)
		}
		if m.Seq != 2 || m.MailSeq != 2 || m.MailN != 1 || len(m.Pending) != 0 {
			t.Errorf("session %+v", m)
		}
		if mail := mailbox(t, w); len(mail) != 1 || mail[0] != (lane.Mail{Seq: 2, Run: "s1"}) {
			t.Errorf("mailbox %+v", mail)
		}
		w.Queue.None(t) // the holder looks by itself
		if acc, steered, err = w.Lanes.Steer(t.Context(), w.Call("s1")); !acc.Repeat || !steered || err != nil {
			t.Errorf("repeat: %+v, %v, %v", acc, steered, err)
		}
		w.End(h, run.OK)
	})
}

func TestL3_ASteerIsRefusedWhereNobodyWouldTakeIt(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(t *testing.T, w *lanetest.World){
		"a session that was never used": func(*testing.T, *lanetest.World) {},
		"no run is active": func(_ *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.End(w.Start(), run.OK)
		},
		"the run is marked": func(t *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.Start()
			stopRun(t, w, "r1")
		},
		"the run is cut off": func(t *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.Start()
			stopAll(t, w)
		},
		"others wait": func(_ *testing.T, w *lanetest.World) {
			w.Accept("r1")
			w.Accept("r2")
			w.Start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				setup(t, w)
				before := w.Meta()
				if steer(t, w, "s1") {
					t.Fatal("steered")
				}
				if _, err := run.Load(t.Context(), w.Store, run.RefOf(w.Ref.Tenant, "s1")); !errors.Is(err, run.ErrUnknown) {
					t.Errorf("a refused steer left a record: %v", err)
				}
				if after := w.Meta(); after.Seq != before.Seq || after.MailN != 0 {
					t.Errorf("session %+v", after)
				}
				if acc := w.Accept("s1"); acc.Repeat { // as a run then
					t.Error("not accepted")
				}
			})
		})
	}
}

func TestL3_SteersAtOnceEachGetAPlace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				if _, steered, err := w.Lanes.Steer(t.Context(), w.Call(fmt.Sprint("s", n))); !steered || err != nil {
					t.Errorf("steer %d: %v, %v", n, steered, err)
				}
			})
		}
		wg.Wait()
		if mail, m := mailbox(t, w), w.Meta(); len(mail) != 8 || m.MailN != 8 || m.Seq != 9 {
			t.Fatalf("mailbox %+v, session %+v", mail, m)
		}
		w.End(h, run.Failed)
	})
}

// What is refused is refused by the transaction: the run ends, or is stopped, between
// the steer's reading and its writing.
func TestL3_ASteerIsRefusedByItsTransaction(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, w *lanetest.World, h *claim.Holder){
		"the run ends":   func(_ *testing.T, w *lanetest.World, h *claim.Holder) { w.End(h, run.OK) },
		"it is marked":   func(t *testing.T, w *lanetest.World, _ *claim.Holder) { stopRun(t, w, "r1") },
		"it is cut off":  func(t *testing.T, w *lanetest.World, _ *claim.Holder) { stopAll(t, w) },
		"a run comes in": func(_ *testing.T, w *lanetest.World, _ *claim.Holder) { w.Accept("r2") },
		"the next one runs": func(_ *testing.T, w *lanetest.World, h *claim.Holder) {
			w.Accept("r2")
			w.End(h, run.OK)
			w.Start()
			stopAll(w.T.(*testing.T), w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				h := w.Start()
				done := false
				p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
					if c.Ops != nil && !done {
						done = true
						between(t, w, h)
					}
					return faulty.None
				}}))
				if steer(t, p, "s1") || !done {
					t.Fatal("steered")
				}
				if m := w.Meta(); m.MailN != 0 || len(mailbox(t, w)) != 0 {
					t.Fatalf("session %+v", m)
				}
			})
		})
	}
}

func TestC5_ALostAnswerOfASteerIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{
		"answer lost": faulty.LostAnswer, "request lost": faulty.LostRequest, "conflict": faulty.Conflict,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				h := w.Start()
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
				told := 0
				c := p.Call("s1")
				c.Accepted = func(lane.Accepted) { told++ }
				acc, steered, err := p.Lanes.Steer(t.Context(), c)
				if err != nil || !steered || acc.Repeat || told != 1 {
					t.Fatalf("steered %v, told %d, %+v, %v", steered, told, acc, err)
				}
				if m := w.Meta(); m.MailN != 1 || m.Seq != 2 {
					t.Fatalf("session %+v", m)
				}
				w.End(h, run.Failed)
			})
		})
	}
}

func TestC7_AnUndeliveredSteerIsWithdrawn(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{"answered": faulty.None, "answer lost": faulty.LostAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				h := w.Start()
				steer(t, w, "s1")
				steer(t, w, "s2")
				w.Queue.Take()
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
				if !stopRun(t, p, "s1") {
					t.Fatal("not stopped")
				}
				w.Queue.One(t)
				wantAborted(t, w, "s1", "rpc")
				m := w.Meta()
				if m.MailN != 1 || len(mailbox(t, w)) != 1 || len(m.Unsettled) != 1 || m.Marked() {
					t.Fatalf("session %+v", m)
				}
				w.Settle()
				if w.Idle() {
					t.Fatal("idle with an active run")
				}
				_ = h
			})
		})
	}
}

func TestC7_ADeliveredSteerIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		steer(t, w, "s1")
		deliver(t, w, h, "s1", 2)
		if stopRun(t, w, "s1") {
			t.Fatal("stopped: it is part of another run's turn")
		}
		if m := w.Meta(); m.Marked() || len(m.Unsettled) != 0 {
			t.Fatalf("session %+v", m)
		}
		w.End(h, run.OK)
	})
}

// deliver commits what takes a message out of the mailbox.
func deliver(t *testing.T, w *lanetest.World, h *claim.Holder, runID string, seq int64) {
	t.Helper()
	err := h.Commit(t.Context(), claim.Tx{
		Add: []table.AddOp{{Path: table.P(session.AttrMailN), N: -1}},
		Ops: []table.Op{
			{Kind: table.Delete, Key: w.Ref.MailKey(seq), If: table.Exists()},
			{
				Kind: table.Update, Key: run.RefOf(w.Ref.Tenant, runID).StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Steered)),
				Set: []table.SetOp{{Path: table.P(run.AttrState), Value: string(run.Delivered)}},
			},
		},
	})
	if err != nil {
		t.Error(err)
	}
}

// A delivery and a withdrawal of one message: one of them has it.
func TestC7_OnlyOneOfDeliveryAndWithdrawalHasAMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		steer(t, w, "s1")
		done := false
		p := w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if c.Ops != nil && !done {
				done = true
				deliver(t, w, h, "s1", 2)
			}
			return faulty.None
		}}))
		if stopRun(t, p, "s1") || !done {
			t.Fatal("withdrawn behind its delivery")
		}
		if m := w.Meta(); m.MailN != 0 || w.Status("s1").State != run.Delivered {
			t.Fatalf("session %+v", m)
		}
		w.End(h, run.OK)
	})
}

func TestL3_TheMailboxIsInAcceptOrderOverPages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Start()
		for n := range lane.MaxMail {
			if !steer(t, w, fmt.Sprint("s", n)) {
				t.Fatal("refused")
			}
		}
		if steer(t, w, "one too many") {
			t.Fatal("the mailbox has no bound")
		}
		p := w.Process(faulty.New(w.Store, faulty.Config{PageItems: 4}))
		mail := mailbox(t, p)
		if len(mail) != lane.MaxMail {
			t.Fatalf("%d messages", len(mail))
		}
		for n, m := range mail {
			if m.Seq != int64(n+2) || m.Run != fmt.Sprint("s", n) {
				t.Fatalf("place %d has %+v", n, m)
			}
		}
	})
}

// Moved back at their own sequences (the loop does it with its terminal), steered
// messages keep their place before what came later.
func TestL3_AMovedBackSteerKeepsItsPlace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		steer(t, w, "s1")
		w.Accept("r2")
		tx := lanetest.Terminal(h, w.Clock.Now(), run.Outcome{Kind: run.Failed})
		tx.Set = append(tx.Set, table.SetOp{
			Path: table.P(session.AttrPending, session.PendingMember(2)), Value: session.PendingValue("main", "s1"),
		})
		tx.Add = []table.AddOp{{Path: table.P(session.AttrPendingN), N: 1}, {Path: table.P(session.AttrMailN), N: -1}}
		tx.Ops = append(tx.Ops,
			table.Op{Kind: table.Delete, Key: w.Ref.MailKey(2), If: table.Exists()},
			table.Op{
				Kind: table.Update, Key: run.RefOf(w.Ref.Tenant, "s1").StatusKey(), If: table.Equal(table.P(run.AttrState), string(run.Steered)),
				Set: []table.SetOp{{Path: table.P(run.AttrState), Value: string(run.Pending)}},
			})
		if err := h.Commit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		for _, want := range []string{"s1", "r2"} {
			h := w.Start()
			if got := h.Meta().Active; got != want {
				t.Fatalf("started %s, want %s", got, want)
			}
			w.End(h, run.OK)
			w.Settle()
		}
		if !w.Idle() {
			t.Fatal("not idle")
		}
	})
}

func TestO1_RunsStartInAcceptOrderWhateverOrderTheirWakeUpsComeIn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		for n := range 8 {
			c := w.Call(fmt.Sprint("r", n))
			c.Run.Lane = []string{"main", "cron"}[n%2]
			if _, err := w.Lanes.Accept(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		var order []string
		sent := w.Queue.Take()
		for range 200 {
			if len(sent) == 0 {
				break
			}
			last := sent[len(sent)-1] // the latest first
			sent = sent[:len(sent)-1]
			m := w.Meta()
			switch d := lane.Decide(m, last.Lane, w.Clock.Now(), w.Times); d.Do {
			case lane.Start:
				h, err := w.Claims.Start(t.Context(), m, d.Run)
				if err != nil {
					t.Fatal(err)
				}
				order = append(order, d.Run.Run)
				w.End(h, run.OK)
				w.Settle()
			case lane.Forward:
				if err := w.Lanes.Nudge(t.Context(), m, "lane", "lane/"+w.NewID()); err != nil {
					t.Fatal(err)
				}
			case lane.Leave:
			default:
				t.Fatalf("decided %+v", d)
			}
			sent = append(sent, w.Queue.Take()...)
		}
		if want := "[r0 r1 r2 r3 r4 r5 r6 r7]"; fmt.Sprint(order) != want {
			t.Fatalf("started %v", order)
		}
		if !w.Idle() {
			t.Fatal("not idle")
		}
		for _, s := range w.Queue.All() {
			if s.Lane != string(s.Queue) {
				t.Errorf("lane %s got a wake-up of lane %s", s.Queue, s.Lane)
			}
		}
	})
}

// Marked and asleep are what steering asks for; a sleeping run can be steered.
func TestL3_ASleepingRunIsSteered(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		sleep(t, w, h, time.Hour)
		if !steer(t, w, "s1") {
			t.Fatal("refused")
		}
	})
}
