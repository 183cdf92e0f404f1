package claim_test

import (
	"reflect"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
)

// A sign of life costs no write: it travels with the next renewal.
func TestProgress_TravelsWithRenewals(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		if p := w.Meta().Progress; p.At != w.Clock.Now().UnixMilli() || p.Why != session.ProgressRun {
			t.Fatalf("at the start: %+v", p)
		}
		looked(t, w, time.Second)
		before := stable(w)
		done := h.Working(session.Work{Kind: session.WorkModel, Limit: 2 * time.Minute})
		at := w.Clock.Now().UnixMilli()
		h.Progress(session.ProgressStream)
		looked(t, w, w.Times.Renew/2)
		if now := stable(w); !reflect.DeepEqual(now, before) {
			t.Fatalf("it was written by itself: %+v", now)
		}
		looked(t, w, w.Times.Renew)
		want := session.Progress{At: at, Why: session.ProgressStream, Work: session.Work{Kind: session.WorkModel, Since: at, Limit: 2 * time.Minute}}
		if p := w.Meta().Progress; p != want {
			t.Fatalf("after a renewal: %+v, want %+v", p, want)
		}
		done()
		done() // a second time is nothing
		looked(t, w, 2*w.Times.Renew)
		if p := w.Meta().Progress; p.Work != (session.Work{}) || p.Why != session.ProgressModelEnded || p.At <= at {
			t.Fatalf("after its end: %+v", p)
		}
	})
}

// Of tools side by side the one that began first is shown, until it ends.
func TestProgress_TheOldestToolIsShown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen()
		h := p.Start()
		shown := func() session.Work {
			t.Helper()
			must(t, commit(h, p))
			return w.Meta().Progress.Work
		}
		first := h.Working(session.Work{Kind: session.WorkTool, Tool: "exec", CallID: "1"})
		p.Clock.Advance(100 * time.Millisecond)
		second := h.Working(session.Work{Kind: session.WorkTool, Tool: "read", CallID: "2"})
		if got := shown(); got.CallID != "1" || got.Tool != "exec" {
			t.Errorf("both: %+v", got)
		}
		first()
		if got := shown(); got.CallID != "2" || got.Since != p.Clock.Now().UnixMilli() {
			t.Errorf("one: %+v", got)
		}
		second()
		if got := shown(); got != (session.Work{}) {
			t.Errorf("none: %+v", got)
		}
	})
}

// The same request again and again is no progress; the first piece of an answer is.
func TestProgress_RepeatedRequestsAreCountedFromTheFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen()
		h := p.Start()
		ask := func(answered bool) int64 {
			t.Helper()
			p.Clock.Advance(100 * time.Millisecond)
			done := h.Working(session.Work{Kind: session.WorkModel})
			if answered {
				h.Progress(session.ProgressStream)
			}
			done()
			h.Working(session.Work{Kind: session.WorkRetry})() // a pause is none either
			must(t, commit(h, p))
			return w.Meta().Progress.Asked
		}
		first := p.Clock.Now().Add(100 * time.Millisecond).UnixMilli()
		for i, want := range []int64{0, first, first} {
			if got := ask(false); got != want {
				t.Errorf("request %d: since %d, want %d", i+1, got, want)
			}
		}
		if got := ask(true); got != 0 {
			t.Errorf("after an answer: since %d", got)
		}
		if got := ask(false); got != 0 {
			t.Errorf("the next request: since %d", got)
		}
	})
}

// A checkpoint leaves the marks for whoever looks; the end of a run and a command
// leave none of it.
func TestProgress_EndsWithTheRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		p := w.Frozen()
		h := p.Start()
		h.Working(session.Work{Kind: session.WorkRetry, Limit: time.Hour})
		must(t, h.Commit(t.Context(), claim.Tx{Release: true}))
		if got := w.Meta().Progress.Work; got.Kind != session.WorkRetry || got.Limit != time.Hour {
			t.Errorf("after a checkpoint: %+v", got)
		}
		c, err := p.Claims.Command(t.Context(), w.Ref, 0)
		must(t, err)
		c.Progress(session.ProgressStatus)
		must(t, c.Release(t.Context()))
		if got := w.Meta().Progress.Work; got.Kind != session.WorkRetry {
			t.Errorf("after a command: %+v", got)
		}
		h = p.Resume()
		if got := w.Meta().Progress; got.Why != session.ProgressRun || got.Work != (session.Work{}) {
			t.Errorf("of the next attempt: %+v", got)
		}
		p.End(h, run.OK)
		it := stable(w)
		if it.Attrs.Str(session.AttrProgress) != "" {
			t.Errorf("after the end: %q", it.Attrs.Str(session.AttrProgress))
		}
	})
}
