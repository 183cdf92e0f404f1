package claim_test

import (
	"context"
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

// looked moves the clock and waits until the holder has looked and waits again.
func looked(t *testing.T, w *lanetest.World, d time.Duration) {
	t.Helper()
	for ; d > 0; d -= w.Times.Poll {
		w.Clock.Waiting(t, 1)
		w.Clock.Advance(min(d, w.Times.Poll))
		w.Clock.Waiting(t, 1)
	}
}

func TestC3_TheHolderRenewsItsLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		first := w.Meta().Lease
		looked(t, w, w.Times.Renew-w.Times.Poll)
		if got := w.Meta().Lease; !got.Equal(first) {
			t.Fatal("renewed before it was due")
		}
		looked(t, w, time.Minute)
		m := w.Meta()
		if left := m.Lease.Sub(w.Clock.Now()); left < w.Times.Lease-w.Times.Renew-w.Times.Poll {
			t.Fatalf("after a minute the lease has %v left", left)
		}
		must(t, h.Fresh())
	})
}

func TestC3_ACommitRenewsTheLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen()
		h := p.Start()
		p.Clock.Advance(w.Times.Poll / 2)
		must(t, commit(h, p))
		if got, want := w.Meta().Lease, p.Clock.Now().Add(w.Times.Lease); got.UnixMilli() != want.UnixMilli() {
			t.Fatalf("lease until %v, want %v", got, want)
		}
	})
}

// A holder whose renewals do not get through starts nothing after 20 s, which is
// before anybody may take its claim over.
func TestC3_AHolderWithoutRenewalIsNotFreshAfterTheTrustWindow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		var mu sync.Mutex
		cut := false
		s := faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			mu.Lock()
			defer mu.Unlock()
			if cut && c.Ops != nil {
				return faulty.LostRequest
			}
			return faulty.None
		}})
		p := w.Process(s)
		h := p.Start()
		mu.Lock()
		cut = true
		mu.Unlock()
		w.Clock.Waiting(t, 1)
		w.Clock.Advance(w.Times.Trust)
		must(t, h.Fresh())
		w.Clock.Advance(time.Millisecond)
		wantErr(t, h.Fresh(), claim.ErrLapsed)
		if m := w.Meta(); !m.Owned(w.Clock.Now(), w.Times.Slack) {
			t.Fatal("taken over could be what is still trusted")
		}
		mu.Lock()
		cut = false
		mu.Unlock()
		must(t, commit(h, w)) // still nobody else's: it may go on
		must(t, h.Fresh())
	})
}

func TestC3_TheTrustWindowEndsBeforeTheLeaseByDefault(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{0, time.Second, 10 * time.Second} {
		d := claim.Times{Lease: lease}.WithDefaults()
		if d.Trust >= d.Lease || d.Renew >= d.Trust || d.Slack <= 0 {
			t.Errorf("lease %v: %+v", lease, d)
		}
	}
	d := claim.Times{}.WithDefaults()
	want := claim.Times{
		Lease: 30 * time.Second, Renew: 10 * time.Second, Slack: 5 * time.Second, Trust: 20 * time.Second, Poll: 700 * time.Millisecond,
		Answer: 10 * time.Second, Orphan: 20 * time.Second, Acquire: time.Minute, Retry: 5 * time.Second, Stalls: 3,
	}
	if d != want {
		t.Errorf("defaults %+v, want %+v", d, want)
	}
}

// A takeover is not seen by the lease alone: the holder's next look tells it.
func TestC3_AHolderSeesThatItWasSuperseded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen()
		h := p.Start()
		w.Expire()
		w.Resume()
		p.Clock.Waiting(t, 1)
		p.Clock.Advance(w.Times.Poll)
		select {
		case <-h.Context().Done():
		case <-time.After(10 * time.Second):
			t.Fatal("not told")
		}
		wantErr(t, context.Cause(h.Context()), claim.ErrStale)
		wantErr(t, h.Fresh(), claim.ErrStale)
	})
}

// One process took the data lock of a machine: what its predecessor held is free at
// once, and work that it left is woken (C3).
func TestC3_RecoverEndsTheLeasesOfAPredecessor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		dead := w.Frozen().Start()
		w.Queue.Take()
		sum, err := w.Lanes.Recover(t.Context())
		if err != nil || sum.Active != 1 || sum.Woken != 1 {
			t.Fatalf("recovered %+v, %v", sum, err)
		}
		w.Queue.One(t)
		before := everything(w)
		wantErr(t, commit(dead, w, row(w.Ref, "000000000001")), claim.ErrStale)
		if len(everything(w)) != len(before) {
			t.Fatal("the predecessor wrote")
		}
		if d := lane.Decide(w.Meta(), "main", w.Clock.Now(), w.Times); d.Do != lane.Resume {
			t.Fatalf("the wake-up means %+v", d)
		}
		h := w.Resume()
		if h.Token() != 2 {
			t.Fatalf("token %d", h.Token())
		}
	})
}

func TestC3_RecoverLeavesAsleepWhatSleeps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		must(t, h.Commit(t.Context(), claim.Tx{
			Release: true, Set: []table.SetOp{{Path: table.P(session.AttrWake), Value: w.Clock.Now().Add(time.Hour).UnixMilli()}},
		}))
		w.Queue.Take()
		sum, err := w.Lanes.Recover(t.Context())
		if err != nil || sum.Woken != 0 {
			t.Fatalf("recovered %+v, %v", sum, err)
		}
		w.Queue.None(t)
	})
}

// S5 rests on it: marks, mail and subscriptions are seen within one poll.
func TestC3_TheHolderSeesMarksWithinAPoll(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		seen := make(chan session.Meta, 8)
		h.OnChange(func(m session.Meta) { seen <- m })
		ok, err := w.Lanes.StopRun(t.Context(), lane.Stop{Ref: w.Ref, RunID: "r1", Reason: "rpc"})
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.Clock.Waiting(t, 1)
		w.Clock.Advance(w.Times.Poll)
		select {
		case m := <-seen:
			if !m.Marked() || m.CancelWhy != "rpc" {
				t.Fatalf("saw %+v", m)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("not seen")
		}
		w.End(h, run.Aborted)
	})
}

func TestC3_TheHoldersGoroutineEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		ctx, cancel := context.WithCancel(t.Context())
		m := w.Meta()
		p, _ := m.Lowest()
		h, err := w.Claims.Start(ctx, m, p)
		must(t, err)
		cancel()
		<-h.Context().Done()
		// Last writes are still made, on a context of their own, and still fenced.
		must(t, h.Commit(t.Context(), claim.Tx{Head: 1, Ops: []table.Op{row(w.Ref, "000000000001")}}))
		must(t, h.Release(t.Context()))
		h.Close()
		h.Close()
		// The rest is goleak's, at the end of the tests.
	})
}
