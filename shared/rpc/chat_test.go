package rpc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/test/backends"
)

func chatEvent(state, runID string) func(*protocol.Frame) bool {
	return func(f *protocol.Frame) bool {
		return f.Event == protocol.EventChat && strings.Contains(string(f.Payload), `"runId":"`+runID+`"`) &&
			strings.Contains(string(f.Payload), `"state":"`+state+`"`)
	}
}

func TestChatSend_IsAnsweredOnceAndToldByEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	call := obj{"sessionKey": "s", "message": "hello", "idempotencyKey": "k"}
	var sent protocol.ChatSent
	c.ok("chat.send", call, &sent)
	if sent.RunID != "k" || sent.Status != "started" || sent.Disposition == nil || sent.Disposition.Kind != "started" {
		t.Errorf("%+v", sent)
	}
	var fin protocol.ChatFinal
	into(t, c.find("final", 1, chatEvent("final", "k")), &fin)
	if fin.SessionKey != key || fin.Message == nil || !strings.Contains(string(fin.Message.Content), "you said hello") {
		t.Errorf("%+v", fin)
	}
	w.idle(key)
	c.ok("chat.send", call, &sent)
	if sent.Status != "ok" || sent.RunID != "k" {
		t.Errorf("a repeat after the end: %+v", sent)
	}
	c.fails("chat.send", obj{"sessionKey": "s", "message": " ", "idempotencyKey": "x"}, protocol.CodeInvalidRequest, "message or attachment required")
	c.fails("chat.send", obj{"message": "m", "idempotencyKey": "x"}, protocol.CodeInvalidRequest, "'sessionKey'")
	c.fails("chat.send", obj{"sessionKey": "agent:nobody:x", "message": "m", "idempotencyKey": "x"}, protocol.CodeInvalidRequest, "unknown agent")
}

func TestChatSend_ARepeatSaysHowItStands(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	call := obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "k"}
	c.ok("chat.send", call, nil)
	w.model.waitFor(t, "hold")
	var sent protocol.ChatSent
	c.ok("chat.send", call, &sent)
	if sent.Status != "in_flight" {
		t.Errorf("%+v", sent)
	}
	var ab protocol.ChatAborted
	c.ok("chat.abort", obj{"sessionKey": "s", "runId": "k", "preserveSideRuns": true}, &ab)
	if !ab.Aborted || !slices.Equal(ab.RunIDs, []string{"k"}) {
		t.Errorf("%+v", ab)
	}
	c.find("aborted", 1, chatEvent("aborted", "k"))
	w.idle(key)
	var fin protocol.Final
	c.ok("chat.send", call, &fin)
	if fin.Status != "timeout" || fin.Summary != "aborted" || fin.StopReason != "rpc" || fin.EndedAt == 0 {
		t.Errorf("%+v", fin)
	}
	var h protocol.History
	c.ok("chat.history", obj{"sessionKey": "s"}, &h)
	last := h.Messages[len(h.Messages)-1]
	if a := last.OpenclawAbort; a == nil || !a.Aborted || a.Origin != "rpc" || a.RunID != "k" || last.Role != "assistant" ||
		last.IdempotencyKey != "k:assistant" || last.Provider != "openclaw" || last.Model != "gateway-injected" {
		t.Errorf("%+v", last)
	}
}

func TestChatSend_ModesOfTheQueue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.ok("chat.send", obj{"sessionKey": "s", "message": "hold on", "idempotencyKey": "a"}, nil)
	w.model.waitFor(t, "hold on")
	var sent protocol.ChatSent
	c.ok("chat.send", obj{"sessionKey": "s", "message": "one more", "idempotencyKey": "steer", "queueMode": "steer"}, &sent)
	if d := sent.Disposition; d == nil || d.Kind != "steered" || d.RunID != "a" {
		t.Errorf("steer: %+v", sent.Disposition)
	}
	c.ok("chat.send", obj{"sessionKey": "s", "message": "later", "idempotencyKey": "later", "queueMode": "followup"}, &sent)
	if d := sent.Disposition; d == nil || d.Kind != "queued" || d.Position != 1 {
		t.Errorf("followup: %+v", sent.Disposition)
	}
	c.ok("chat.send", obj{"sessionKey": "s", "message": "now", "idempotencyKey": "now", "queueMode": "interrupt"}, &sent)
	c.find("the run that was interrupted", 1, chatEvent("aborted", "a"))
	c.find("the newest", 1, chatEvent("final", "now"))
	w.idle(key)
	if n := w.model.count("later"); n != 0 {
		t.Error("what an interrupt ended ran all the same")
	}
}

func TestChatAbort(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	var ab protocol.ChatAborted
	c.ok("chat.abort", obj{"sessionKey": "never used"}, &ab)
	if !ab.OK || ab.Aborted || ab.RunIDs == nil {
		t.Errorf("%+v", ab)
	}
	c.ok("chat.abort", obj{"sessionKey": "s", "runId": "unknown"}, &ab)
	if ab.Aborted {
		t.Errorf("%+v", ab)
	}
	first := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "a"})
	w.model.waitFor(t, "hold")
	long := strings.Repeat("long id ", 20)
	second := c.post("agent", obj{"sessionKey": "s", "message": "waits", "idempotencyKey": long})
	c.ok("chat.abort", obj{"sessionKey": "s"}, &ab)
	if !slices.Equal(ab.RunIDs, []string{long, "a"}) {
		t.Errorf("stopped %q, want those that wait first", ab.RunIDs)
	}
	for _, r := range []string{first, second} {
		var f protocol.Final
		into(t, c.answer(r, 2), &f)
		if f.Status != "timeout" || f.Summary != "aborted" || f.StopReason != "rpc" {
			t.Errorf("%+v", f)
		}
	}
	w.idle(key)
	if w.model.count("waits") != 0 {
		t.Error("a stopped run ran")
	}
	c.ok("chat.abort", obj{"sessionKey": "s", "runId": "a"}, &ab)
	if ab.Aborted {
		t.Errorf("a run that is over: %+v", ab)
	}
	c.fails("chat.abort", obj{}, protocol.CodeInvalidRequest, "'sessionKey'")
}

// TestChatAbort_ARunOfAnotherSession is for those who started it and for admins.
func TestChatAbort_ARunOfAnotherSession(t *testing.T) {
	t.Parallel()
	w := setup(t)
	owner, writer, admin := w.scoped(protocol.ScopeWrite), w.scoped(protocol.ScopeWrite), w.user()
	for i, c := range []*client{owner, admin} {
		runID := fmt.Sprintf("k%d", i)
		req := owner.post("agent", obj{"sessionKey": "s", "message": "hold " + runID, "idempotencyKey": runID})
		w.model.waitFor(t, "hold "+runID)
		writer.fails("chat.abort", obj{"sessionKey": "t", "runId": runID}, protocol.CodeInvalidRequest, "does not match")
		var ab protocol.ChatAborted
		c.ok("chat.abort", obj{"sessionKey": "t", "runId": runID}, &ab)
		if !ab.Aborted {
			t.Errorf("%s: %+v", runID, ab)
		}
		owner.answer(req, 2)
	}
}

// TestF15_AStopByAgentDoesNotWaitForItsTurn: neither behind the run that it stops, nor
// is it told to the model.
func TestF15_AStopByAgentDoesNotWaitForItsTurn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	stop := func(id, want string) {
		t.Helper()
		var f protocol.Final
		c.ok("agent", obj{"sessionKey": "s", "message": "/stop", "idempotencyKey": id}, &f)
		if f.Result == nil || len(f.Result.Payloads) != 1 || f.Result.Payloads[0].Text != want {
			t.Errorf("%s: %+v", id, f)
		}
	}
	req := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "a"})
	w.model.waitFor(t, "hold")
	stop("first", "⚙️ Agent was aborted.")
	stop("first", "⚙️ Agent was aborted.") // the same call again
	c.answer(req, 2)
	w.idle(key)
	stop("second", "Nothing is at work.")
}

// TestRuntime55_AlreadyFinalizing: the end of a run is written and not told yet.
func TestRuntime55_AlreadyFinalizing(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, store table.Store) {
		w := setup(t, over(store), noRunner)
		c := w.user()
		c.ok("sessions.create", obj{"key": "s"}, nil)
		stop := func(id, want string) {
			t.Helper()
			var f protocol.Final
			c.ok("agent", obj{"sessionKey": "s", "message": "/stop", "idempotencyKey": id}, &f)
			if f.Result == nil || len(f.Result.Payloads) != 1 || f.Result.Payloads[0].Text != want {
				t.Errorf("%s: %+v", id, f)
			}
		}
		stop("first", "Nothing is at work.")
		_, err := store.Write(t.Context(), table.Op{
			Kind: table.Update, Key: w.ref(key).MetaKey(),
			AddTo: []table.MemberOp{{Attr: session.AttrUnsettled, Members: table.Set{"a-run"}}},
		})
		must(t, err)
		stop("second", "Agent reply is already finalizing and can no longer be aborted.")
	})
}

func TestCommand_StopWordsStopEverything(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"/stop", "Stop!", "please stop", "СТОП", "停止。"} { //nolint:gosmopolitan // what users type
		w := setup(t)
		c := w.user()
		c.ok("chat.send", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "a"}, nil)
		w.model.waitFor(t, "hold")
		c.ok("chat.send", obj{"sessionKey": "s", "message": "waits", "idempotencyKey": "b", "queueMode": "followup"}, nil)
		var ab protocol.ChatAborted
		c.ok("chat.send", obj{"sessionKey": "s", "message": word, "idempotencyKey": "stop"}, &ab)
		if !ab.OK || !slices.Equal(ab.RunIDs, []string{"b", "a"}) {
			t.Errorf("%s: %+v", word, ab)
		}
		var ev protocol.ChatAbortedEvent
		into(t, c.find("aborted", 1, chatEvent("aborted", "a")), &ev)
		if ev.StopReason != "stop" {
			t.Errorf("%s: stop reason %s", word, ev.StopReason)
		}
		w.idle(key)
		c.ok("chat.send", obj{"sessionKey": "s", "message": "don't stop", "idempotencyKey": "c"}, nil)
		c.find("an ordinary message", 1, chatEvent("final", "c"))
		c.ok("chat.send", obj{"sessionKey": "s", "message": "stop", "idempotencyKey": "d", "suppressCommandInterpretation": true}, nil)
		c.find("a word that is no command", 1, chatEvent("final", "d"))
	}
}

func TestCommand_NewStartsOver(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"chat.send", "agent"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			c := w.user()
			c.says("s", "old", "the past")
			held := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "held"})
			w.model.waitFor(t, "hold")
			sid := w.meta(key).SessionID
			bare := obj{"sessionKey": "s", "message": "/new", "idempotencyKey": "bare"}
			notice := func(req string) {
				t.Helper()
				if method == "agent" {
					var f protocol.Final
					into(t, c.answer(req, 1), &f)
					if f.Status != "ok" || len(f.Result.Payloads) != 1 || f.Result.Payloads[0].Text != "✅ New session started." || !f.Result.Payloads[0].IsStatusNotice {
						t.Errorf("%+v", f)
					}
					return
				}
				if c.answer(req, 1); c.answers(req) != 1 {
					t.Error("more than one answer")
				}
				var fin protocol.ChatFinal
				into(t, c.find("notice", 1, chatEvent("final", "bare")), &fin)
				if fin.Message == nil || !strings.Contains(string(fin.Message.Content), "New session started") {
					t.Errorf("%+v", fin)
				}
			}
			notice(c.post(method, bare))
			var f protocol.Final
			into(t, c.answer(held, 2), &f)
			if f.Summary != "aborted" {
				t.Errorf("the run that was active: %+v", f)
			}
			m := w.idle(key)
			if m.SessionID != sid || m.Base != m.Head || m.Base == 0 {
				t.Errorf("session %s, head %d, base %d", m.SessionID, m.Head, m.Base)
			}
			notice(c.post(method, bare)) // a repeat is answered, and resets nothing
			if again := w.idle(key); again.Head != m.Head {
				t.Error("a repeat has started over again")
			}
			with := obj{"sessionKey": "s", "message": "/reset  and go", "idempotencyKey": "with"}
			c.ok(method, with, nil)
			w.model.waitFor(t, "and go")
			w.idle(key)
			if got := w.model.texts(); !slices.Equal(got, []string{"and go"}) {
				t.Errorf("the model was asked %q", got)
			}
			c.ok(method, with, nil)
			if got := w.idle(key); got.Base == m.Base || w.model.count("and go") != 1 {
				t.Errorf("base %d, %d calls", got.Base, w.model.count("and go"))
			}
			var h protocol.History
			c.ok("chat.history", obj{"sessionKey": "s"}, &h)
			if len(h.Messages) != 2 || h.Messages[0].Openclaw.Seq != 1 || h.TotalMessages != 2 {
				t.Errorf("%d messages of %d: %+v", len(h.Messages), h.TotalMessages, h.Messages)
			}
		})
	}
}

func TestCommand_NewInASessionThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	var f protocol.Final
	c.ok("agent", obj{"sessionKey": "fresh", "message": "/new", "idempotencyKey": "k"}, &f)
	if f.Status != "ok" {
		t.Errorf("%+v", f)
	}
	var wait protocol.Wait
	c.ok("agent.wait", obj{"runId": "k"}, &wait)
	if wait.Status != "ok" || wait.TerminalReply.Text != "✅ New session started." {
		t.Errorf("%+v", wait)
	}
	var d protocol.SessionDescribed
	if c.ok("sessions.describe", obj{"key": "fresh"}, &d); d.Session != nil {
		t.Errorf("it was made by it: %+v", d.Session)
	}
}

func TestChatInject(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.fails("chat.inject", obj{"sessionKey": "s", "message": "psst"}, protocol.CodeInvalidRequest, "No session found")
	if m := w.meta(key); m.Exists() {
		t.Error("a session was made")
	}
	c.says("s", "k", "hello")
	w.idle(key)
	var in protocol.ChatInjected
	c.ok("chat.inject", obj{"sessionKey": "s", "message": "psst", "label": "note"}, &in)
	var h protocol.History
	c.ok("chat.history", obj{"sessionKey": "s"}, &h)
	last := h.Messages[len(h.Messages)-1]
	if !in.OK || last.Openclaw.ID != in.MessageID || last.Role != "assistant" || string(last.Content) != `[{"type":"text","text":"psst"}]` {
		t.Errorf("%+v, last row %+v", in, last)
	}
	if m := w.meta(key); m.Owner != "" {
		t.Errorf("the claim is held by %s", m.Owner)
	}
	c.says("s", "k2", "and?")
	if got := w.model.texts(); !slices.Contains(got, "psst") {
		t.Errorf("the model does not know: %q", got)
	}
	c.fails("chat.inject", obj{"sessionKey": "s", "message": ""}, protocol.CodeInvalidRequest, "/message")
}

// TestC4_ACommandWaitsForTheWriterThenIsBusy: a command that needs the claim does
// not disturb the run that has it.
func TestC4_ACommandWaitsForTheWriterThenIsBusy(t *testing.T) {
	t.Parallel()
	w := setup(t, settings(busyFast))
	c := w.user()
	req := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "k"})
	w.model.waitFor(t, "hold")
	e := c.fails("chat.inject", obj{"sessionKey": "s", "message": "psst"}, protocol.CodeUnavailable, "session busy")
	if !e.Retryable || e.Detail("reason") != protocol.ReasonSessionBusy {
		t.Errorf("%+v", e)
	}
	w.model.release()
	var f protocol.Final
	into(t, c.answer(req, 2), &f)
	if f.Status != "ok" {
		t.Errorf("%+v", f)
	}
}
