package claim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

// behind is a process behind a store that puts faults on chosen calls.
func behind(w *lanetest.World) (*lanetest.World, *faultOnce, *faulty.Store) {
	f := &faultOnce{}
	s := faulty.New(w.Store, faulty.Config{At: f.at})
	return w.Process(s), f, s
}

// undecided are the faults after which a caller does not know or must try again.
var undecided = map[string]faulty.Fault{
	"answer lost": faulty.LostAnswer, "request lost": faulty.LostRequest, "conflict": faulty.Conflict,
	"throttled": faulty.Throttle, "repeated below": faulty.Repeated,
}

func TestC5_ALostAnswerOfAClaimIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range undecided {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				p, f, s := behind(w)
				f.next = nextWrite(fault)
				h := p.Start()
				if m := w.Meta(); m.Token != 1 || m.Owner != h.Owner() || h.Token() != 1 || len(m.Pending) != 0 {
					t.Fatalf("claimed by %s with token %d: %+v", h.Owner(), h.Token(), m)
				}
				if s.Injected()[fault] != 1 {
					t.Fatal("the fault did not happen")
				}
				must(t, commit(h, w))
			})
		})
	}
}

func TestC5_ALostAnswerOfACommitIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range undecided {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				p, f, _ := behind(w)
				h := p.Start()
				f.next = nextWrite(fault)
				must(t, h.Commit(t.Context(), claim.Tx{Head: 1, Ops: []table.Op{row(w.Ref, "000000000001")}, Add: []table.AddOp{{Path: table.P("n"), N: 1}}}))
				it := stable(w)
				if it.Attrs.Int("n") != 1 || h.Meta().Head != 1 {
					t.Fatalf("written %d times, head %d", it.Attrs.Int("n"), h.Meta().Head)
				}
				must(t, h.Commit(t.Context(), claim.Tx{Head: 2, Ops: []table.Op{row(w.Ref, "000000000002")}}))
			})
		})
	}
}

func TestC5_ALostAnswerOfATerminalIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range undecided {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				p, f, _ := behind(w)
				h := p.Start()
				f.next = nextWrite(fault)
				p.End(h, run.OK)
				if st := w.Status("r1"); !st.Done() || st.Outcome.Kind != run.OK {
					t.Fatalf("record %+v", st)
				}
				if m := w.Meta(); m.Owner != "" || m.Active != "" || len(m.Unsettled) != 1 {
					t.Fatalf("after the terminal: %+v", m)
				}
				wantErr(t, commit(h, w), claim.ErrReleased)
			})
		})
	}
}

func TestC5_ALostAnswerOfAReleaseIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range undecided {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				p, f, _ := behind(w)
				h := p.Start()
				f.next = nextWrite(fault)
				must(t, h.Release(t.Context()))
				if m := w.Meta(); m.Owner != "" || m.Active != "r1" {
					t.Fatalf("after the release: %+v", m)
				}
			})
		})
	}
}

// giveUp puts a fault on the next write, and gives a context that ends while it is
// repeated: its caller never hears what became of it.
func (f *faultOnce) giveUp(t *testing.T, fault faulty.Fault) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	f.next = func(faulty.Call) faulty.Fault {
		f.next = func(faulty.Call) faulty.Fault {
			cancel()
			return faulty.LostRequest
		}
		return fault
	}
	return ctx
}

// A write whose answers stay lost until its caller gives up may have been applied.
// The holder's next write is not refused because of it.
func TestC5_AWriteThatStayedUnknownDoesNotCostTheClaim(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{"applied": faulty.LostAnswer, "not applied": faulty.LostRequest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				p, f, _ := behind(w)
				h := p.Start()
				ctx := f.giveUp(t, fault)
				err := h.Commit(ctx, claim.Tx{Head: 1, Ops: []table.Op{row(w.Ref, "000000000001")}})
				wantErr(t, err, table.ErrUnknown)
				must(t, commit(h, w))
				must(t, h.Release(t.Context()))
				if m := w.Meta(); m.Owner != "" {
					t.Fatalf("still held: %+v", m)
				}
			})
		})
	}
}

func TestC5_AReleaseThatStayedUnknownIsNoLoss(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p, f, _ := behind(w)
		h := p.Start()
		ctx := f.giveUp(t, faulty.LostAnswer)
		tx := lanetest.Terminal(h, w.Clock.Now(), run.Outcome{Kind: run.OK})
		wantErr(t, h.Commit(ctx, tx), table.ErrUnknown)
		wantErr(t, h.Release(t.Context()), claim.ErrReleased)
		if n := w.Log.Count("stale_writer"); n != 0 {
			t.Fatal("a writer was counted as superseded that nobody superseded")
		}
	})
}

// A conflict is not a failed condition: the holder keeps its claim and the caller
// hears what it was.
func TestC6_AConflictIsNeverAFailedCondition(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{"conflict": faulty.Conflict, "throttled": faulty.Throttle} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				p, f, s := behind(w)
				h := p.Start()
				tries := 0
				var always func(faulty.Call) faulty.Fault
				always = func(faulty.Call) faulty.Fault {
					if tries++; tries < 5 {
						f.next = always
					}
					return fault
				}
				f.next = always
				err := commit(h, p, row(w.Ref, "000000000001"))
				if err != nil {
					t.Fatalf("five conflicts ended a commit: %v", err)
				}
				if s.Injected()[fault] != 5 {
					t.Fatalf("%d conflicts were met, want 5", s.Injected()[fault])
				}
				if m := w.Meta(); m.Owner != h.Owner() {
					t.Fatal("the claim is gone")
				}
			})
		})
	}
}

func TestC6_ARetryEndsWithItsWindowAndSaysWhy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		tries := 0
		s := faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			tries++
			w.Clock.Advance(200 * time.Millisecond)
			return faulty.Conflict
		}})
		_, err := claim.Write(t.Context(), s, w.Clock, 5*time.Second, row(w.Ref, "000000000001"))
		wantErr(t, err, table.ErrConflict)
		if errors.Is(err, table.ErrCondition) || tries < 20 || tries > 30 {
			t.Fatalf("%d tries in 5 s, then %v", tries, err)
		}
	})
}

func TestC6_PausesAreJitteredBetween10And200Milliseconds(t *testing.T) {
	t.Parallel()
	seen := make(map[time.Duration]bool)
	for n := range 40 {
		for range 50 {
			d := claim.Pause(n)
			if d <= 0 || d > 200*time.Millisecond {
				t.Fatalf("pause %d is %v", n, d)
			}
			seen[d] = true
		}
	}
	if len(seen) < 100 {
		t.Fatalf("only %d different pauses: no jitter", len(seen))
	}
}

func TestC5_ARefusalAfterAnUnknownTryIsAmbiguous(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		n := 0
		s := faulty.New(w.Store, faulty.Config{At: func(faulty.Call) faulty.Fault {
			if n++; n == 1 {
				return faulty.LostAnswer
			}
			return faulty.None
		}})
		_, err := claim.Write(t.Context(), s, w.Clock, time.Second, row(w.Ref, "000000000001"))
		ce, ok := table.Failed(err)
		if !ok || !ce.Ambiguous {
			t.Fatalf("got %v, want an ambiguous refusal", err)
		}
		_, err = claim.Write(t.Context(), w.Store, w.Clock, time.Second, row(w.Ref, "000000000001"))
		if ce, ok = table.Failed(err); !ok || ce.Ambiguous {
			t.Fatalf("got %v, want a plain refusal", err)
		}
	})
}
