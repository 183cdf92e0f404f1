package lane_test

import (
	"errors"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

func yes(t *testing.T, what string, want bool) func(bool, error) {
	t.Helper()
	return func(got bool, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Fatalf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
}

// A run that has moved since it was looked at is not interrupted.
func TestInterrupt_OnlyWhatHasNotMoved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen()
		h := p.Start()
		m := w.Meta()
		h.Progress(session.ProgressStream)
		p.Clock.Advance(time.Second)
		h.Progress(session.ProgressStream)
		mustCommit(t, h)
		yes(t, "progress", false)(w.Lanes.Interrupt(t.Context(), m, run.StopStuck))
		m = w.Meta()
		mustCommit(t, h) // a renewal is no progress
		yes(t, "no progress", true)(w.Lanes.Interrupt(t.Context(), m, run.StopStuck))
		if m = w.Meta(); m.Cancel != "r1" || m.CancelWhy != run.StopStuck {
			t.Fatalf("mark %q, %q", m.Cancel, m.CancelWhy)
		}
		yes(t, "once more", false)(w.Lanes.Interrupt(t.Context(), m, run.StopStuck))
		p.End(h, run.Aborted)
		yes(t, "ended", false)(w.Lanes.Interrupt(t.Context(), m, run.StopStuck))
	})
}

func mustCommit(t *testing.T, h *claim.Holder) {
	t.Helper()
	if err := h.Commit(t.Context(), claim.Tx{}); err != nil {
		t.Fatal(err)
	}
}

// TestC2_ARevokedHolderChangesNothing: it can neither write nor renew, and still nobody
// has its claim before its lease is over (C1), since it may believe itself fresh.
func TestC2_ARevokedHolderChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen()
		h := p.Start()
		w.Queue.Take()
		m := w.Meta()
		yes(t, "revoked", true)(w.Lanes.Revoke(t.Context(), m))
		yes(t, "again", false)(w.Lanes.Revoke(t.Context(), m))
		err := h.Commit(t.Context(), claim.Tx{Ops: []table.Op{{
			Kind: table.Put, Key: w.Ref.MailKey(9), Item: table.Attrs{"by": "late"},
		}}})
		if !errors.Is(err, claim.ErrStale) {
			t.Fatal(err)
		}
		if _, err := w.Store.Get(t.Context(), w.Ref.MailKey(9)); err == nil {
			t.Fatal("a revoked holder wrote")
		}
		now := w.Meta()
		if now.Token != m.Token+1 || !now.Lease.Equal(m.Lease) || now.Active != "r1" {
			t.Fatalf("%+v, was %+v", now, m)
		}
		w.Clock.Advance(w.Times.Lease + w.Times.Slack)
		if _, err := w.Claims.Resume(t.Context(), now); err == nil {
			t.Fatal("taken within the lease")
		}
		w.Queue.None(t)
		w.Clock.Advance(time.Second + time.Millisecond)
		w.Queue.One(t) // the alarm for who comes next
		h = w.Resume()
		if h.Token() != now.Token+1 {
			t.Fatalf("token %d after %d", h.Token(), now.Token)
		}
	})
}

// TestC5_RescueKnowsItsOwnWrites: applied, and the answer lost, is done all the same.
func TestC5_RescueKnowsItsOwnWrites(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Frozen().Start()
		lost := func() *lanetest.World {
			first := true
			return w.Process(faulty.New(w.Store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
				if c.Ops == nil || !first {
					return faulty.None
				}
				first = false
				return faulty.LostAnswer
			}}))
		}
		yes(t, "interrupt", true)(lost().Lanes.Interrupt(t.Context(), w.Meta(), run.StopStuck))
		yes(t, "revoke", true)(lost().Lanes.Revoke(t.Context(), w.Meta()))
		if m := w.Meta(); m.Cancel != "r1" || m.Token != 2 {
			t.Fatalf("%+v", m)
		}
	})
}

// The sweep's next wake-up can be told before it comes.
func TestNextWake(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		next := func(want time.Duration, left bool) {
			t.Helper()
			at, ok, err := w.Lanes.NextWake(t.Context(), w.Meta())
			if err != nil || ok != left || ok && at.Sub(w.Clock.Now()) != want {
				t.Fatalf("in %v, %v, %v; want in %v", at.Sub(w.Clock.Now()), ok, err, want)
			}
		}
		next(0, false)
		w.Accept("r1")
		next(w.Times.Orphan, true)
		w.Clock.Advance(w.Times.Orphan)
		next(0, true)
		sweep(t, w)
		next(time.Minute, true)
		if ok, err := w.Lanes.Wake(t.Context(), w.Meta()); ok || err != nil {
			t.Fatalf("woken again at once: %v, %v", ok, err)
		}
		w.Frozen().Start()
		next(0, false)
		w.Clock.Advance(w.Times.Lease + w.Times.Slack + time.Millisecond)
		next(w.Times.Orphan-w.Times.Slack-time.Millisecond, true)
	})
}
