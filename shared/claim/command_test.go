package claim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
)

type taken struct {
	h   *claim.Holder
	err error
}

// command takes the claim for a command beside the test.
func command(t *testing.T, w *lanetest.World, wait time.Duration) <-chan taken {
	t.Helper()
	out := make(chan taken, 1)
	go func() {
		h, err := w.Claims.Command(t.Context(), w.Ref, wait)
		out <- taken{h, err}
	}()
	return out
}

func TestC4_ACommandTakesAFreeClaimOfASessionThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		h, err := w.Claims.Command(t.Context(), w.Ref, 0)
		must(t, err)
		must(t, commit(h, w, row(w.Ref, "000000000001")))
		must(t, h.Release(t.Context()))
		// The session is as usable as one that began with a run.
		w.Accept("r1")
		if m := w.Meta(); m.SessionID == "" || m.Token != 1 || len(m.Pending) != 1 {
			t.Fatalf("accepted after a command: %+v", m)
		}
	})
}

func TestC4_ACommandWaitsForTheWriter(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen() // its polls stay out of the way
		h := p.Start()
		out := command(t, w, 0)
		for range 4 {
			w.Clock.Waiting(t, 1)
			w.Clock.Advance(time.Second)
			select {
			case got := <-out:
				t.Fatalf("did not wait: %+v", got)
			default:
			}
		}
		w.Clock.Waiting(t, 1)
		p.End(h, run.OK)
		w.Clock.Advance(time.Second)
		got := <-out
		must(t, got.err)
		must(t, got.h.Release(t.Context()))
	})
}

func TestC4_ABusySessionIsErrBusyAfterTheAcquireTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		for _, wait := range []time.Duration{0, 15 * time.Second} {
			began := w.Clock.Now()
			out := command(t, w, wait)
			var got taken
			for done := false; !done; {
				w.Clock.Waiting(t, 1) // its own, or the holder's
				w.Clock.Advance(500 * time.Millisecond)
				select {
				case got = <-out:
					done = true
				case <-time.After(time.Millisecond):
				}
			}
			wantErr(t, got.err, claim.ErrBusy)
			want := wait
			if wait == 0 {
				want = w.Times.Acquire
			}
			if took := w.Clock.Now().Sub(began); took < want {
				t.Fatalf("gave up after %v, want %v", took, want)
			}
		}
		// It was never the end of the run that it met.
		if m := w.Meta(); m.Active != "r1" || m.Owner != h.Owner() || m.Token != 1 || m.Marked() {
			t.Fatalf("the run paid for it: %+v", m)
		}
	})
}

func TestC4_ACommandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Frozen().Start()
		ctx, cancel := context.WithCancel(t.Context())
		out := make(chan error, 1)
		go func() {
			_, err := w.Claims.Command(ctx, w.Ref, 0)
			out <- err
		}()
		w.Clock.Waiting(t, 1)
		cancel()
		if err := <-out; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	})
}

// Between a taking and its release a wake-up is acknowledged (its receiver never
// waits), so whoever releases looks and wakes.
func TestC4_WhoeverReleasesWakesWhatWaited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		h, err := w.Claims.Command(t.Context(), w.Ref, 0)
		must(t, err)
		must(t, h.Release(t.Context()))
		must(t, w.Lanes.Settled(t.Context(), w.Ref, nil, h.Owner()))
		w.Queue.None(t) // nothing waited

		h, err = w.Claims.Command(t.Context(), w.Ref, 0)
		must(t, err)
		w.Accept("r1")
		w.Queue.Take() // lost
		must(t, h.Release(t.Context()))
		must(t, w.Lanes.Settled(t.Context(), w.Ref, nil, h.Owner()))
		w.Queue.One(t)
	})
}

func TestC4_ReadersNeverWait(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Start()
		// What follows would hang for ever on a clock that nobody moves.
		w.Accept("r2")
		_, _ = w.Meta(), w.Status("r1")
	})
}
