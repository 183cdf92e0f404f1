package stream_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/run"
	"laneway/shared/stream"
)

// turn is a run with a tool in it.
func turn(w *world, s *stream.Stream) {
	w.commit(s.Prepare(started))
	s.Emit("lifecycle", obj{"phase": "model", "provider": "demo", "model": "m"})
	s.BeginMessage()
	s.Thinking("hmm")
	s.Text("Let me")
	s.Text(" look.")
	w.commit(s.Prepare(stream.EndMessage(), toolStart("c1")))
	w.commit(s.Prepare(stream.Agent("tool", obj{"phase": "result", "toolCallId": "c1"})))
	s.BeginMessage()
	s.Text("It ")
	s.Text("is ")
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the bubble's clock
	s.Text("so.")
	w.commit(s.Prepare(stream.EndMessage(), finished, final("Let me look.\n\nIt is so.")))
}

func TestS1_OneSequenceOverAllStreams(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant, stream.CapTools)
		s := w.open(info("a"))
		turn(w, s)
		if left := s.Close(t.Context()); len(left) != 0 {
			t.Fatalf("unsent: %v", left)
		}
		for i, n := range a.seqs() {
			if n != int64(i+1) {
				t.Fatalf("numbers %v: want 1 to n without a gap", a.seqs())
			}
		}
		if got := a.text(); got != "Let me look.\n\nIt is so." {
			t.Errorf("text %q", got)
		}
		if a.deltas != "Let me look.It is so." {
			t.Errorf("deltas %q", a.deltas)
		}
		if s.NextSeq() != a.seq+1 {
			t.Errorf("next number %d after %d", s.NextSeq(), a.seq)
		}
		ids := a.order
		if len(ids) != 2 || !strings.HasSuffix(ids[0], ":1") || !strings.HasSuffix(ids[1], ":2") {
			t.Errorf("item ids %v", ids)
		}
	})
}

func TestS1_BothFormsOfADeltaShareItsNumber(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, c := w.connect("a", tenant, stream.CapTools), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		s := w.open(info("a"))
		s.Text("one ")
		synctest.Wait()
		s.Text("two")
		w.commit(s.Prepare(stream.EndMessage(), finished, final("one two")))
		s.Close(t.Context())
		a.equal("1 assistant", "2 assistant", "3 lifecycle", "4 chat:final")
		c.equal("1 chat:delta", "2 chat:delta", "2 assistant", "3 lifecycle", "4 chat:final")
		if c.chat != "one two" || c.message != "one two" || c.text() != "one two" {
			t.Errorf("chat %q, message %q, assistant %q", c.chat, c.message, c.text())
		}
	})
}

func TestS1_NumbersItemsAndTextGoOnOverAttempts(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, c := w.connect("a", tenant, stream.CapTools), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		s := w.open(info("a"))
		s.Text("first")
		w.commit(s.Prepare(stream.EndMessage(), toolStart("t")))
		s.BeginMessage()
		s.Text("cut o") // never committed: the attempt dies here
		synctest.Wait()
		next := s.NextSeq()
		s.Stop()

		i := info("a")
		i.Messages, i.Text = 1, "first"
		s, err := w.svc.Open(t.Context(), i, next)
		w.no(err)
		synctest.Wait()
		s.Text("second")
		w.commit(s.Prepare(stream.EndMessage(), finished, final("first\n\nsecond")))
		s.Close(t.Context())
		for _, cl := range []*client{a, c} {
			if cl.text() != "first\n\nsecond" {
				t.Errorf("%s shows %q", cl.id, cl.text())
			}
			if !slices.IsSorted(cl.seqs()) {
				t.Errorf("%s: numbers %v", cl.id, cl.seqs())
			}
		}
		if c.chat != "first\n\nsecond" {
			t.Errorf("chat text %q", c.chat)
		}
	})
}

func TestS2_NothingIsPushedBeforeItsCommit(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant, stream.CapTools)
		s := w.open(info("a"))
		s.Text("hello")
		synctest.Wait()
		b := s.Prepare(stream.EndMessage(), toolStart("t"))
		s.Emit("usage", obj{"outputTokens": 3})
		s.BeginMessage()
		s.Text("later")
		s.Reply(run.Waiter{ConnectionID: "a"}, []byte(`{"type":"res","id":"r"}`))
		time.Sleep(10 * time.Second) //nolint:forbidigo // the bubble's clock
		a.equal("1 assistant")
		if n := len(w.log(0)); n != 0 {
			t.Fatalf("%d events in the log before the commit", n)
		}
		w.commit(b)
		synctest.Wait()
		a.equal("1 assistant", "2 assistant", "3 tool", "4 usage", "res r", "5 assistant")
		s.Close(t.Context())
	})
}

func TestS2_DroppedEventsLeaveNoTraceAndLoseNoText(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, c := w.connect("a", tenant, stream.CapTools), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		s := w.open(info("a"))
		s.Text("hel")
		synctest.Wait()
		s.Text("lo")
		b := s.Prepare(stream.EndMessage(), finished, final("hello"))
		if b.First() != 2 || b.Next() != 5 {
			t.Fatalf("batch has numbers %d to %d", b.First(), b.Next())
		}
		b.Drop()
		b.Publish() // too late: nothing happens
		s.Text(" again")
		w.commit(s.Prepare(stream.EndMessage(), finished, final("hello again")))
		s.Close(t.Context())
		if a.text() != "hello again" || a.deltas != "hello again" || c.chat != "hello again" {
			t.Errorf("texts %q, %q, %q", a.text(), a.deltas, c.chat)
		}
		if got := w.log(0); len(got) != 3 || got[0].Seq <= 4 {
			t.Errorf("log %v", got)
		}
	})
}

func TestS2_TheLogHasWhatWasCommitted(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant, stream.CapTools)
		s := w.open(info("a"))
		turn(w, s)
		s.Close(t.Context())
		var must []int64
		for _, f := range a.got {
			p := f.Payload
			if p.Stream == "tool" || f.Event == "chat" || p.Stream == "lifecycle" && !strings.Contains(string(p.Data), `"model"`) {
				must = append(must, p.Seq)
			}
		}
		all := w.log(0)
		var logged []int64
		for _, l := range all {
			if l.Stream != "assistant" {
				logged = append(logged, l.Seq)
			}
		}
		if !slices.Equal(logged, must) {
			t.Errorf("logged %v, pushed %v", logged, must)
		}
		for after := range a.seq + 1 {
			want := 0
			for _, l := range all {
				if l.Seq > after {
					want++
				}
			}
			if got := w.log(after); len(got) != want {
				t.Errorf("%d events after %d, want %d", len(got), after, want)
			}
		}
	})
}

func TestS2_LoggedEventsArePushedAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		w.connect("a", tenant, stream.CapTools)
		s := w.open(info("a"))
		turn(w, s)
		s.Close(t.Context())
		all := w.log(0)

		b, c := w.connect("b", tenant, stream.CapTools), w.connect("c", tenant)
		w.subscribe("b", sessKey)
		w.subscribe("c", sessKey)
		w.no(w.svc.PushLogged(t.Context(), info("b"), all[len(all)-3].Seq))
		c.equal("9 assistant", "10 lifecycle", "11 chat:final")
		if c.text() != "It is so." {
			t.Errorf("text %q", c.text())
		}

		d := w.connect("d", tenant)
		last, err := w.svc.Replay(t.Context(), info(""), subscriber("d"), 0)
		w.no(err)
		if last != 11 || d.text() != "Let me look.\n\nIt is so." || slices.Contains(d.says(), "5 tool") {
			t.Errorf("replayed to %d: %v %q", last, d.says(), d.text())
		}
		if len(b.got) == 0 {
			t.Error("nothing at b")
		}
	})
}
