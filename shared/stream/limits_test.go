package stream_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"laneway/shared/push"
	"laneway/shared/stream"
)

const frameLimit = push.MaxFrame - 8<<10

// anyText is text of all the kinds that JSON treats differently.
func anyText(r *rand.Rand, n int) string {
	kinds := []string{"a", "word ", "\\", `"`, "\n", "\x01", "é", "\u8a9e", "👩‍👩‍👧‍👦", "\u2028", "<b>", "\\\\\\", `\u0041`, "\t"}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(kinds[r.IntN(len(kinds))])
	}
	return b.String()
}

func TestF30f_TextOverTheLimitGoesInPieces(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, c := w.connect("a", tenant), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		s := w.open(info("a"))
		parts := []string{anyText(r, 60<<10), anyText(r, 200<<10)} // encoded about the double
		all := parts[0] + parts[1]
		for _, part := range parts {
			s.Text(part)
			pause(100 * time.Millisecond)
		}
		late := w.connect("late", tenant)
		w.subscribe("late", sessKey)
		w.no(s.Refresh(t.Context()))
		s.Text("!")
		all += "!"
		pause(100 * time.Millisecond)
		if late.replaced != 1 || c.replaced != 0 {
			t.Errorf("%d and %d replacements", late.replaced, c.replaced)
		}
		w.commit(s.Prepare(stream.EndMessage(), finished, final(all)))
		s.Close(t.Context())
		if a.deltas != all {
			t.Errorf("deltas of %d bytes are not the text of %d bytes", len(a.deltas), len(all))
		}
		if c.chat != all || late.chat != all {
			t.Errorf("chat texts have %d and %d bytes of %d", len(c.chat), len(late.chat), len(all))
		}
		for _, cl := range []*client{a, c, late} {
			if cl.maxFrame > frameLimit {
				t.Errorf("%s got a frame of %d bytes", cl.id, cl.maxFrame)
			}
		}
	})
}

func TestF30f_RetryOfALongTextReplacesItInPieces(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, c := w.connect("a", tenant), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		all := anyText(r, 200<<10)
		s := w.open(info("a"))
		for rest := all; rest != ""; {
			n := min(20<<10, len(rest))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			s.Text(rest[:n])
			rest = rest[n:]
			pause(80 * time.Millisecond)
		}
		w.wire.mu.Lock()
		first := map[string]bool{}
		w.wire.fault = func(id string, _ int, _ []byte) (error, bool) {
			if !first[id] {
				first[id] = true
				return push.ErrFailed, true
			}
			return nil, true
		}
		w.wire.mu.Unlock()
		s.Text("!")
		all += "!"
		pause(10 * time.Second)
		if a.text() != all || c.chat != all || a.replaced != 1 || c.replaced != 1 {
			t.Errorf("texts of %d and %d bytes, want %d; replaced %d and %d", len(a.text()), len(c.chat), len(all), a.replaced, c.replaced)
		}
		if a.maxFrame > frameLimit || c.maxFrame > frameLimit {
			t.Errorf("frames of %d and %d bytes", a.maxFrame, c.maxFrame)
		}
		s.Close(t.Context())
	})
}

func TestF30f_LargeEventsAreMadeSmallerByRule(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	results := map[string]any{
		"long text":        obj{"content": []obj{{"type": "text", "text": anyText(r, 300<<10)}}, "n": 12345678901234567},
		"control bytes":    obj{"content": []obj{{"type": "text", "text": strings.Repeat("\x01", 60<<10)}}},
		"many long texts":  obj{"a": anyText(r, 90<<10), "b": anyText(r, 90<<10), "c": "short"},
		"nothing but keys": manyMembers(20_000),
		"many elements":    strings.Split(strings.Repeat("x ", 100_000), " "),
	}
	for name, result := range results {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, nil, func(w *world) {
				t := w.t
				a := w.connect("a", tenant, stream.CapTools)
				s := w.open(info("a"))
				ev := stream.Agent("tool", obj{"phase": "result", "toolCallId": "c1", "isError": false, "result": result})
				w.commit(s.Prepare(ev))
				s.Close(t.Context())
				if len(a.got) != 1 || a.maxFrame > frameLimit {
					t.Fatalf("%d frames, the largest of %d bytes", len(a.got), a.maxFrame)
				}
				if strings.Contains(name, "text") && a.maxFrame < frameLimit-2000 {
					t.Errorf("no more than %d bytes are left", a.maxFrame)
				}
				for _, raw := range []json.RawMessage{a.got[0].Payload.Data, w.log(0)[0].Data} {
					var d struct {
						Phase, ToolCallID string
						IsError           *bool
					}
					if err := json.Unmarshal(raw, &d); err != nil || d.Phase != "result" || d.ToolCallID != "c1" || d.IsError == nil {
						t.Errorf("what is left does not say what it is about: %.200s", raw)
					}
					if !strings.Contains(string(raw), "truncated") {
						t.Errorf("does not say that it was cut: %.200s", raw)
					}
					if !utf8.Valid(raw) || strings.Contains(string(raw), `\ufffd`) {
						t.Error("cut inside a character")
					}
				}
			})
		})
	}
}

func manyMembers(n int) obj {
	o := obj{}
	for i := range n {
		o[fmt.Sprintf("member-%d", i)] = i
	}
	return o
}

func TestS4_RowOfManyLargeEventsFitsTheStore(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant, stream.CapTools)
		s := w.open(info("a"))
		var evs []stream.Event
		large := anyText(r, 60<<10)
		for i := range 20 {
			evs = append(evs, stream.Agent("tool", obj{"phase": "result", "toolCallId": strconv.Itoa(i), "result": large}))
		}
		b := s.Prepare(evs...)
		if n := len(b.Op().Item.Bytes("ev")); n > 300<<10 {
			t.Errorf("row of %d bytes", n)
		}
		w.commit(b)
		s.Close(t.Context())
		if len(a.got) != 20 || len(w.log(0)) != 20 {
			t.Errorf("%d frames, %d in the log", len(a.got), len(w.log(0)))
		}
	})
}

func TestS4_LargerFramesWhereTheTransportTakesThem(t *testing.T) {
	t.Parallel()
	inWorld(t, func(c *stream.Config) { c.MaxFrame = 1 << 20 }, func(w *world) {
		t := w.t
		a := w.connect("a", tenant, stream.CapTools)
		s := w.open(info("a"))
		text := strings.Repeat("x", 500<<10)
		w.commit(s.Prepare(stream.Agent("tool", obj{"result": text})))
		s.Close(t.Context())
		if a.maxFrame < 500<<10 {
			t.Errorf("a frame of %d bytes", a.maxFrame)
		}
		if n := len(w.log(0)[0].Data); n > frameLimit {
			t.Errorf("%d bytes in the log", n)
		}
	})
}

// F30g: one connection sees every number, whatever its latency: deltas gather
// before they are numbered. Of several, the fastest sets the pace, and a slower one
// misses only numbers of deltas that a later delta tells as well.
func TestF30g_NumbersWithoutGapOrInversionAtRandomLatency(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	for _, several := range []bool{false, true} {
		inWorld(t, func(c *stream.Config) { c.TailWindow = time.Hour }, func(w *world) {
			t := w.t
			a, b := w.connect("a", tenant, stream.CapTools), w.connect("b", tenant, stream.CapTools)
			if several {
				w.subscribe("b", sessKey)
			}
			w.wire.latency = func(string) time.Duration {
				return time.Duration(1+r.IntN(300)) * time.Millisecond
			}
			s := w.open(info("a"))
			said := ""
			must := []int64{}
			for i := range 400 {
				switch r.IntN(8) {
				case 0:
					batch := s.Prepare(toolStart(strconv.Itoa(i)))
					must = append(must, batch.First())
					w.commit(batch)
				case 1:
					s.Emit("usage", obj{"outputTokens": i})
				case 2:
					s.Thinking("hm ")
				default:
					said += fmt.Sprintf("%d ", i)
					s.Text(fmt.Sprintf("%d ", i))
				}
				pause(time.Duration(r.IntN(60)) * time.Millisecond)
			}
			w.commit(s.Prepare(stream.EndMessage(), finished, final(said)))
			s.Close(t.Context())
			if a.text() != said || several && b.chat != said {
				t.Error("what was sent is not what was said")
			}
			for _, cl := range []*client{a, b} {
				seqs := cl.seqs()
				if !slices.IsSorted(seqs) { // a client checks it too, event by event
					t.Errorf("%s: numbers %v", cl.id, seqs)
				}
				for _, n := range must {
					if _, found := slices.BinarySearch(seqs, n); !found && len(seqs) > 0 {
						t.Errorf("%s: event %d is missing", cl.id, n)
					}
				}
			}
			for i, n := range a.seqs() {
				if !several && n != int64(i+1) {
					t.Fatalf("number %d at place %d", n, i+1)
				}
			}
		})
	}
}

// TestS3_WhateverFails drives a run through random faults on three connections, and
// wants each to show the same in the end, in order, with everything that must
// arrive.
func TestS3_WhateverFails(t *testing.T) {
	t.Parallel()
	for range 10 {
		r := seeded(t)
		inWorld(t, func(c *stream.Config) { c.TailWindow = time.Hour }, func(w *world) {
			t := w.t
			a, b := w.connect("a", tenant, stream.CapTools), w.connect("b", tenant, stream.CapTools)
			c := w.connect("c", tenant)
			w.subscribe("b", sessKey)
			w.no(w.conns.SubscribeAll(t.Context(), "c"))
			w.wire.latency = func(string) time.Duration { return time.Duration(r.IntN(200)) * time.Millisecond }
			w.wire.fault = func(string, int, []byte) (error, bool) {
				switch r.IntN(10) {
				case 0:
					return push.ErrThrottled, false
				case 1:
					return push.ErrFailed, r.IntN(2) == 0
				case 2:
					return errHang, true
				}
				return nil, true
			}
			s := w.open(info("a"))
			var said []string
			tools := 0
			for range 6 {
				s.BeginMessage()
				text := ""
				for range r.IntN(60) {
					switch r.IntN(12) {
					case 0:
						text = anyText(r, r.IntN(30))
						s.Replace(text)
					case 1:
						s.Thinking(anyText(r, 10))
					case 2:
						s.Emit("item", obj{"n": 1})
					case 3:
						s.Prepare(toolStart("dropped")).Drop()
					default:
						part := anyText(r, r.IntN(200))
						text += part
						s.Text(part)
					}
					pause(time.Duration(r.IntN(50)) * time.Millisecond)
				}
				if text != "" {
					said = append(said, text)
				}
				w.commit(s.Prepare(stream.EndMessage(), toolStart(strconv.Itoa(tools))))
				tools++
			}
			w.commit(s.Prepare(finished, final("x")))
			if left := s.Close(t.Context()); len(left) != 0 {
				t.Fatalf("%d frames unsent", len(left))
			}
			want := strings.Join(said, "\n\n")
			for _, cl := range []*client{a, b, c} {
				if cl.text() != want {
					t.Errorf("%s shows\n%q, want\n%q", cl.id, cl.text(), want)
				}
				seen := map[string]bool{}
				last := -1
				for _, f := range cl.got {
					if f.Payload.Stream == "tool" {
						var d struct{ ToolCallID string }
						_ = json.Unmarshal(f.Payload.Data, &d)
						var n int
						if _, err := fmt.Sscan(d.ToolCallID, &n); err != nil || n < last {
							t.Errorf("%s: tool %q after %d", cl.id, d.ToolCallID, last)
						}
						last = n
						seen[d.ToolCallID] = true
					}
					seen[f.Event+f.Payload.State] = true
				}
				if !seen["chatfinal"] || cl != c && len(seen) < tools {
					t.Errorf("%s did not get all: %v", cl.id, cl.says())
				}
			}
			if b.chat != want || c.chat != want {
				t.Errorf("chat texts\n%q and\n%q, want\n%q", b.chat, c.chat, want)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestBudget_FastLongText is the budget of 5,000 deltas in 80 ms: 100 KB of text.
func TestBudget_FastLongText(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"agent", "chat"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			inWorld(t, nil, func(w *world) {
				t := w.t
				a := w.connect("a", tenant)
				i := info("a")
				i.OriginUsesChat = form == "chat"
				s := w.open(i)
				text := strings.Repeat("twenty bytes of text", 5000)
				for n := range 5000 {
					s.Text(text[n*20 : n*20+20])
					if n%5 == 4 {
						pause(80 * time.Microsecond)
					}
				}
				said := time.Now()
				w.commit(s.Prepare(stream.EndMessage(), finished, final(text)))
				synctest.Wait()
				if late := a.got[len(a.got)-1].at.Sub(said); late > 100*time.Millisecond {
					t.Errorf("last event %v late", late)
				}
				s.Close(t.Context())
				if a.text() != text || form == "agent" && a.deltas != text || form == "chat" && a.chat != text {
					t.Error("text was lost")
				}
				t.Logf("%d events, %d bytes", len(a.got), a.bytes)
				if a.bytes > 500_000 {
					t.Errorf("%d bytes of events for %d bytes of text", a.bytes, len(text))
				}
			})
		})
	}
}
