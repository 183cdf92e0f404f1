package notify_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/test/backends"
)

// each runs a test over every store.
func each(t *testing.T, f func(d *desk)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, store table.Store) {
		t.Helper()
		f(newDesk(t, store))
	})
}

// TestW1_ShortWaitsStayInline: no timer, no row; they end with the run or the window.
func TestW1_ShortWaitsStayInline(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		d.mu.Lock()
		d.order = nil
		d.mu.Unlock()
		for _, ends := range []bool{false, true} {
			answer := make(chan string, 1)
			begun := d.clock.Now()
			go func() { answer <- d.wait(w, "r1", 2*time.Second) }()
			for n := 0; len(answer) == 0; n++ {
				d.clock.Waiting(t, 1)
				if ends && n == 3 {
					d.end()
				}
				d.clock.Advance(100 * time.Millisecond)
				if n > 25 {
					t.Fatal("the wait does not end")
				}
				settle(answer, d)
			}
			got := <-answer
			if took := d.clock.Now().Sub(begun); ends == strings.Contains(got, expired) || !ends && took < 2*time.Second || took > 2*time.Second {
				t.Errorf("ended %v: %s after %s", ends, got, took)
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if slices.Contains(d.order, "timer") || slices.Contains(d.order, "row") {
			t.Errorf("%v", d.order)
		}
	})
}

// settle waits until a wait that was told the time has answered or waits again.
func settle(answer chan string, d *desk) {
	for end := time.Now().Add(10 * time.Second); len(answer) == 0 && d.clock.Pending() == 0 && time.Now().Before(end); {
		<-time.After(50 * time.Microsecond)
	}
}

// TestW1_AWaitCostsNothingWhileItWaits: the call returns at once and leaves a timer and
// a row; the deadline answers.
func TestW1_AWaitCostsNothingWhileItWaits(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		if got := d.wait(w, "r1", 30*time.Second); got != "" || d.armed() != 1 {
			t.Fatalf("answered %q, %d timers", got, d.armed())
		}
		d.pass(29 * time.Second)
		if got := d.told("c"); len(got) != 0 {
			t.Fatalf("told %v before its time", got)
		}
		d.pass(2 * time.Second)
		got := d.told("c")
		if len(got) != 1 || got[0] != `{"type":"res","id":"q-c","ok":true,`+expired+`}` {
			t.Fatalf("told %v", got)
		}
		d.end()
		d.finish(d.core.Notify)
		d.pass(10 * time.Minute)
		if got := d.told("c"); len(got) != 1 {
			t.Errorf("told %v", got)
		}
		if d.armed() != 0 {
			t.Errorf("%d timers are left", d.armed())
		}
	})
}

// TestW1_TicksKeepTheConnectionOpen, every four minutes, until the answer; a
// connection that is gone waits no more.
func TestW1_TicksKeepTheConnectionOpen(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		stays, goes := d.connect("stays"), d.connect("goes")
		d.accept()
		d.wait(stays, "r1", 10*time.Minute)
		d.wait(goes, "r1", 10*time.Minute)
		d.pass(4 * time.Minute)
		if d.ticks("stays") != 1 || d.ticks("goes") != 1 {
			t.Fatalf("%d and %d ticks", d.ticks("stays"), d.ticks("goes"))
		}
		d.post = func(to push.Target, _ []byte) error {
			if to.ConnectionID == "goes" {
				return push.ErrGone
			}
			return nil
		}
		d.pass(4 * time.Minute)
		if _, err := d.core.Connections.Load(t.Context(), "goes"); !errors.Is(err, connection.ErrGone) {
			t.Errorf("the connection stays: %v", err)
		}
		if _, there, err := run.LoadWaiter(t.Context(), d.store, theRun, "goes", goes.RequestID); err != nil || there {
			t.Errorf("it waits: %v, %v", there, err)
		}
		d.pass(3 * time.Minute)
		if got := d.told("stays"); d.ticks("stays") != 2 || len(got) != 1 || !strings.Contains(got[0], expired) {
			t.Errorf("%d ticks, told %v", d.ticks("stays"), got)
		}
		if len(d.told("goes")) != 0 || d.armed() != 0 {
			t.Errorf("told %v, %d timers", d.told("goes"), d.armed())
		}
	})
}

// TestW2_TimerThenRowThenStatus.
func TestW2_TimerThenRowThenStatus(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		d.mu.Lock()
		d.order = nil
		d.mu.Unlock()
		d.wait(w, "r1", time.Minute)
		d.mu.Lock()
		defer d.mu.Unlock()
		if !slices.Equal(d.order, []string{"status", "timer", "row", "status"}) {
			t.Errorf("%v", d.order)
		}
	})
}

// TestW2_NoEndFallsBetween: the run ends, and its end is told, at any call of the store
// that the wait makes. There is one answer, by the wait itself or by a post.
func TestW2_NoEndFallsBetween(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		for n := range 12 {
			d := newDesk(t, d.store)
			id := "c" + string(rune('a'+n))
			w := d.connect(id)
			d.accept(func(st *run.Status) {
				st.SessionKey += id
				st.Ref = run.RefOf("default", "r1"+id)
				st.RunID = "r1" + id
			})
			calls := 0
			p := d.process(faulty.New(d.store, faulty.Config{At: func(faulty.Call) faulty.Fault {
				if calls++; calls == n {
					d.endOf(id)
				}
				return faulty.None
			}}))
			frame, err := p.Notify.Wait(t.Context(), run.RefOf("default", "r1"+id), "r1"+id, w, time.Minute)
			must(t, err)
			if calls < n || n == 0 {
				d.endOf(id)
			}
			d.pass(2 * time.Minute)
			got := d.told(id)
			if frame != nil {
				got = append(got, string(frame))
			}
			if len(got) != 1 || status(t, got[0]) != "error" {
				t.Errorf("call %d: told %v", n, got)
			}
		}
	})
}

// TestW2_TheAnswerIsAlwaysTheSame: the deadline writes its answer and cannot post it;
// then the run ends. Whoever answers later posts what was written.
func TestW2_TheAnswerIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		d.wait(w, "r1", 30*time.Second)
		d.post = func(push.Target, []byte) error { return push.ErrFailed }
		d.pass(31 * time.Second)
		d.end()
		d.post = nil
		if d.finish(d.core.Notify) {
			t.Error("held")
		}
		if got := d.told("c"); len(got) != 0 {
			t.Fatalf("told %v while another has it", got)
		}
		d.pass(time.Minute)
		if got := d.told("c"); len(got) != 1 || !strings.Contains(got[0], expired) {
			t.Errorf("told %v", got)
		}
	})
}

// TestW2_OneOfManyAnswerersTells: the deadline's timer, delivered twice, and settlers,
// all at once.
func TestW2_OneOfManyAnswerersTells(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		d.wait(w, "r1", 30*time.Second)
		d.clock.Advance(31 * time.Second)
		d.end()
		timers := d.due()
		var wg sync.WaitGroup
		for range 4 {
			for _, a := range timers {
				wg.Go(func() {
					if err := d.core.Notify.HandleTimer(t.Context(), a.body); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Go(func() { d.finish(d.process(d.store).Notify) })
		}
		wg.Wait()
		d.pass(time.Minute)
		if got := d.told("c"); len(got) != 1 {
			t.Errorf("told %v", got)
		}
	})
}

// TestW2_TheLeaseOfAnAnswererWhoDied runs out, and another one posts the same.
func TestW2_TheLeaseOfAnAnswererWhoDied(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		d.wait(w, "r1", time.Minute)
		d.end()
		row, there, err := run.LoadWaiter(t.Context(), d.store, theRun, "c", w.RequestID)
		if err != nil || !there {
			t.Fatalf("%v, %v", there, err)
		}
		_, err = row.Take(t.Context(), d.store, []byte(`{"type":"res","id":"q-c","ok":true,"payload":{"runId":"r1","status":"written"}}`), d.clock.Now(), 10*time.Second)
		must(t, err) // and nothing more of it
		d.finish(d.core.Notify)
		d.pass(9 * time.Second)
		if got := d.told("c"); len(got) != 0 {
			t.Fatalf("told %v inside the lease", got)
		}
		d.pass(5 * time.Second)
		if got := d.told("c"); len(got) != 1 || status(t, got[0]) != "written" {
			t.Errorf("told %v", got)
		}
	})
}

// TestW2_TimersThatAreEarlyLateOrRepeated change nothing.
func TestW2_TimersThatAreEarlyLateOrRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		d.wait(w, "r1", 30*time.Second)
		early := d.timers[0]
		d.clock.Advance(29*time.Second + 700*time.Millisecond)
		for range 3 {
			must(t, d.core.Notify.HandleTimer(t.Context(), early.body))
		}
		if got := d.told("c"); len(got) != 0 {
			t.Fatalf("told %v before its time", got)
		}
		d.pass(5 * time.Second)
		for range 3 {
			must(t, d.core.Notify.HandleTimer(t.Context(), early.body))
		}
		d.pass(time.Hour)
		if got := d.told("c"); len(got) != 1 {
			t.Errorf("told %v", got)
		}
	})
}

// TestW2_ARowThatComesLate: whoever waits stood still between timer and row for longer
// than the window. It is told all the same.
func TestW2_ARowThatComesLate(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		stood := false
		p := d.process(faulty.New(d.store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if len(c.Ops) > 0 && strings.HasPrefix(c.Ops[0].Key.SK, "W#") && !stood {
				stood = true
				d.pass(time.Minute)
			}
			return faulty.None
		}}))
		frame, err := p.Notify.Wait(t.Context(), theRun, "r1", w, 30*time.Second)
		must(t, err)
		d.pass(time.Minute)
		got := d.told("c")
		if frame != nil {
			got = append(got, string(frame))
		}
		if !stood || len(got) != 1 || !strings.Contains(got[0], expired) {
			t.Errorf("told %v", got)
		}
	})
}

// TestW1_AfterAnErrorNobodyWaits: the row was written, and its writer stood still for so
// long that nobody knew. Who was told to come again is not answered as well when the run
// ends.
func TestW1_AfterAnErrorNobodyWaits(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.accept()
		p := d.process(faulty.New(d.store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
			if len(c.Ops) > 0 && strings.HasPrefix(c.Ops[0].Key.SK, "W#") && c.Ops[0].Kind == table.Put {
				d.clock.Advance(time.Minute)
				return faulty.LostAnswer
			}
			return faulty.None
		}}))
		if frame, err := p.Notify.Wait(t.Context(), theRun, "r1", w, 30*time.Second); err == nil {
			t.Fatalf("answered with %s", frame)
		}
		d.end()
		d.finish(d.core.Notify)
		d.pass(time.Hour)
		if got := d.told("c"); len(got) != 0 {
			t.Errorf("told %v behind an error", got)
		}
	})
}

// TestF18_UnknownAndForeignRunsLookAlike: both last their window and end as if the run
// went on.
func TestF18_UnknownAndForeignRunsLookAlike(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		foreign := run.Status{
			Ref: run.RefOf("other", "theirs"), RunID: "theirs", SessionKey: "agent:main:w", AgentID: "main", Method: "agent", RequestHash: "h",
		}
		foreign.Outcome = &run.Outcome{Kind: run.OK}
		item, err := foreign.Item()
		must(t, err)
		_, err = d.store.Write(t.Context(), table.Op{Kind: table.Put, Key: foreign.StatusKey(), Item: item})
		must(t, err)
		var got []string
		for _, id := range []string{"nobodys", "theirs"} {
			w := d.connect(id)
			if f := d.wait(w, id, 30*time.Second); f != "" {
				t.Fatalf("%s: answered at once: %s", id, f)
			}
			d.pass(29 * time.Second)
			if f := d.told(id); len(f) != 0 {
				t.Fatalf("%s: told %v", id, f)
			}
			d.pass(2 * time.Second)
			if f := d.told(id); len(f) == 1 {
				got = append(got, strings.ReplaceAll(f[0], id, "X"))
			}
		}
		if len(got) != 2 || got[0] != got[1] || status(t, got[0]) != "timeout" {
			t.Errorf("told %v", got)
		}
	})
}

// TestW1_AWaitMayComeBeforeItsRun.
func TestW1_AWaitMayComeBeforeItsRun(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.wait(w, "r1", time.Minute)
		d.accept()
		d.end()
		d.finish(d.core.Notify)
		if got := d.told("c"); len(got) != 1 || status(t, got[0]) != "error" {
			t.Errorf("told %v", got)
		}
	})
}

// TestW1_AQueuedChatTurnIsPending: at once, and where it is queued at the deadline.
func TestW1_AQueuedChatTurnIsPending(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		d.wait(w, "r1", 30*time.Second)
		d.accept(func(st *run.Status) { st.Ref, st.RunID, st.RequestHash = run.RefOf("default", "r0"), "r0", "h0" })
		d.accept(func(st *run.Status) { st.Method = "chat.send" })
		d.pass(31 * time.Second)
		if got := d.told("c"); len(got) != 1 || status(t, got[0]) != "pending" {
			t.Errorf("told %v", got)
		}
		if got := d.wait(d.connect("e"), "r1", 30*time.Second); status(t, got) != "pending" {
			t.Errorf("told %s", got)
		}
	})
}

// TestW2_AWaitForTheEndAlone has no deadline, and gets the final reply.
func TestW2_AWaitForTheEndAlone(t *testing.T) {
	t.Parallel()
	each(t, func(d *desk) {
		t := d.t
		w := d.connect("c")
		w.Kind = run.WaitFinal
		d.accept()
		frame, err := d.core.Notify.Attach(t.Context(), theRun, "r1", w, time.Time{})
		must(t, err)
		if frame != nil {
			t.Fatalf("answered %s", frame)
		}
		d.pass(3 * time.Hour)
		if got := d.told("c"); len(got) != 0 || d.ticks("c") < 40 {
			t.Fatalf("told %v after %d ticks", got, d.ticks("c"))
		}
		d.end()
		d.finish(d.core.Notify)
		if got := d.told("c"); len(got) != 1 || status(t, got[0]) != "timeout" || !strings.Contains(got[0], `"stopReason":"rpc"`) {
			t.Errorf("told %v", got)
		}
	})
}
