package loop_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
)

// story is a session with a run that calls tools, somebody who waits for it, and a run
// behind it.
type story struct {
	*world
	unsafe, read *fakeTool
	c, waiter    *client
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{unsafe: newTool("unsafe", tool.Unsafe), read: newTool("read", tool.ReadOnly)}
	s.world = newWorld(t, s.unsafe, s.read)
	s.model.by(func(r model.Request) answerFunc {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case last.Role == model.ToolResult:
			return say("the", " end")
		case last.Content[0].Text == "next":
			return say("next answer")
		}
		return callTools(block("u", "unsafe"), block("r", "read"))
	})
	s.c, s.waiter = s.connect("tool-events"), s.connect()
	s.accept(s.c, "r1", "hi", func(st *run.Status) { st.Input.SessionID = "sess" })
	s.accept(s.c, "r2", "next")
	w := run.Waiter{ConnectionID: s.waiter.id, RequestID: "wait-r1"}
	frame, err := s.gw.core.Notify.Wait(t.Context(), run.RefOf(session.DefaultTenant, "r1"), "r1", w, 3*time.Minute)
	must(t, err)
	if frame != nil {
		t.Fatalf("answered at once: %s", frame)
	}
	return s
}

// first delivers r1's wake-up to a process, and gives the rest of the queue back.
func (s *story) first(p *process) error {
	s.t.Helper()
	l := s.box.take()
	if len(l) != 2 {
		s.t.Fatalf("%d letters", len(l))
	}
	s.box.back(l[1])
	err := p.deliver(l[0])
	if err != nil {
		s.box.back(l[0])
	}
	return err
}

// check says what must hold however the story went. crashed: then frames may have come
// twice, but the same.
func (s *story) check(crashed bool) {
	t := s.t
	t.Helper()
	if s.unsafe.count() > 1 {
		t.Errorf("the unsafe call was made %d times", s.unsafe.count())
	}
	var roles []string
	for _, e := range s.rows() {
		roles = append(roles, string(e.Role)+" "+e.ToolCallID)
	}
	if want := []string{"user ", "assistant ", "toolResult u", "toolResult r", "assistant ", "user ", "assistant "}; !slices.Equal(roles, want) {
		t.Errorf("rows %q", roles)
	}
	for id, want := range map[string]string{"r1": "the end", "r2": "next answer"} {
		st := s.status(id)
		if st.Outcome == nil || st.Outcome.Kind != run.OK || st.Outcome.Text != want {
			t.Errorf("%s ended %+v", id, st.Outcome)
		}
		s.same(s.c, id, "final", crashed, func(f map[string]any) bool { return f["type"] == "res" && f["id"] == "req-"+id })
		s.same(s.c, id, "end", crashed, func(f map[string]any) bool {
			return event("agent", "lifecycle", "end")(f) && str(f, "payload.runId") == id
		})
		s.same(s.c, id, "chat final", crashed, func(f map[string]any) bool {
			return event("chat", "", "final")(f) && str(f, "payload.runId") == id
		})
	}
	s.same(s.waiter, "r1", "wait", crashed, func(f map[string]any) bool { return f["id"] == "wait-r1" })
	if got := s.shown("r1"); got != "the end" {
		t.Errorf("the client shows %q", got)
	}
	s.numbers(crashed)
	for _, r := range []string{"r1", "r2"} {
		for _, it := range s.dump(r) {
			if it.Key.Table == table.Runs && it.Attrs.Int(table.TTLAttr) == 0 {
				t.Errorf("%s %s never expires", it.Key.PK, it.Key.SK)
			}
			if it.Key.SK == "META" && it.Attrs.Int(table.TTLAttr) != 0 {
				t.Error("META expires")
			}
		}
	}
	if m := s.meta(); m.Busy || m.Owner != "" || m.Active != "" || len(m.Pending)+len(m.Unsettled) != 0 {
		t.Errorf("session %+v", m)
	}
}

// same checks that a frame came, once unless there was a crash, and always the same.
func (s *story) same(c *client, id, what string, crashed bool, want func(map[string]any) bool) {
	s.t.Helper()
	got := c.all(want)
	if len(got) == 0 || len(got) > 1 && !crashed {
		s.t.Errorf("%s of %s came %d times", what, id, len(got))
	}
	for _, f := range got[min(1, len(got)):] {
		a, _ := json.Marshal(got[0])
		b, _ := json.Marshal(f)
		if string(a) != string(b) {
			s.t.Errorf("%s of %s differs:\n%s\n%s", what, id, a, b)
		}
	}
}

// shown is the text that a client has of a run's last message, by its agent events.
func (s *story) shown(runID string) string {
	text, item := "", ""
	for _, f := range s.c.all(func(f map[string]any) bool {
		return event("agent", "assistant", "")(f) && str(f, "payload.runId") == runID
	}) {
		data, _ := f["payload"].(map[string]any)["data"].(map[string]any)
		if str(f, "payload.data.itemId") != item {
			text, item = "", str(f, "payload.data.itemId")
		}
		if data["replace"] == true {
			text = str(f, "payload.data.text")
		} else {
			text += str(f, "payload.data.delta")
		}
	}
	return text
}

// numbers checks that each number of a run is of one event, and that numbers grow;
// after a crash the last events may come again.
func (s *story) numbers(crashed bool) {
	s.t.Helper()
	seen := map[string]string{}
	last := map[string]float64{}
	for _, f := range s.c.all(func(f map[string]any) bool {
		return f["type"] == "event" && str(f, "payload.runId") != "" && f["event"] != "run.disposition"
	}) {
		p, _ := f["payload"].(map[string]any)
		seq, _ := p["seq"].(float64)
		id := str(f, "payload.runId")
		if str(f, "payload.stream") == "assistant" {
			delete(p, "data") // the end of a message comes from the log in another form
		}
		k := fmt.Sprint(id, " ", seq, " ", f["event"])
		b, _ := json.Marshal(f)
		if old, ok := seen[k]; ok && old != string(b) {
			s.t.Errorf("number %s is of two events:\n%s\n%s", k, old, b)
		}
		if _, again := seen[k]; !again && seq < last[id] {
			s.t.Errorf("number %v of %s comes after %v", seq, id, last[id])
		} else if again && !crashed {
			s.t.Errorf("number %s came twice", k)
		}
		seen[k], last[id] = string(b), max(last[id], seq)
	}
}

// TestFault_AtEveryCallOfTheStore: the runner's n-th call of the store meets a fault, or
// the process dies before or behind it, for every n; with its wake-up coming again, and
// lost.
func TestFault_AtEveryCallOfTheStore(t *testing.T) {
	t.Parallel()
	names := map[faulty.Fault]string{
		faulty.Conflict: "conflict", faulty.Throttle: "throttle", faulty.LostRequest: "lost request", faulty.LostAnswer: "lost answer",
		faulty.DieBefore: "death before", faulty.DieAfter: "death behind",
	}
	for fault, name := range names {
		dies := fault == faulty.DieBefore || fault == faulty.DieAfter
		for _, lose := range []bool{false, true} {
			if lose && !dies {
				continue
			}
			t.Run(fmt.Sprintf("%s, wake-up lost: %v", name, lose), func(t *testing.T) {
				t.Parallel()
				for n, hit := 0, true; hit && n < 200; n++ {
					t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
						s := newStory(t)
						var met, over atomic.Bool
						p := s.process(func(c faulty.Call) faulty.Fault {
							if c.N == n && !over.Load() {
								met.Store(true)
								return fault
							}
							return faulty.None
						})
						err := s.first(p)
						over.Store(true)
						hit = met.Load()
						if dies && hit && err == nil && s.status("r1").Outcome == nil {
							t.Error("acknowledged by a dead process")
						}
						if dies && hit {
							if lose {
								s.box.lose()
								// The timer of a wait is not the runner's to lose.
								w := run.Waiter{ConnectionID: s.waiter.id, RequestID: "wait-r1"}
								_, err := s.gw.core.Notify.Wait(t.Context(), run.RefOf(session.DefaultTenant, "r1"), "r1", w, 3*time.Minute)
								must(t, err)
							}
							s.clock.Advance(lost)
							p = s.process(nil)
						}
						p.serve()
						s.check(dies)
					})
				}
			})
		}
	}
}

// TestF4_FrozenAtEveryWrite: the runner is frozen inside its n-th write, another one
// takes over and finishes; thawed, it changes nothing and tells nobody anything.
func TestF4_FrozenAtEveryWrite(t *testing.T) {
	t.Parallel()
	for n, hit := 0, true; hit && n < 100; n++ {
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			s := newStory(t)
			reached, thaw := make(chan struct{}), make(chan struct{})
			var p *process
			p = s.process(onWrite(func(i int, _ []table.Op) faulty.Fault {
				if i == n {
					p.freeze(true)
					close(reached)
					<-thaw
				}
				return faulty.None
			}), frozen)
			i := p.begin(func() error { return s.first(p) })
			select {
			case <-reached:
			case err := <-i.err:
				hit = false
				must(t, err)
				s.process(nil).serve()
				s.check(false)
				return
			}
			s.clock.Advance(lost)
			s.box.back(letter{lane: "main", body: []byte(`{"t":"default","k":"` + key + `","l":"main"}`), due: s.clock.Now()})
			other := s.process(nil)
			other.serve()
			before, told := s.dump("r1", "r2"), len(s.c.all(any1))+len(s.waiter.all(any1))
			p.clock.Advance(lost + time.Minute)
			p.freeze(false)
			close(thaw)
			for len(i.err) == 0 { // its time goes on
				p.clock.Advance(time.Second)
				<-time.After(100 * time.Microsecond)
			}
			if err := i.wait(); err != nil && strings.Contains(err.Error(), "panic") {
				t.Fatal(err)
			}
			if diff := differ(before, s.dump("r1", "r2")); diff != "" {
				t.Errorf("the thawed runner changed %s", diff)
			}
			if now := len(s.c.all(any1)) + len(s.waiter.all(any1)); now != told {
				t.Errorf("the thawed runner told %d things", now-told)
			}
			if got := s.log.count("counter=stale_writer"); got > 1 {
				t.Errorf("counted %d times", got)
			}
			s.check(true)
		})
	}
}

func any1(map[string]any) bool { return true }

// differ names what is different.
func differ(before, now []table.Item) string {
	old := map[table.Key]string{}
	for _, it := range before {
		old[it.Key] = readable(it.Attrs)
	}
	var out []string
	for _, it := range now {
		if strings.HasPrefix(it.Key.SK, "W#") {
			continue // that somebody was told may be noted twice
		}
		if now := readable(it.Attrs); old[it.Key] != now {
			out = append(out, it.Key.SK+": "+old[it.Key]+" -> "+now)
		}
		delete(old, it.Key)
	}
	for k := range old {
		if strings.HasPrefix(k.SK, "W#") {
			continue
		}
		out = append(out, k.SK+" is gone")
	}
	return strings.Join(out, "; ")
}

func readable(a table.Attrs) string {
	out := make([]string, 0, len(a))
	for k, v := range a {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		out = append(out, fmt.Sprint(k, "=", v))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
