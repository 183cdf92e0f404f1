package notify_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/stream"
)

// origin makes a connection the caller of the run.
func origin(w run.Waiter) func(*run.Status) {
	w.Kind = run.WaitFinal
	return func(st *run.Status) { st.Origin = &w }
}

// TestL5_WhoTellsAnEndHasItForHimself for as long as an answerer has.
func TestL5_WhoTellsAnEndHasItForHimself(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		d.accept(origin(d.connect("c")))
		d.end()
		var wg sync.WaitGroup
		var mu sync.Mutex
		told := 0
		for range 6 {
			wg.Go(func() {
				held := d.finish(d.process(d.store).Notify)
				mu.Lock()
				defer mu.Unlock()
				if !held {
					told++
				}
			})
		}
		wg.Wait()
		if got := d.told("c"); told != 1 || len(got) != 1 {
			t.Errorf("%d told it: %v", told, got)
		}
		d.clock.Advance(9 * time.Second)
		if !d.finish(d.core.Notify) {
			t.Error("not held inside the lease")
		}
		d.clock.Advance(2 * time.Second)
		if d.finish(d.core.Notify) {
			t.Error("held behind it") // a settler that died in between: told again, and the same
		}
		if got := d.told("c"); len(got) != 2 || got[0] != got[1] {
			t.Errorf("told %v", got)
		}
	})
}

// TestLate_FramesGoInTheirOrder, in as many timers as they need, and again while their
// connection does not take them.
func TestLate_FramesGoInTheirOrder(t *testing.T) {
	t.Parallel()
	onBolt(t, func(d *desk) {
		t := d.t
		to := push.Target{ConnectionID: "c"}
		big := strings.Repeat("x", 100<<10)
		var unsent []stream.Unsent
		for _, f := range []string{"1" + big, "2" + big, "3", "4" + big} {
			unsent = append(unsent, stream.Unsent{To: to, Frame: []byte(f)})
		}
		unsent = append(unsent, stream.Unsent{To: push.Target{ConnectionID: "other"}, Frame: []byte("o")})
		must(t, d.core.Notify.Late(t.Context(), run.Status{}, unsent))
		for _, a := range d.timers {
			if len(a.body) > queue.MaxBody {
				t.Errorf("a timer of %d bytes", len(a.body))
			}
		}
		fails := 5
		d.post = func(to push.Target, _ []byte) error {
			if fails--; to.ConnectionID == "c" && fails >= 0 {
				return push.ErrThrottled
			}
			return nil
		}
		d.pass(10 * time.Minute)
		var got []string
		for _, p := range d.posted {
			got = append(got, p.to+p.frame[:1])
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"c1", "c2", "c3", "c4", "othero"}) {
			t.Errorf("posted %v", got)
		}
	})
}

// TestLate_WhatIsTooLarge: an event is dropped, a reply made smaller; neither is an
// error that would keep the run unsettled.
func TestLate_WhatIsTooLarge(t *testing.T) {
	t.Parallel()
	onBolt(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		w.Kind = run.WaitFinal
		st := run.Status{RunID: "r1", Outcome: &run.Outcome{Kind: run.OK, Payloads: []run.Payload{{Text: strings.Repeat("y", 400<<10)}}}}
		large := []byte(strings.Repeat("x", 300<<10))
		must(t, d.core.Notify.Late(t.Context(), st, []stream.Unsent{
			{To: push.Target{ConnectionID: "c"}, Frame: large},
			{To: push.Target{ConnectionID: "c"}, Frame: large, Waiter: &w},
		}))
		d.pass(time.Minute)
		got := d.told("c")
		if len(d.posted) != 1 || len(got) != 1 || len(got[0]) > protocol.MaxFrameOut || status(t, got[0]) != "ok" {
			t.Errorf("%d posts, replies %.200s", len(d.posted), got)
		}
	})
}

// TestLate_GivesUpSometime.
func TestLate_GivesUpSometime(t *testing.T) {
	t.Parallel()
	onBolt(t, func(d *desk) {
		t := d.t
		tries := 0
		d.post = func(push.Target, []byte) error { tries++; return push.ErrFailed }
		must(t, d.core.Notify.PostLater(t.Context(), push.Target{ConnectionID: "c"}, [][]byte{[]byte("1"), []byte("2")}))
		d.pass(2 * time.Hour)
		if d.armed() != 0 || tries < 5 || tries > 20 {
			t.Errorf("%d tries, %d timers", tries, d.armed())
		}
	})
}

// TestTimer_ThatIsNone is an error, so that somebody learns of it.
func TestTimer_ThatIsNone(t *testing.T) {
	t.Parallel()
	onBolt(t, func(d *desk) {
		t := d.t
		for _, body := range []string{"", "{", "null", `{"kind":"other"}`, `[]`} {
			if err := d.core.Notify.HandleTimer(t.Context(), []byte(body)); err == nil {
				t.Errorf("%q is taken", body)
			}
		}
	})
}
