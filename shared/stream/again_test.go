package stream_test

import (
	"testing"
	"time"
)

// A dead attempt showed text that no commit knows of: the next one's replaces it, at
// the latest with its first delta, at once where it is taken back.
func TestR2_TextOfADeadAttemptIsReplacedNotDoubled(t *testing.T) {
	t.Parallel()
	for _, takeBack := range []bool{false, true} {
		inWorld(t, nil, func(w *world) {
			t := w.t
			a, c := w.connect("a", tenant), w.connect("c", tenant)
			w.subscribe("c", sessKey)
			dead := w.open(info("a"))
			dead.Text("Hello wor")
			pause(time.Second)
			dead.Stop()
			i := info("a")
			i.Again = true
			s, err := w.svc.Open(t.Context(), i, 100_001)
			w.no(err)
			if takeBack {
				s.Replace("")
				pause(time.Second)
				if a.text() != "" || c.chat != "" {
					t.Errorf("shown after it was taken back: %q and %q", a.text(), c.chat)
				}
			}
			s.Text("Hello world")
			pause(time.Second)
			w.commit(s.Prepare(finished, final("Hello world")))
			s.Close(t.Context())
			if a.text() != "Hello world" || c.chat != "Hello world" {
				t.Errorf("shown: %q and %q", a.text(), c.chat)
			}
		})
	}
}
