package rpc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/transcript"
)

func TestSessionsAbort_AnswersWhenTheEndIsWritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	nothing := `{"ok":true,"abortedRunId":null,"status":"aborted"}`
	for _, p := range []obj{{"key": "s"}, {"runId": "unknown"}, {"key": "s", "runId": "unknown"}, {"key": "s", "clearQueued": false}} {
		if f := c.call("sessions.abort", p); string(f.Payload) != nothing {
			t.Errorf("%v: %s %v", p, f.Payload, f.Err)
		}
	}
	for i, p := range []obj{{"key": "s"}, {"runId": "a1"}, {"key": "s", "runId": "a2"}, {"key": "s", "clearQueued": false}} {
		id, next := fmt.Sprint("a", i), fmt.Sprint("b", i)
		c.ok("chat.send", obj{"sessionKey": "s", "message": "hold " + id, "idempotencyKey": id}, nil)
		w.model.waitFor(t, "hold "+id)
		c.ok("chat.send", obj{"sessionKey": "s", "message": "next " + next, "idempotencyKey": next, "queueMode": "followup"}, nil)
		f := c.call("sessions.abort", p)
		if string(f.Payload) != `{"ok":true,"abortedRunId":"`+id+`","status":"aborted"}` {
			t.Errorf("%v: %s %v", p, f.Payload, f.Err)
		}
		st, err := run.Load(context.Background(), w.store, run.RefOf("default", id))
		if err != nil || !st.Done() || st.Outcome.Kind != run.Aborted {
			t.Errorf("%v: answered before the end: %+v, %v", p, st.Outcome, err)
		}
		w.idle(key)
		want := 1
		if i == 0 {
			want = 0 // without a run id all of it is stopped
		}
		if got := w.model.count("next " + next); got != want {
			t.Errorf("%v: the run that waited ran %d times, want %d", p, got, want)
		}
	}
	c.fails("sessions.abort", obj{}, protocol.CodeInvalidRequest, "one of key, runId")
}

func TestSessionsReset(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.fails("sessions.reset", obj{"key": "s"}, protocol.CodeInvalidRequest, "No session found")
	c.says("s", "a", "the past")
	w.idle(key)
	c.ok("sessions.patch", obj{"key": "s", "label": "L"}, nil)
	held := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "held"})
	w.model.waitFor(t, "hold")
	waits := c.post("agent", obj{"sessionKey": "s", "message": "waits", "idempotencyKey": "waits"})
	before := w.meta(key)
	var ch protocol.SessionChanged
	c.ok("sessions.reset", obj{"key": "s", "reason": "new"}, &ch)
	if !ch.OK || ch.SessionID != before.SessionID {
		t.Errorf("%+v", ch)
	}
	for _, r := range []string{held, waits} {
		var f protocol.Final
		into(t, c.answer(r, 2), &f)
		if f.Summary != "aborted" {
			t.Errorf("%+v", f)
		}
	}
	h, _ := c.history(obj{})
	if len(h.Messages) != 0 || h.TotalMessages != 0 || h.SessionInfo.Label != "L" || h.SessionInfo.TotalTokens != 0 {
		t.Errorf("%+v", h)
	}
	c.says("s", "b", "the present")
	m := w.idle(key)
	if got := w.model.texts(); !slices.Equal(got, []string{"the present"}) {
		t.Errorf("the model was asked %q", got)
	}
	rows, err := w.core.Transcripts.Range(context.Background(), w.ref(key), m.SessionID, m.Base, m.Base)
	if err != nil || rows[0].Type != transcript.Reset || rows[0].Reason != "new" {
		t.Errorf("%+v, %v", rows, err)
	}
	c.fails("sessions.reset", obj{"key": "s", "expectedSessionId": "other"}, protocol.CodeUnavailable, "another one")
	c.fails("sessions.reset", obj{"key": "s", "reason": "boredom"}, protocol.CodeInvalidRequest, "/reason")
}

// TestC1_ADeletedSessionKeepsItsTokenAndSequence: it is out of sight at once, and its
// key can be used again; nothing of the past comes back, and no number is used twice.
func TestC1_ADeletedSessionKeepsItsTokenAndSequence(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "a", "the past")
	w.idle(key)
	c.ok("sessions.patch", obj{"key": "s", "label": "L"}, nil)
	held := c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "held"})
	w.model.waitFor(t, "hold")
	before := w.meta(key)
	f := c.call("sessions.delete", obj{"key": "s"})
	if string(f.Payload) != `{"ok":true,"key":"agent:main:s","deleted":true,"archived":[]}` {
		t.Fatalf("%s %v", f.Payload, f.Err)
	}
	c.answer(held, 2)
	gone := func() {
		t.Helper()
		if f := c.call("sessions.describe", obj{"key": "s"}); string(f.Payload) != `{"session":null}` {
			t.Errorf("describe: %s", f.Payload)
		}
		if l := c.list(nil); len(l.Sessions) != 0 {
			t.Errorf("list: %v", keysOf(l))
		}
		c.fails("sessions.resolve", obj{"sessionId": before.SessionID}, protocol.CodeInvalidRequest, "No session found")
		c.fails("sessions.reset", obj{"key": "s"}, protocol.CodeInvalidRequest, "No session found")
		if h, _ := c.history(obj{}); len(h.Messages) != 0 || h.SessionID != "" {
			t.Errorf("history: %+v", h)
		}
	}
	gone()
	if f := c.call("sessions.delete", obj{"key": "s"}); !strings.Contains(string(f.Payload), `"deleted":false`) {
		t.Errorf("again: %s", f.Payload)
	}
	m := w.idle(key)
	if m.Token <= before.Token || m.Seq != before.Seq || m.SessionID == before.SessionID || m.Head != 0 || m.Base != 0 {
		t.Errorf("before %+v\nafter %+v", before, m)
	}
	rows, err := w.store.Query(context.Background(), table.Query{Table: table.Sessions, PK: w.ref(key).TranscriptPK(before.SessionID)})
	if err != nil || len(rows.Items) != 0 {
		t.Errorf("%d rows left, %v", len(rows.Items), err)
	}
	gone()
	c.says("s", "b", "a new start")
	m2 := w.idle(key)
	if m2.Seq <= m.Seq || m2.Token <= m.Token || m2.SessionID != m.SessionID {
		t.Errorf("used again: %+v", m2)
	}
	if got := w.model.texts(); !slices.Equal(got, []string{"a new start"}) {
		t.Errorf("the model was asked %q", got)
	}
	var d protocol.SessionDescribed
	if c.ok("sessions.describe", obj{"key": "s"}, &d); d.Session == nil || d.Session.Label != "" {
		t.Errorf("%+v", d.Session)
	}
	if l := c.list(nil); len(l.Sessions) != 1 {
		t.Errorf("list: %v", keysOf(l))
	}
	c.fails("sessions.delete", obj{"key": "main"}, protocol.CodeInvalidRequest, "Cannot delete the main session")
	c.fails("sessions.delete", obj{"key": "s", "expectedSessionId": before.SessionID}, protocol.CodeUnavailable, "another one")
}

func TestSessionsDelete_CanKeepTheTranscript(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "a", "the past")
	sid := w.idle(key).SessionID
	c.ok("sessions.delete", obj{"key": "s", "deleteTranscript": false}, nil)
	if h, _ := c.history(obj{"sessionId": sid}); len(h.Messages) != 2 {
		t.Errorf("%d rows", len(h.Messages))
	}
	c.ok("sessions.create", obj{"key": "s"}, nil)
	if l := c.list(nil); len(l.Sessions) != 1 {
		t.Errorf("made again: %v", keysOf(l))
	}
}
