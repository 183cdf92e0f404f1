package stream_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/push"
	"laneway/shared/stream"
)

func TestS1_TextComesBeforeTheToolThatItLedTo(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		a := w.connect("a", tenant, stream.CapTools)
		s := w.open(info("a"))
		s.Text("Let me ")
		synctest.Wait()
		s.Text("look") // held back by the pace
		w.commit(s.Prepare(toolStart("t1")))
		s.Text(" twice")
		s.Emit("item", obj{"kind": "tool"})
		s.Text(", at least")
		s.Emit("usage", obj{"outputTokens": 1}) // needs no text before it
		pause(time.Second)
		a.equal("1 assistant", "2 assistant", "3 tool", "4 assistant", "5 item", "6 usage", "7 assistant")
		s.Close(w.t.Context())
	})
}

func TestS2_TextOfADroppedEndIsShownWithoutAnother(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		a := w.connect("a", tenant)
		s := w.open(info("a"))
		s.Text("hel")
		synctest.Wait()
		s.Text("lo")
		s.Prepare(stream.EndMessage(), finished).Drop()
		pause(time.Second)
		if a.text() != "hello" {
			w.t.Errorf("text %q", a.text())
		}
		s.Close(w.t.Context())
	})
}

func TestS3_WaitingDeltasBecomeOneThatReplaces(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		a, c := w.connect("a", tenant), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		w.wire.fault = func(id string, n int, _ []byte) (error, bool) {
			if id == "c" && n >= 2 && n <= 6 { // for a second or two
				return push.ErrThrottled, false
			}
			return nil, true
		}
		s := w.open(info("a"))
		said := strings.Repeat("some words ", 40)
		for _, word := range strings.SplitAfter(said, "s ") {
			s.Text(word)
			pause(80 * time.Millisecond)
		}
		// What it missed came in one frame, and the next frames go on from there.
		seqs := c.seqs()
		if len(seqs) < 3 || seqs[1]-seqs[0] < 4 || seqs[2] != seqs[1]+1 || c.replaced != 1 {
			w.t.Errorf("got %v, replaced %d times", seqs, c.replaced)
		}
		pause(time.Second)
		if a.text() != said || c.chat != said {
			w.t.Errorf("%q and %q", a.text(), c.chat)
		}
		s.Close(w.t.Context())
	})
}

// The whole text is in every delta of a short reply, and costs no more than the
// text some times over in a long one.
func TestS4_WholeTextIsPaidFromACredit(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"agent", "chat"} {
		inWorld(t, nil, func(w *world) {
			a := w.connect("a", tenant)
			i := info("a")
			i.OriginUsesChat = form == "chat"
			s := w.open(i)
			whole := func() int {
				n := 0
				for _, f := range a.got {
					if f.Payload.Message != nil || strings.Contains(string(f.Payload.Data), `"text":`) {
						n++
					}
				}
				return n
			}
			text := strings.Repeat("twenty bytes of text", 5000)
			for n := range 5000 { // for 10 s
				s.Text(text[n*20 : n*20+20])
				pause(2 * time.Millisecond)
				if n == 100 && whole() != len(a.got) {
					w.t.Errorf("%s: the whole text is in %d of %d deltas of a short reply", form, whole(), len(a.got))
				}
			}
			pause(time.Second)
			if n := len(a.got); n < 100 || n > 140 || whole() == n || whole() < 20 {
				w.t.Errorf("%s: the whole text is in %d of %d deltas", form, whole(), n)
			}
			if a.bytes > 600_000 {
				w.t.Errorf("%s: %d bytes", form, a.bytes)
			}
			s.Close(w.t.Context())
		})
	}
}
