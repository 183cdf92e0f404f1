package loop_test

import (
	"testing"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/transcript"
)

// TestRuntime55_Abort: the table of what an abort leaves, a row a check, for a run that
// had said something and for one that had not.
func TestRuntime55_Abort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, said string
		rows       int
	}{
		{"with partial text", "Hel", 2},
		{"before any text", "", 1},
		{"blank text", " \n", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(hold(nil, row.said, "never"), say("next"))
			c := w.connect()
			w.accept(c, "r1", "hi", func(st *run.Status) { st.Method, st.Origin.Kind = "chat.send", run.WaitNone })
			p := w.process(nil)
			i := p.start()
			<-w.model.asked
			if row.said == "Hel" {
				c.until(t, "its words", event("chat", "", "delta"))
			}
			w.accept(c, "r2", "waits")
			first := w.stop("r1")
			w.ends(i, 0)
			second := w.stop("r1")
			if !first || second {
				t.Errorf("aborted %v, and again %v", first, second)
			}
			st := w.status("r1")
			if st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != "rpc" {
				t.Errorf("row status: %+v", st.Outcome)
			}
			if m := w.meta(); m.LastEnd != string(run.Aborted) || m.LastRun != st.Ref.Run {
				t.Errorf("row: the session's last run ended %q", m.LastEnd)
			}
			rows := w.rows()
			if len(rows) != row.rows {
				t.Fatalf("persisted: %d rows %+v", len(rows), rows)
			}
			if row.rows == 2 {
				e := rows[1]
				want := transcript.Abort{Aborted: true, Origin: "rpc", RunID: "r1"}
				if e.Role != model.Assistant || e.Text() != row.said || e.Key != "r1:assistant" || e.Provider != "openclaw" || e.Model != "gateway-injected" || e.StopReason != "stop" ||
					e.Usage == nil || *e.Usage != (model.Usage{}) || e.Abort == nil || *e.Abort != want {
					t.Errorf("persisted: %+v", e)
				}
			}
			ends := c.all(event("agent", "lifecycle", "end"))
			if len(ends) != 1 || str(ends[0], "payload.data.status") != "cancelled" || str(ends[0], "payload.data.stopReason") != "rpc" {
				t.Errorf("lifecycle: %v", ends)
			} else {
				d := ends[0]["payload"].(map[string]any)["data"].(map[string]any)
				if d["aborted"] != true || d["startedAt"] == nil || d["endedAt"] == nil {
					t.Errorf("lifecycle: %v", d)
				}
			}
			chats := c.all(event("chat", "", "aborted"))
			if len(chats) != 1 || str(chats[0], "payload.stopReason") != "rpc" {
				t.Errorf("chat event: %v", chats)
			}
			if text := str(chats[0], "payload.message.content.0.text"); row.rows == 2 && text != row.said || row.rows == 1 && text != "" {
				t.Errorf("chat event: its message is %q", text)
			}

			p.serve() // r2, which waited
			calls := w.model.calls()
			last := calls[len(calls)-1].Messages
			marked := 0
			for _, m := range last {
				for _, b := range m.Content {
					if b.Text == transcript.AbortedMarker {
						marked++
					}
					if row.said == "Hel" && b.Text == row.said {
						t.Error("next model request: has the partial text")
					}
				}
			}
			if marked != row.rows-1 {
				t.Errorf("next model request: %d markers in %+v", marked, last)
			}
			if n := len(c.all(event("agent", "lifecycle", "end"))); n != 2 {
				t.Errorf("%d ends after the next run", n)
			}
		})
	}
}

// Row "persisted": the mark names what stopped the run, a message by a word of its own.
func TestRuntime55_Abort_Origin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(hold(nil, "so far", "never"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	i := w.process(nil).start()
	<-w.model.asked
	c.until(t, "its words", event("agent", "assistant", ""))
	w.stopAll()
	w.ends(i, 0)
	rows := w.rows()
	want := transcript.Abort{Aborted: true, Origin: "stop-command", RunID: "r1"}
	if last := rows[len(rows)-1]; last.Abort == nil || *last.Abort != want {
		t.Errorf("%+v, want the mark %+v", last, want)
	}
	if st := w.status("r1"); st.Outcome.StopReason != "stop" {
		t.Errorf("row status: %+v", st.Outcome)
	}
}

// Row "queue": a stop of the session clears what waits, too; row "late events": what the
// model says behind the end reaches nobody.
func TestRuntime55_Abort_QueueAndLateEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	free := make(chan struct{})
	w.model.on(hold(free, "so far", " and later"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	i := p.start()
	<-w.model.asked
	w.accept(c, "r2", "waits")
	w.stopAll()
	w.ends(i, 0)
	close(free)
	p.serve()
	for _, id := range []string{"r1", "r2"} {
		if st := w.status(id); st.Outcome == nil || st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != "stop" {
			t.Errorf("%s: %+v", id, st.Outcome)
		}
	}
	if n := len(w.model.calls()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	for _, f := range c.all(event("agent", "assistant", "")) {
		if text := str(f, "payload.data.text"); text != "so far" && text != "" {
			t.Errorf("told: %q", text)
		}
	}
	m, err := session.LoadMeta(t.Context(), w.store, ref)
	must(t, err)
	if m.Cutoff == 0 || m.Busy {
		t.Errorf("no cutoff is kept, or work is left: %+v", m)
	}
}
