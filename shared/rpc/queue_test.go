package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	"laneway/shared/protocol"
)

// command sends a command and gives what it is answered with.
func (c *client) command(text, id string) string {
	c.t.Helper()
	var fin protocol.ChatFinal
	c.ok("chat.send", obj{"sessionKey": "s", "message": text, "idempotencyKey": id}, nil)
	into(c.t, c.find("answer to "+text, 1, chatEvent("final", id)), &fin)
	var parts []struct{ Text string }
	into(c.t, protocol.Frame{Payload: fin.Message.Content}, &parts)
	if len(parts) != 1 {
		c.t.Fatalf("%s: %s", text, fin.Message.Content)
	}
	return parts[0].Text
}

// TestRuntime22_23_TheQueueCommand: each row of 2.3, with the aliases and defaults of
// 2.2. What is wrong changes nothing.
func TestRuntime22_23_TheQueueCommand(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *world, c, _ *client) {
		t.Helper()
		for i, row := range []struct{ send, want string }{
			{"/queue", "mode=steer, debounce=500ms, cap=20, drop=summarize"},
			{"/queue collect", "mode=collect, debounce=500ms, cap=20, drop=summarize"},
			{"/queue followup debounce:2s cap=5 drop:old", "mode=followup, debounce=2000ms, cap=5, drop=old"},
			{"/queue debounce:0.5s", "mode=followup, debounce=500ms, cap=5, drop=old"},
			{"/queue debounce:250", "debounce=250ms"},
			{"/queue debounce:1m", "debounce=60000ms"},
			{"/queue debounce:2h", "debounce=7200000ms"},
			{"/queue debounce:1d", "debounce=86400000ms"},
			{"/queue coalesce", "mode=collect"},
			{"/queue follow-ups", "mode=followup"},
			{"/queue interrupts", "mode=interrupt"},
			{"/queue abort", "mode=interrupt"},
			{"/queue:collect cap:9", "mode=collect, debounce=86400000ms, cap=9"},
			{"/queue: interrupt cap:5", "mode=interrupt, debounce=86400000ms, cap=5"},
			{"/queue:sideways", `Unrecognized queue mode "sideways"`},
			{"/queue steering", "mode=steer"},
			{"/queue drop:oldest", "drop=old"},
			{"/queue drop:newest", "drop=new"},
			{"/queue drop:summary", "drop=summarize"},
			{"/QUEUE Collect CAP:7", "mode=collect, debounce=86400000ms, cap=7"},
			{"/queue sideways", `Unrecognized queue mode "sideways"`},
			{"/queue debounce:soon", `Invalid debounce "soon"`},
			{"/queue debounce:-1", `Invalid debounce "-1"`},
			{"/queue cap:0", `Invalid cap "0"`},
			{"/queue cap:65", `Invalid cap "65"`},
			{"/queue cap:many", `Invalid cap "many"`},
			{"/queue drop:all", `Invalid drop policy "all"`},
			{"/queue steer drop:all", `Invalid drop policy "all"`},
			{"/queue", "mode=collect, debounce=86400000ms, cap=7, drop=summarize"}, // nothing of the wrong ones
			{"/queue reset", "mode=steer, debounce=500ms, cap=20, drop=summarize"},
			{"/queue cap:3", "cap=3"},
			{"/queue clear", "mode=steer, debounce=500ms, cap=20, drop=summarize"},
			{"/queue cap:3", "cap=3"},
			{"/queue default", "mode=steer, debounce=500ms, cap=20, drop=summarize"},
		} {
			got := c.command(row.send, fmt.Sprint("q", i))
			if !strings.Contains(got, row.want) {
				t.Errorf("%s: %s, want %s", row.send, got, row.want)
			}
			for _, name := range []string{"steer", "followup", "collect", "interrupt"} {
				if strings.Contains(row.send, "sideways") && !strings.Contains(got, name) {
					t.Errorf("%s: %s does not list %s", row.send, got, name)
				}
			}
		}
	})
}

// TestRuntime23_TheQueueCommandOfAgent: a call of agent that is nothing but the command
// is answered by it, without a run, and changes the session.
func TestRuntime23_TheQueueCommandOfAgent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		for i, row := range []struct{ send, want string }{
			{"/queue collect", "mode=collect"},
			{"/queue sideways", `Unrecognized queue mode "sideways"`},
			{"/queue", "mode=collect"},
		} {
			var f protocol.Final
			c.ok("agent", obj{"sessionKey": "s", "message": row.send, "idempotencyKey": fmt.Sprint("a", i)}, &f)
			if f.Result == nil || len(f.Result.Payloads) != 1 || !strings.Contains(f.Result.Payloads[0].Text, row.want) {
				t.Errorf("%s: %+v, want %s", row.send, f, row.want)
			}
		}
		c.ok("agent", obj{"sessionKey": "s", "message": "/queue interrupt cap:3 hello there", "idempotencyKey": "text"}, nil)
		w.idle(key)
		if texts := w.model.texts(); len(texts) == 0 || texts[len(texts)-1] != "hello there" {
			t.Errorf("the model was told %q", texts)
		}
		if got := c.command("/queue", "q"); !strings.Contains(got, "mode=collect") {
			t.Errorf("the session has %s", got)
		}
	})
}

// TestRuntime22_Precedence: what a message says, then the session, then the default;
// modes that older versions stored keep their meaning.
func TestRuntime22_Precedence(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		for i, row := range []struct {
			name, session, text, mode, kind string
		}{
			{"default: steer", "", "m", "", "steered"},
			{"inline over the session", "collect", "/queue steer m", "", "steered"},
			{"the parameter over both", "collect", "/queue followup m", "steer", "steered"},
			{"the session over the default", "collect", "m", "", "queued"},
			{"backlog: nothing overtakes", "", "m", "steer", "queued"},
		} {
			c.command("/queue default", fmt.Sprint("d", i))
			if row.session != "" {
				c.command("/queue "+row.session, fmt.Sprint("s", i))
			}
			d := c.say(row.text, fmt.Sprint("m", i), row.mode)
			if d.Kind != row.kind {
				t.Errorf("%s: %+v", row.name, d)
			}
			if row.name == "backlog: nothing overtakes" && d.Reason != "backlog" {
				t.Errorf("%s: %+v", row.name, d)
			}
		}
		// Inline settings are of their message only, and not part of its text.
		w.model.let("hold 1")
		for i := range 5 {
			c.waited(fmt.Sprint("m", i))
		}
		w.idle(key)
		if rows := strings.Join(c.users(), "\n"); strings.Contains(rows, "/queue") {
			t.Errorf("the command is in the conversation: %s", rows)
		}
	})
}

// TestRuntime24_NobodyIsAtWork: then a message runs at once in every mode.
func TestRuntime24_NobodyIsAtWork(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		for _, mode := range []string{"", "steer", "followup", "collect", "interrupt"} {
			id := "idle-" + mode
			if d := c.say("hello", id, mode); d.Kind != "started" {
				t.Errorf("%s: %+v", mode, d)
			}
			if got := c.waited(id); got.Status != "ok" {
				t.Errorf("%s: %+v", mode, got)
			}
			w.idle(key)
		}
	})
}

// TestRuntime26_CollectGroupsWhatIsContiguous: messages that collect are one turn up
// to the first that does not.
func TestRuntime26_CollectGroupsWhatIsContiguous(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, _ *client) {
		t.Helper()
		c.ok("sessions.patch", obj{"key": "s", "queueDebounceMs": 0}, nil)
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		for _, m := range []struct{ id, mode string }{{"c1", "collect"}, {"c2", "collect"}, {"f", "followup"}, {"c3", "collect"}, {"c4", "collect"}} {
			c.say("text of "+m.id, m.id, m.mode)
		}
		w.model.let("hold 1")
		for id, into := range map[string]string{"c1": "", "c2": "c1", "f": "", "c3": "", "c4": "c3"} {
			got := c.waited(id)
			if got.Status != "ok" || got.Disposition.RunID != into {
				t.Errorf("%s: %+v %+v", id, got, got.Disposition)
			}
		}
		w.idle(key)
		rows := c.users()
		if len(rows) != 4 || !strings.Contains(rows[1], "[Queued messages while agent was busy]") || !strings.Contains(rows[1], "Queued #2") {
			t.Errorf("%q", rows)
		}
		once(t, rows, "text of c1", "text of c2", "text of f", "text of c3", "text of c4")
	})
}

// TestRuntime55_StopText: each stop word alone stops; in a sentence it is a message.
func TestRuntime55_StopText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	for i, word := range []string{"/stop", "Stop!", "esc", "ABORT", "exit.", "interrupt", "halt", "please stop", "stop run", "stopp", "arrête", "detente", "pare", "стоп", "停止", "やめて", "중지", "توقف", "रुको"} { //nolint:gosmopolitan // what users type
		id := fmt.Sprint("r", i)
		c.say("hold "+id, id, "")
		w.model.waitFor(t, "hold "+id)
		var ab protocol.ChatAborted
		c.ok("chat.send", obj{"sessionKey": "s", "message": word, "idempotencyKey": "stop-" + id}, &ab)
		if !ab.Aborted || len(ab.RunIDs) != 1 || ab.RunIDs[0] != id {
			t.Errorf("%q: %+v", word, ab)
		}
		if got := c.waited(id); got.StopReason != "stop" || got.Status != "error" {
			t.Errorf("%q: %+v", word, got)
		}
		w.idle(key)
	}
	for i, text := range []string{"stop the server please", "do not stop", "halting problem"} {
		if d := c.say(text, fmt.Sprint("t", i), ""); d.Kind != "started" {
			t.Errorf("%q: %+v", text, d)
		}
		if got := c.waited(fmt.Sprint("t", i)); got.Status != "ok" {
			t.Errorf("%q: %+v", text, got)
		}
		w.idle(key)
	}
}

// TestRuntime55_AWithdrawnSteer: an abort with the id of a message that was steered and
// not delivered takes it back; the turn goes on without it.
func TestRuntime55_AWithdrawnSteer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world, c, l *client) {
		t.Helper()
		c.say("hold 1", "a", "")
		w.model.waitFor(t, "hold 1")
		c.say("never mind", "b", "steer")
		var ab protocol.ChatAborted
		c.ok("chat.abort", obj{"sessionKey": "s", "runId": "b"}, &ab)
		if !ab.Aborted {
			t.Errorf("%+v", ab)
		}
		l.receipt("b", protocol.Disposition{Kind: "dropped", Reason: "rpc"})
		w.model.let("hold 1")
		if got := c.waited("a"); got.Status != "ok" {
			t.Errorf("%+v", got)
		}
		w.idle(key)
		if rows := strings.Join(c.users(), "\n"); strings.Contains(rows, "never mind") {
			t.Error("what was taken back reached the conversation")
		}
	})
}
