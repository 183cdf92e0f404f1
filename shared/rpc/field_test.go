package rpc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"laneway/shared/protocol"
)

// users is the texts of the user rows of a session, oldest first.
func (c *client) users() []string {
	c.t.Helper()
	var h protocol.History
	c.ok("chat.history", obj{"sessionKey": "s", "limit": 500}, &h)
	var out []string
	for _, row := range h.Messages {
		if row.Role == "user" {
			out = append(out, string(row.Content))
		}
	}
	return out
}

// once checks that texts are in a conversation once each, in this order.
func once(t *testing.T, rows []string, texts ...string) {
	t.Helper()
	at := -1
	for _, text := range texts {
		n, place := 0, -1
		for i, row := range rows {
			if k := strings.Count(row, text); k > 0 {
				n, place = n+k, i*10_000+strings.Index(row, text)
			}
		}
		if n != 1 || place <= at {
			t.Errorf("%q is there %d times, at %d behind %d: %q", text, n, place, at, rows)
		}
		at = place
	}
}

func TestF3_FiveMessagesInTheMiddleOfARunFromTwoConnections(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.say("hold 1", "r", "")
		w.model.waitFor(t, "hold 1")
		var texts []string
		for i := range 5 {
			x, text := []*client{c, l}[i%2], fmt.Sprintf("message no %d.", i)
			if d := x.say(text, fmt.Sprint("m", i), ""); d.Kind != "steered" || d.RunID != "r" {
				t.Errorf("%d: %+v", i, d)
			}
			texts = append(texts, text)
		}
		w.model.let("hold 1")
		for i := range 5 {
			x := []*client{c, l}[i%2]
			if got := x.waited(fmt.Sprint("m", i)); got.Status != "ok" {
				t.Errorf("%d: %+v", i, got)
			}
		}
		if got := c.waited("r"); got.Status != "ok" {
			t.Errorf("the run was ended: %+v", got)
		}
		w.idle(key)
		once(t, c.users(), texts...)
	})
}

func TestF11_ASteerAtTheEndOfItsRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		var texts []string
		for i := range 8 { // sometimes it is taken, sometimes it comes too late
			first, late := fmt.Sprintf("hold %d.", i), fmt.Sprintf("late %d.", i)
			c.say(first, fmt.Sprint("a", i), "")
			w.model.waitFor(t, first)
			w.model.let(first)
			c.say(late, fmt.Sprint("b", i), "steer")
			for _, id := range []string{fmt.Sprint("a", i), fmt.Sprint("b", i)} {
				if got := c.waited(id); got.Status != "ok" {
					t.Errorf("%s: %+v", id, got)
				}
			}
			texts = append(texts, first, late)
		}
		w.idle(key)
		once(t, c.users(), texts...)
	})
}

func TestF12_AQueuedMessageRunsAlthoughItsSenderHasGone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		gone := w.user()
		gone.say("second", "b", "followup")
		c.say("third", "c", "followup")
		gone.gone()
		w.model.let("hold 1")
		l.find("the end of c", 1, chatEvent("final", "c"))
		w.idle(key)
		var got protocol.Wait
		c.ok("agent.wait", obj{"runId": "b", "timeoutMs": 15000}, &got)
		if got.Status != "ok" {
			t.Errorf("%+v", got)
		}
		once(t, c.users(), "second", "third")
	})
}

func TestF13_AQueueThatOverflowsTellsEverybody(t *testing.T) {
	t.Parallel()
	fill := func(t *testing.T, w *world, c *client, drop, mode string) (refused []*protocol.Error) {
		t.Helper()
		c.ok("sessions.patch", obj{"key": "s", "queueCap": 20, "queueDrop": drop, "queueDebounceMs": 0}, nil)
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		for i := range 23 {
			f := c.call("chat.send", obj{"sessionKey": "s", "message": fmt.Sprintf("no %d.", i), "idempotencyKey": fmt.Sprint("m", i), "queueMode": mode})
			if !f.OK {
				refused = append(refused, f.Err)
			}
		}
		return refused
	}
	for _, drop := range []string{"new", "old", "summarize, collect", "summarize, followup"} {
		policy, mode, _ := strings.Cut(drop, ", ")
		if mode == "" {
			mode = "followup"
		}
		t.Run(drop, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, w *world, c, _ *client) {
				t.Helper()
				refused := fill(t, w, c, policy, mode)
				if policy == "new" {
					if len(refused) != 3 || refused[0].Code != protocol.CodeInvalidRequest || refused[0].Details["reason"] != "queue-cap-new" || !strings.Contains(refused[0].Message, "its cap is 20") {
						t.Fatalf("%d refused: %+v", len(refused), refused)
					}
				} else if len(refused) != 0 {
					t.Fatalf("refused: %+v", refused)
				}
				w.model.let("hold 1")
				for i := range 23 {
					switch {
					case policy == "new" && i >= 20:
						continue
					case policy == "old" && i < 3:
						got := c.waited(fmt.Sprint("m", i))
						if got.Status != "error" || got.StopReason != "queue_overflow" || got.Disposition.Kind != "dropped" {
							t.Errorf("%d: %+v", i, got)
						}
					default:
						got := c.waited(fmt.Sprint("m", i))
						if got.Status != "ok" {
							t.Errorf("%d: %+v", i, got)
						}
						if summed := policy == "summarize" && i < 3; summed != (got.Disposition.Kind == "summarised") {
							t.Errorf("%d: %+v", i, got.Disposition)
						}
					}
				}
				w.idle(key)
				rows := c.users()
				var want []string
				for i := range 23 {
					gone := policy == "new" && i >= 20 || policy == "old" && i < 3
					if text := fmt.Sprintf("no %d.", i); !gone {
						want = append(want, text)
					} else if strings.Contains(strings.Join(rows, "\n"), text) {
						t.Errorf("%q reached the conversation", text)
					}
				}
				once(t, rows, want...)
				switch drop {
				case "summarize, collect": // the summary begins the one turn
					if len(rows) != 2 || !strings.Contains(rows[1], "Dropped 3 messages") {
						t.Errorf("%d user rows: %q", len(rows), rows)
					}
				case "summarize, followup": // the summary is a turn of its own, first
					if len(rows) != 22 || !strings.Contains(rows[1], "Dropped 3 messages") {
						t.Errorf("%d user rows: %q", len(rows), rows)
					}
				}
			})
		})
	}
}

func TestF14_AnInterruptBringsNoEarlierAnswerBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.says("s", "x", "the answer X")
		w.idle(key)
		c.say("hush", "a", "")
		w.model.waitFor(t, "hush")
		c.say("the second", "b", "interrupt")
		l.find("A is aborted", 1, chatEvent("aborted", "a"))
		l.find("B is answered", 1, chatEvent("final", "b"))
		w.idle(key)
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, f := range l.frames {
			p := string(f.Payload)
			if strings.Contains(p, `"runId":"a"`) && strings.Contains(p, `"text":"`) {
				t.Errorf("text of a run that said nothing: %s", p)
			}
			if strings.Contains(p, `"runId":"b"`) && strings.Contains(p, "answer X") {
				t.Errorf("the earlier answer again: %s", p)
			}
		}
	})
}

func TestF15_AStopOfTheSession(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.say("hold 1", "r", "")
		w.model.waitFor(t, "hold 1")
		for _, id := range []string{"q1", "q2", "q3"} {
			c.say("wait "+id, id, "followup")
		}
		// A run id stops that one only.
		var ab protocol.ChatAborted
		c.ok("chat.abort", obj{"sessionKey": "s", "runId": "q2"}, &ab)
		if !slices.Equal(ab.RunIDs, []string{"q2"}) {
			t.Errorf("%+v", ab)
		}
		c.ok("chat.abort", obj{"sessionKey": "s"}, &ab)
		if !slices.Equal(ab.RunIDs, []string{"q1", "q3", "r"}) {
			t.Errorf("stopped %q, want what waits first", ab.RunIDs)
		}
		for _, id := range []string{"r", "q1", "q2", "q3"} {
			got := c.waited(id)
			if got.Status != "error" || got.StopReason != "rpc" {
				t.Errorf("%s: %+v", id, got)
			}
		}
		// The lane is free at once.
		c.say("go on", "n", "")
		l.find("the next", 1, chatEvent("final", "n"))
		w.idle(key)
		for _, id := range []string{"q1", "q2", "q3"} {
			if w.model.count("wait "+id) != 0 {
				t.Errorf("%s ran", id)
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		over := false
		for i := range l.frames {
			f := &l.frames[i]
			if chatEvent("aborted", "r")(f) {
				over = true
			} else if over && f.Event != protocol.EventDisposition && strings.Contains(string(f.Payload), `"runId":"r"`) {
				t.Errorf("an event after the end: %s", f.Payload)
			}
		}
		if !over {
			t.Error("the end was not told")
		}
	})
}
