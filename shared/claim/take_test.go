package claim_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
)

func TestC1_OfManyClaimersOneWins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		m := w.Meta()
		p, _ := m.Lowest()
		const n = 8
		var wg sync.WaitGroup
		won := make(chan *claim.Holder, n)
		for range n {
			wg.Go(func() {
				h, err := w.Claims.Start(t.Context(), m, p)
				switch {
				case err == nil:
					won <- h
				case !errors.Is(err, claim.ErrTaken):
					t.Errorf("loser got %v, want ErrTaken", err)
				}
			})
		}
		wg.Wait()
		close(won)
		if len(won) != 1 {
			t.Fatalf("%d claimers won", len(won))
		}
		h := <-won
		defer h.Close()
		if got := w.Meta(); got.Token != 1 || got.Owner != h.Owner() || got.Active != "r1" || got.Attempt != 1 || len(got.Pending) != 0 {
			t.Fatalf("after the claim: %+v", got)
		}
	})
}

func TestC1_TheTokenGrowsByOneWithEachTaking(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Frozen().Start()
		for want := int64(2); want <= 4; want++ {
			w.Expire()
			h = w.Frozen().Resume()
			if m := w.Meta(); h.Token() != want || m.Token != want || m.Attempt != want {
				t.Fatalf("token %d, in the item %d, attempt %d; want %d", h.Token(), m.Token, m.Attempt, want)
			}
		}
		w.End(h, run.OK)
		c, err := w.Claims.Command(t.Context(), w.Ref, 0)
		must(t, err)
		defer c.Close()
		if c.Token() != 5 {
			t.Fatalf("a command's token is %d", c.Token())
		}
	})
}

func TestC1_ALiveClaimIsNotTaken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Frozen().Start()
		m := w.Meta()
		_, err := w.Claims.Resume(t.Context(), m)
		wantErr(t, err, claim.ErrTaken)
		w.Clock.Advance(w.Times.Lease + w.Times.Slack) // over, but not by more than the slack
		_, err = w.Claims.Resume(t.Context(), m)
		var taken *claim.TakenError
		if !errors.As(err, &taken) || taken.Meta.Owner != m.Owner {
			t.Fatalf("got %v, want a TakenError with the item that was there", err)
		}
		if !taken.Meta.Owned(w.Clock.Now(), w.Times.Slack) {
			t.Fatal("refused, but shown as free: its caller would try for ever")
		}
		w.Clock.Advance(time.Millisecond)
		h, err := w.Claims.Resume(t.Context(), m)
		must(t, err)
		h.Close()
	})
}

// What Owned says and what the condition of a taking says is the same at every
// instant, below the millisecond too.
func TestC1_WhoLooksFreeCanBeTaken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Frozen().Start()
		w.Clock.Advance(w.Times.Lease + w.Times.Slack - time.Millisecond)
		for range 8 {
			w.Clock.Advance(300 * time.Microsecond)
			m := w.Meta()
			free := !m.Owned(w.Clock.Now(), w.Times.Slack)
			h, err := w.Claims.Resume(t.Context(), m)
			if free != (err == nil) {
				t.Fatalf("looked free: %v, taking it: %v", free, err)
			}
			if err == nil {
				h.Close()
				return
			}
		}
		t.Fatal("never free")
	})
}

func TestC1_AStartNeedsTheRunInPending(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		m := w.Meta()
		p, _ := m.Lowest()
		for name, other := range map[string]session.Pending{
			"another run":      {Seq: p.Seq, Lane: p.Lane, Run: "r2"},
			"another sequence": {Seq: p.Seq + 1, Lane: p.Lane, Run: p.Run},
		} {
			if _, err := w.Claims.Start(t.Context(), m, other); !errors.Is(err, claim.ErrTaken) {
				t.Errorf("%s: got %v, want ErrTaken", name, err)
			}
		}
		ok, err := w.Lanes.StopRun(t.Context(), lane.Stop{Ref: w.Ref, RunID: "r1", Reason: "rpc"})
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		_, err = w.Claims.Start(t.Context(), m, p)
		wantErr(t, err, claim.ErrTaken)
		if got := w.Meta(); got.Token != 0 || got.Active != "" {
			t.Fatalf("a refused start changed the session: %+v", got)
		}
	})
}

func TestC1_AStartNeedsNoActiveRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Accept("r2")
		w.Frozen().Start()
		w.Expire()
		m := w.Meta()
		p, _ := m.Lowest()
		_, err := w.Claims.Start(t.Context(), m, p)
		wantErr(t, err, claim.ErrTaken)
	})
}

func TestC1_AStartNeedsItsSequenceAboveTheCutoff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		m := w.Meta()
		p, _ := m.Lowest()
		if _, err := w.Lanes.StopAll(t.Context(), lane.Stop{Ref: w.Ref, Reason: "rpc"}); err != nil {
			t.Fatal(err)
		}
		_, err := w.Claims.Start(t.Context(), m, p)
		wantErr(t, err, claim.ErrTaken)
	})
}

func TestC1_AResumeNeedsTheActiveRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Accept("r2")
		h := w.Start()
		old := w.Meta()
		w.End(h, run.OK)
		w.Settle()
		_, err := w.Claims.Resume(t.Context(), old)
		wantErr(t, err, claim.ErrTaken)
		if got := w.Meta(); got.Active != "" || got.Token != 1 {
			t.Fatalf("a refused resume changed the session: %+v", got)
		}
	})
}

func TestC1_NestingKeepsTheTokenAndCounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		wantErr(t, h.Nest(t.Context(), false), claim.ErrNested)
		must(t, h.Nest(t.Context(), true))
		must(t, h.Nest(t.Context(), true))
		if m := w.Meta(); m.Token != 1 || m.Nest != 2 {
			t.Fatalf("token %d, nested %d", m.Token, m.Nest)
		}
		for range 2 {
			must(t, h.Release(t.Context()))
			must(t, commit(h, w))
			if m := w.Meta(); m.Owner != h.Owner() {
				t.Fatal("free before as many releases as takings")
			}
		}
		must(t, h.Release(t.Context()))
		if m := w.Meta(); m.Owner != "" || m.Nest != 0 || m.Token != 1 {
			t.Fatalf("after the last release: %+v", m)
		}
		wantErr(t, commit(h, w), claim.ErrReleased)
	})
}

func TestC1_TheNextTakingForgetsNestingOfTheDead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Frozen().Start()
		must(t, h.Nest(t.Context(), true))
		w.Expire()
		h2 := w.Resume()
		must(t, h2.Release(t.Context()))
		if m := w.Meta(); m.Owner != "" || m.Nest != 0 {
			t.Fatalf("still held: %+v", m)
		}
	})
}

// What was read is what is claimed: between the two an attempt came and went.
func TestC1_AClaimFromAnOldReadingIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		must(t, w.Start().Release(t.Context()))
		old := w.Meta()
		must(t, w.Resume().Release(t.Context()))
		_, err := w.Claims.Resume(t.Context(), old)
		var taken *claim.TakenError
		if !errors.As(err, &taken) || taken.Meta.Token != 2 {
			t.Fatalf("got %v, want a TakenError with token 2", err)
		}
	})
}
