package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/stream"
)

// pause lets the bubble's clock go on.
func pause(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the bubble's clock
	synctest.Wait()
}

func TestS3_FirstDeltaGoesAtOnceLaterOnesPaced(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		s := w.open(info("a"))
		begin := time.Now()
		for i := range 100 {
			s.Text(fmt.Sprintf("%d ", i))
			pause(10 * time.Millisecond)
		}
		s.Close(t.Context())
		var at []time.Duration
		for _, f := range a.got {
			at = append(at, f.at.Sub(begin))
		}
		if at[0] != 0 {
			t.Errorf("first delta after %v", at[0])
		}
		for i := 1; i < len(at)-1; i++ {
			if gap := at[i] - at[i-1]; gap < 75*time.Millisecond || gap > 85*time.Millisecond {
				t.Errorf("deltas at %v", at)
				break
			}
		}
	})
}

func TestS3_EveryMessageBeginsAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		s := w.open(info("a"))
		s.Thinking("a thought")
		s.Text("one")
		synctest.Wait()
		a.equal("1 thinking", "2 assistant")
		w.commit(s.Prepare(stream.EndMessage()))
		s.BeginMessage()
		s.Text("two")
		synctest.Wait()
		a.equal("1 thinking", "2 assistant", "3 assistant", "4 assistant")
		s.Close(t.Context())
	})
}

func TestS3_DeltasGatherWhileAPostIsInFlight(t *testing.T) {
	t.Parallel()
	inWorld(t, func(c *stream.Config) { c.Pacing = -1 }, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		w.wire.latency = func(string) time.Duration { return time.Second }
		s := w.open(info("a"))
		for range 50 {
			s.Text("x")
			pause(50 * time.Millisecond)
		}
		s.Close(t.Context())
		a.equal("1 assistant", "2 assistant", "3 assistant", "4 assistant")
		if a.text() != strings.Repeat("x", 50) {
			t.Errorf("text %q", a.text())
		}
	})
}

func TestS3_SlowConnectionDelaysNoOther(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		fast, slow := w.connect("fast", tenant), w.connect("slow", tenant)
		w.subscribe("slow", sessKey)
		w.wire.latency = func(id string) time.Duration {
			if id == "slow" {
				return 900 * time.Millisecond
			}
			return 0
		}
		s := w.open(info("fast"))
		for range 100 {
			s.Text("ab")
			pause(25 * time.Millisecond)
		}
		w.commit(s.Prepare(stream.EndMessage(), finished, final(strings.Repeat("ab", 100))))
		synctest.Wait()
		if n := len(fast.got); n < 25 {
			t.Errorf("%d frames at the fast connection by the end", n)
		}
		if left := s.Close(t.Context()); len(left) != 0 {
			t.Errorf("unsent %v", left)
		}
		if n := len(slow.got); n > 12 {
			t.Errorf("%d frames at the slow connection", n)
		}
		if slow.chat != fast.text() || slow.text() != fast.text() {
			t.Errorf("slow shows %q", slow.chat)
		}
	})
}

func TestF30d_GoneConnectionIsRemovedOnceAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, b := w.connect("a", tenant, stream.CapTools), w.connect("b", tenant, stream.CapTools)
		w.subscribe("b", sessKey)
		w.wire.fault = func(id string, n int, _ []byte) (error, bool) {
			if id == "b" && n >= 2 {
				return push.ErrGone, false
			}
			return nil, true
		}
		s := w.open(info("a"))
		turn(w, s)
		s.Reply(run.Waiter{ConnectionID: "b", RequestID: "r"}, []byte(`{"type":"res","id":"r"}`))
		if left := s.Close(t.Context()); len(left) != 0 {
			t.Errorf("unsent %v", left)
		}
		if b.posts != 2 {
			t.Errorf("%d posts to a connection that is gone", b.posts)
		}
		if !w.gone("b") || w.gone("a") {
			t.Error("the wrong connection was removed")
		}
		subs, err := w.conns.Subscribers(t.Context(), tenant, sessKey)
		if err != nil || len(subs) != 0 {
			t.Errorf("subscribers %v, %v", subs, err)
		}
		if a.text() != "Let me look.\n\nIt is so." || len(a.seqs()) != int(a.seq) {
			t.Errorf("the other connection got %v", a.says())
		}
	})
}

// failing makes the n-th post to a connection fail.
func failing(n int, err error, delivered bool) func(string, int, []byte) (error, bool) {
	return func(_ string, i int, _ []byte) (error, bool) {
		if i == n {
			return err, delivered
		}
		return nil, true
	}
}

func TestS3_FailedDeltaIsFollowedByOneThatReplaces(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		err       error
		delivered bool
	}{
		"throttled":             {push.ErrThrottled, false},
		"server error":          {push.ErrFailed, false},
		"delivered, no answer":  {errHang, true},
		"delivered, then error": {push.ErrFailed, true},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, nil, func(w *world) {
				t := w.t
				a, c := w.connect("a", tenant), w.connect("c", tenant)
				w.subscribe("c", sessKey)
				w.wire.fault = failing(2, f.err, f.delivered)
				s := w.open(info("a"))
				for _, part := range strings.SplitAfter("this is said in several deltas", " ") {
					s.Text(part)
					pause(80 * time.Millisecond)
				}
				w.commit(s.Prepare(stream.EndMessage(), finished, final("x")))
				if left := s.Close(t.Context()); len(left) != 0 {
					t.Errorf("unsent %v", left)
				}
				for _, cl := range []*client{a, c} {
					if cl.text() != "this is said in several deltas" || cl.replaced == 0 {
						t.Errorf("%s shows %q after %d replacements", cl.id, cl.text(), cl.replaced)
					}
				}
				if c.chat != a.text() {
					t.Errorf("chat %q", c.chat)
				}
			})
		})
	}
}

func TestS3_RetryKeepsItsNumber(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant, stream.CapTools)
		w.wire.fault = func(_ string, n int, _ []byte) (error, bool) {
			switch n {
			case 1:
				return push.ErrThrottled, false
			case 2, 3:
				return errHang, true
			}
			return nil, true
		}
		s := w.open(info("a"))
		w.commit(s.Prepare(toolStart("t")))
		w.commit(s.Prepare(finished))
		pause(time.Minute)
		a.equal("1 tool", "1 tool", "1 tool", "2 lifecycle")
		s.Close(t.Context())
	})
}

func TestS3_BacksOffFromAConnectionThatFails(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		w.wire.fault = func(string, int, []byte) (error, bool) { return push.ErrThrottled, false }
		s := w.open(info("a"))
		w.commit(s.Prepare(started))
		for range 1000 {
			s.Text("word ")
			s.Emit("item", obj{"x": 1})
			pause(60 * time.Millisecond)
		}
		if a.posts < 20 || a.posts > 50 {
			t.Errorf("%d posts in a minute of throttling", a.posts)
		}
		s.Stop()
	})
}

func TestS3_WhatIsUnsentIsReturned(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		b := w.connect("b", tenant)
		w.subscribe("b", sessKey)
		w.wire.fault = func(id string, n int, _ []byte) (error, bool) {
			if id == "b" && n > 1 {
				return push.ErrFailed, false
			}
			return nil, true
		}
		s := w.open(info("a"))
		s.Text("hi")
		w.commit(s.Prepare(stream.EndMessage(), finished, final("hi")))
		waiter := run.Waiter{ConnectionID: "b", RequestID: "r", Kind: run.WaitFinal}
		s.Reply(waiter, []byte(`{"type":"res","id":"r"}`))
		begin := time.Now()
		left := s.Close(t.Context())
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		var got []string
		for _, u := range left {
			if u.To.ConnectionID != "b" {
				t.Errorf("unsent to %s", u.To.ConnectionID)
			}
			c := &client{t: t, items: map[string]string{}}
			c.receive(u.Frame)
			got = append(got, c.says()...)
		}
		if want := "2 assistant, 3 lifecycle, 4 chat:final, res r"; strings.Join(got, ", ") != want {
			t.Errorf("unsent %v, want %s", got, want)
		}
		if n := len(left); n > 0 && (left[n-1].Waiter == nil || *left[n-1].Waiter != waiter) {
			t.Errorf("the reply's waiter is %v", left[n-1].Waiter)
		}
		if posts := b.posts; posts == 0 || len(a.got) != 4 {
			t.Errorf("%d posts to b, a got %v", posts, a.says())
		}
	})
}

func TestF4_NothingIsPushedAfterStop(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		w.wire.latency = func(string) time.Duration { return time.Second }
		s := w.open(info("a"))
		s.Text("one")
		b := s.Prepare(stream.EndMessage(), finished)
		pause(10 * time.Millisecond)
		begin := time.Now()
		s.Stop()
		if took := time.Since(begin); took != 0 {
			t.Errorf("Stop took %v", took)
		}
		b.Publish()
		s.Text("two")
		s.Emit("usage", obj{})
		s.Prepare(finished).Publish()
		s.Reply(run.Waiter{ConnectionID: "a"}, []byte(`{"type":"res","id":"r"}`))
		s.Drain(t.Context())
		if left := s.Close(t.Context()); len(left) != 0 {
			t.Errorf("unsent of a stream that was stopped: %v", left)
		}
		pause(time.Minute)
		if a.posts != 1 || len(a.got) != 0 {
			t.Errorf("%d posts, got %v", a.posts, a.says())
		}
	})
}

func TestC3_NothingIsPostedWhileTheClaimIsNotTrusted(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		trusted := make(chan bool, 1)
		trusted <- false
		i := info("a")
		i.MayPost = func() bool {
			v := <-trusted
			trusted <- v
			return v
		}
		s := w.open(i)
		w.commit(s.Prepare(started))
		s.Text("hello")
		pause(time.Minute)
		if a.posts != 0 {
			t.Fatalf("%d posts", a.posts)
		}
		<-trusted
		trusted <- true
		pause(time.Second)
		a.equal("1 lifecycle", "2 assistant")
		if a.replaced != 0 {
			t.Error("what was never posted needs no replacement")
		}
		s.Close(t.Context())
	})
}

func TestR1_DrainWaitsTwoSecondsThenDropsDeltas(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		fail := true
		w.wire.fault = func(string, int, []byte) (error, bool) {
			if fail {
				return push.ErrThrottled, false
			}
			return nil, true
		}
		s := w.open(info("a"))
		w.commit(s.Prepare(started))
		s.Text("partial")
		begin := time.Now()
		s.Drain(t.Context())
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("Drain took %v", took)
		}
		next := s.NextSeq()
		w.wire.mu.Lock()
		fail = false
		w.wire.mu.Unlock()
		left := s.Close(t.Context())
		a.equal("1 lifecycle")
		if len(left) != 0 || s.NextSeq() != next {
			t.Errorf("unsent %v, next %d after %d", left, s.NextSeq(), next)
		}
	})
}

func TestR1_DrainOfAnIdleStreamTakesNoTime(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		s := w.open(info("a"))
		s.Text("one")
		synctest.Wait()
		s.Text(" two")
		begin := time.Now()
		s.Drain(t.Context())
		s.Close(t.Context())
		if took := time.Since(begin); took != 0 || a.text() != "one two" {
			t.Errorf("took %v, text %q", took, a.text())
		}
	})
}
