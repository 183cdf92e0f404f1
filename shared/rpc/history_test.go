package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/transcript"
	"laneway/shared/wiring"
)

// history reads a session's history; the frame comes along for its size.
func (c *client) history(params obj) (protocol.History, int) {
	c.t.Helper()
	if params["sessionKey"] == nil {
		params["sessionKey"] = "s"
	}
	f := c.call("chat.history", params)
	if !f.OK {
		c.t.Fatal(f.Err)
	}
	var h protocol.History
	into(c.t, f, &h)
	return h, len(f.Payload)
}

// write puts rows into a session, as a writer under the claim does.
func (w *world) write(key string, rows ...transcript.Entry) {
	w.t.Helper()
	ctx := context.Background()
	if m := w.meta(key); !m.Exists() {
		_, err := w.store.Write(ctx, session.Create(w.ref(key), "sid-"+key, w.core.Clock.Now())...)
		must(w.t, err)
	}
	h, err := w.core.Claims.Command(ctx, w.ref(key), 0)
	must(w.t, err)
	m := h.Meta()
	tx := claim.Tx{Head: m.Head}
	for _, e := range rows {
		tx.Head++
		e.Seq = tx.Head
		if e.ID == "" {
			e.ID = fmt.Sprintf("row-%d", e.Seq)
		}
		if e.Type == "" {
			e.Type = transcript.Message
		}
		op, err := w.core.Transcripts.Put(ctx, m.Ref, m.SessionID, e)
		must(w.t, err)
		tx.Ops = append(tx.Ops, op)
	}
	must(w.t, h.Commit(ctx, tx))
	must(w.t, h.Release(ctx))
}

func said(role model.Role, text string) transcript.Entry {
	return transcript.Entry{Role: role, Content: []model.Block{{Type: model.Text, Text: text}}}
}

func TestHistory_ShowsTheTurn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "k", "hello")
	w.idle(key)
	h, _ := c.history(obj{})
	if h.SessionKey != key || h.SessionID == "" || h.HasMore || h.TotalMessages != 2 || len(h.Messages) != 2 || h.PendingInputs.Items == nil {
		t.Fatalf("%+v", h)
	}
	user, answer := h.Messages[0], h.Messages[1]
	if user.Role != "user" || string(user.Content) != `"hello"` || user.IdempotencyKey != "k:user" || user.Openclaw.Seq != 1 || user.Openclaw.RunID != "k" || user.Openclaw.ID == "" || user.Timestamp == 0 {
		t.Errorf("user row %+v", user)
	}
	if answer.Role != "assistant" || string(answer.Content) != `[{"type":"text","text":"you said hello"}]` || answer.Openclaw.Seq != 2 || answer.Openclaw.RunID != "k" || answer.IdempotencyKey != "" {
		t.Errorf("assistant row %+v", answer)
	}
	if i := h.SessionInfo; i == nil || i.HasActiveRun || len(i.ActiveRunIDs) != 0 || i.Status != "done" || i.Model != "fake-1" {
		t.Errorf("session %+v", i)
	}
	if h.Defaults == nil || h.Defaults.Model != "fake-1" || h.Defaults.ContextTokens != 1000 {
		t.Errorf("defaults %+v", h.Defaults)
	}
	c.fails("chat.history", obj{}, protocol.CodeInvalidRequest, "'sessionKey'")
	c.fails("chat.history", obj{"sessionKey": "s", "limit": 1001}, protocol.CodeInvalidRequest, "/limit")
	var get protocol.SessionMessages
	c.ok("sessions.get", obj{"key": "s", "limit": 1}, &get)
	if len(get.Messages) != 1 || get.Messages[0].Role != "assistant" {
		t.Errorf("sessions.get %+v", get)
	}
	c.fails("sessions.get", obj{}, protocol.CodeInvalidRequest, "'key'")
	var start protocol.History
	c.ok("chat.startup", obj{"shortId": h.SessionID[:8], "agentId": "main"}, &start)
	if start.SessionKey != key || len(start.Messages) != 2 {
		t.Errorf("chat.startup %+v", start)
	}
	c.ok("chat.startup", obj{"sessionKey": "s"}, &start)
	c.fails("chat.startup", obj{"shortId": "nothing", "agentId": "main"}, protocol.CodeInvalidRequest, "No session found")
	c.fails("chat.startup", obj{}, protocol.CodeInvalidRequest, "")
}

func TestHistory_OfASessionThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	c.ok("chat.abort", obj{"sessionKey": "s"}, nil) // leaves a mark, makes no session
	f := c.call("chat.history", obj{"sessionKey": "s"})
	var h protocol.History
	into(t, f, &h)
	if !f.OK || h.SessionID != "" || len(h.Messages) != 0 || h.SessionInfo.UpdatedAt != nil || !strings.Contains(string(f.Payload), `"messages":[]`) {
		t.Errorf("%s", f.Payload)
	}
}

// TestA4_AnAcceptedMessageIsAlwaysInTheHistory: first as an input that waits, then
// as the row of the run that has begun, then as a row of the transcript; never twice,
// never not at all.
func TestA4_AnAcceptedMessageIsAlwaysInTheHistory(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.ok("chat.send", obj{"sessionKey": "s", "message": "hold the line", "idempotencyKey": "a"}, nil)
	times := func(h *protocol.History, runID, text string) (rows, waits int) {
		for _, r := range h.Messages {
			if r.IdempotencyKey == runID+":user" && string(r.Content) == `"`+text+`"` {
				rows++
			}
		}
		for _, p := range h.PendingInputs.Items {
			if p.RunID == runID && p.Text == text {
				waits++
			}
		}
		return rows, waits
	}
	for {
		h, _ := c.history(obj{})
		rows, waits := times(&h, "a", "hold the line")
		if rows+waits != 1 {
			t.Fatalf("%d times a row, %d times waiting: %+v", rows, waits, h)
		}
		if h.SessionInfo.HasActiveRun {
			if got := h.SessionInfo.ActiveRunIDs; len(got) != 1 || got[0] != "a" || rows != 1 {
				t.Errorf("active %v, %d rows", got, rows)
			}
			break
		}
	}
	w.model.waitFor(t, "hold the line")
	for i := range 3 {
		c.ok("chat.send", obj{"sessionKey": "s", "message": fmt.Sprint("next ", i), "idempotencyKey": fmt.Sprint("n", i), "queueMode": "followup"}, nil)
	}
	c.ok("chat.send", obj{"sessionKey": "t", "message": "hold elsewhere", "idempotencyKey": "t"}, nil)
	w.model.waitFor(t, "hold elsewhere")
	c.ok("chat.send", obj{"sessionKey": "t", "message": "steered", "idempotencyKey": "st", "queueMode": "steer"}, nil)
	h, _ := c.history(obj{})
	if h.PendingInputs.Total != 3 || h.PendingInputs.Items[0].RunID != "n0" || h.PendingInputs.Items[2].Text != "next 2" {
		t.Errorf("%+v", h.PendingInputs)
	}
	h, _ = c.history(obj{"sessionKey": "t"})
	if _, waits := times(&h, "st", "steered"); waits != 1 {
		t.Errorf("a steered message: %+v", h.PendingInputs)
	}
	stop := make(chan struct{})
	watched := make(chan error, 1)
	other := w.user()
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
			}
			var h protocol.History
			f := other.call("chat.history", obj{"sessionKey": "s"})
			if err := json.Unmarshal(f.Payload, &h); err != nil {
				watched <- err
				return
			}
			for i := range 3 {
				rows, waits := times(&h, fmt.Sprint("n", i), fmt.Sprint("next ", i))
				if rows+waits != 1 {
					watched <- fmt.Errorf("message %d: %d times a row, %d times waiting", i, rows, waits)
					return
				}
			}
		}
	}()
	defer func() {
		close(stop)
		if err := <-watched; err != nil {
			t.Error(err)
		}
	}()
	w.model.release()
	w.idle(key)
	h, _ = c.history(obj{})
	if len(h.Messages) != 8 || h.PendingInputs.Total != 0 {
		t.Errorf("%d messages, %d waiting", len(h.Messages), h.PendingInputs.Total)
	}
}

// TestHistory_PagesMeetExactly: whatever the page size, pages give every message
// once, in order, and say when there is no more.
func TestHistory_PagesMeetExactly(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	var rows []transcript.Entry
	for i := range 75 {
		rows = append(rows, said(model.User, fmt.Sprint("m", i)))
		if i%10 == 3 {
			rows = append(rows, transcript.Entry{Role: model.Assistant, Silent: true, Content: []model.Block{{Type: model.Text, Text: "NO_REPLY"}}},
				transcript.Entry{Type: transcript.Custom})
		}
	}
	w.write(key, rows...)
	for _, limit := range []int{1, 7, 75, 200} {
		var all []string
		offset := int64(0)
		for pages := 0; ; pages++ {
			if pages > 100 {
				t.Fatal("pages do not end")
			}
			h, _ := c.history(obj{"limit": limit, "offset": offset})
			if len(h.Messages) > limit || h.TotalMessages != int64(len(rows)) {
				t.Errorf("%d messages of %d", len(h.Messages), h.TotalMessages)
			}
			var page []string
			for _, r := range h.Messages {
				page = append(page, strings.Trim(string(r.Content), `"`))
			}
			all = append(page, all...)
			if !h.HasMore {
				break
			}
			if h.NextOffset <= offset {
				t.Fatalf("next offset %d after %d", h.NextOffset, offset)
			}
			if oldest := h.Messages[0].Openclaw.Seq; h.NextOffset < h.TotalMessages-oldest+1 {
				t.Errorf("oldest %d of %d, next offset %d", oldest, h.TotalMessages, h.NextOffset)
			}
			offset = h.NextOffset
		}
		if len(all) != 75 {
			t.Fatalf("limit %d: %d messages", limit, len(all))
		}
		for i, s := range all {
			if s != fmt.Sprint("m", i) {
				t.Fatalf("limit %d: message %d is %s", limit, i, s)
			}
		}
	}
}

// TestS4_HistoryFitsItsFrame: long texts, escapes and many rows: a frame stays under
// the limit, text is cut between characters, and the newest message is always there.
func TestS4_HistoryFitsItsFrame(t *testing.T) {
	t.Parallel()
	const limit = 20_000
	w := setup(t, noRunner, settings(func(s *wiring.Settings) { s.MaxFrame = limit }))
	c := w.user()
	huge := map[string]string{"escapes": strings.Repeat("\x01\"", 8_000), "wide": strings.Repeat("🦀ü", 12_000), "plain": strings.Repeat("x", 100_000)}
	for name, text := range huge {
		k := "agent:main:" + name
		var rows []transcript.Entry
		for range 20 {
			rows = append(rows, said(model.User, text))
		}
		rows = append(rows,
			transcript.Entry{Role: model.Assistant, Content: []model.Block{
				{Type: model.Thinking, Thinking: text},
				{Type: model.Text, Text: text},
				{Type: model.ToolCall, ID: "c", Name: "read", Arguments: mustJSON(t, map[string]string{"path": text})},
			}},
			transcript.Entry{Role: model.ToolResult, ToolCallID: "c", ToolName: "read", Content: []model.Block{{Type: model.Text, Text: text}}})
		for len(rows) > 0 {
			n := min(5, len(rows))
			w.write(k, rows[:n]...)
			rows = rows[n:]
		}
		w.accept(t, k, 10, text[:9_000])
		for _, params := range []obj{{}, {"maxChars": 500_000}, {"maxBytes": 1024}, {"limit": 3}, {"offset": 2, "maxChars": 20}} {
			params["sessionKey"] = k
			f := c.call("chat.history", params)
			if !f.OK {
				t.Fatal(f.Err)
			}
			if len(f.Payload) > limit || !utf8.Valid(f.Payload) {
				t.Errorf("%s %v: %d bytes", name, params, len(f.Payload))
			}
			var h protocol.History
			into(t, f, &h)
			if all := params["maxChars"] == 20; len(h.Messages) == 0 || h.HasMore == all || (h.NextOffset == 0) != all {
				t.Errorf("%s %v: %d messages, more %v", name, params, len(h.Messages), h.HasMore)
			}
			last := h.Messages[len(h.Messages)-1]
			if !last.Openclaw.Truncated || strings.Contains(string(last.Content), "�") || !strings.Contains(string(last.Content), "[cut]") {
				t.Errorf("%s %v: the newest row: %.200s", name, params, last.Content)
			}
			if h.PendingInputs.Total != 10 || len(h.PendingInputs.Items) != 10 {
				t.Errorf("%s: %d inputs wait", name, h.PendingInputs.Total)
			}
		}
		for method, params := range map[string]obj{"sessions.get": {"key": k}, "sessions.preview": {"keys": []string{k, k, k}, "maxChars": 500_000}} {
			f := c.call(method, params)
			if !f.OK || len(f.Payload) > limit {
				t.Errorf("%s of %s: ok %v, %d bytes", method, name, f.OK, len(f.Payload))
			}
		}
	}
}

func mustJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return b
}

// accept leaves messages waiting in a session.
func (w *world) accept(t *testing.T, key string, n int, text string) {
	t.Helper()
	c := w.user()
	for i := range n {
		c.ok("agent", obj{"sessionKey": key, "message": text, "idempotencyKey": fmt.Sprint(key, i)}, nil)
	}
}

func TestHistory_RowsOfATurnWithTools(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	w.write(key,
		said(model.User, "look"),
		transcript.Entry{Role: model.Assistant, RunID: "k", StopReason: "toolUse", Provider: "fake", Model: "fake-1", Usage: &model.Usage{Input: 3, Output: 4, Total: 7}, Content: []model.Block{
			{Type: model.Thinking, Thinking: "hm", Signature: "proof"},
			{Type: model.ToolCall, ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)},
		}},
		transcript.Entry{Role: model.ToolResult, ToolCallID: "c1", ToolName: "read", IsError: true, Content: []model.Block{{Type: model.Text, Text: "no such file"}}},
		transcript.Entry{Role: model.User, Content: []model.Block{{Type: model.Text, Text: "see"}, {Type: model.Image, MimeType: "image/png", Data: []byte("pixels")}}},
		transcript.Entry{Role: model.Assistant, StopReason: "error", Error: "the model is out", Content: nil},
		transcript.Entry{Role: model.Assistant, Content: []model.Block{{Type: model.Text, Text: "done\n\nNO_REPLY"}}},
	)
	h, _ := c.history(obj{})
	want := []string{
		`"look"`,
		`[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}]`,
		`[{"type":"text","text":"no such file"}]`,
		`[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png"}]`,
		`[]`,
		`[{"type":"text","text":"done"}]`,
	}
	if len(h.Messages) != len(want) {
		t.Fatalf("%d rows", len(h.Messages))
	}
	for i, r := range h.Messages {
		if string(r.Content) != want[i] {
			t.Errorf("row %d: %s, want %s", i, r.Content, want[i])
		}
	}
	call, result := h.Messages[1], h.Messages[2]
	if call.StopReason != "toolUse" || call.Usage == nil || call.Usage.TotalTokens != 7 || call.Provider != "fake" {
		t.Errorf("call %+v", call)
	}
	if result.Role != "toolResult" || result.ToolCallID != "c1" || result.ToolName != "read" || !result.IsError {
		t.Errorf("result %+v", result)
	}
	if h.Messages[4].ErrorMessage != "the model is out" {
		t.Errorf("failed %+v", h.Messages[4])
	}
}

// TestHistory_ACursorGivesWhatCameAfterIt, and says so where it cannot.
func TestHistory_ACursorGivesWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "a", "one")
	w.idle(key)
	h, _ := c.history(obj{})
	if h.DeltaCursor == "" {
		t.Fatal("no cursor")
	}
	c.says("s", "b", "two")
	w.idle(key)
	var d protocol.HistoryDelta
	c.ok("chat.history", obj{"sessionKey": "s", "cursor": h.DeltaCursor}, &d)
	if d.Kind != "delta" || len(d.Messages) != 2 || d.Messages[0].IdempotencyKey != "b:user" || d.Messages[0].Openclaw.Seq != 3 || d.SessionInfo == nil {
		t.Errorf("%+v", d)
	}
	last := d.DeltaCursor
	c.ok("chat.history", obj{"sessionKey": "s", "cursor": last}, &d)
	if d.Kind != "delta" || len(d.Messages) != 0 {
		t.Errorf("nothing new: %+v", d)
	}
	for _, cur := range []string{"nonsense", "1.2", "-1.5.x", "0.99." + h.SessionID, "0.1.other"} {
		f := c.call("chat.history", obj{"sessionKey": "s", "cursor": cur})
		if string(f.Payload) != `{"kind":"reset"}` {
			t.Errorf("%s: %s", cur, f.Payload)
		}
	}
	if f := c.call("chat.history", obj{"sessionKey": "s", "cursor": h.DeltaCursor, "limit": 1}); string(f.Payload) != `{"kind":"reset"}` {
		t.Errorf("more than the caller wants: %s", f.Payload)
	}
	c.ok("sessions.reset", obj{"key": "s"}, nil)
	if f := c.call("chat.history", obj{"sessionKey": "s", "cursor": last}); string(f.Payload) != `{"kind":"reset"}` {
		t.Errorf("after a reset: %s", f.Payload)
	}
}

// TestHistory_ACompactionHidesNothing: people see what was said; only a reset ends
// the view.
func TestHistory_ACompactionHidesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	w.write(key, said(model.User, "long ago"))
	c.ok("sessions.reset", obj{"key": "s"}, nil)
	w.write(key, said(model.User, "before"), said(model.Assistant, "yes"), transcript.Entry{Type: transcript.Compaction, Summary: "sum", FirstKept: 4}, said(model.User, "after"))
	_, err := w.store.Write(context.Background(), setBase(w.ref(key), 4))
	must(t, err)
	h, _ := c.history(obj{})
	var got []string
	for _, r := range h.Messages {
		got = append(got, string(r.Content))
	}
	if strings.Join(got, " ") != `"before" [{"type":"text","text":"yes"}] "after"` || h.HasMore {
		t.Errorf("%s, more %v", got, h.HasMore)
	}
}

func TestHistory_OfAnEarlierTranscript(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	c.says("s", "a", "one")
	old := w.idle(key).SessionID
	req := c.post("agent", obj{"sessionKey": "s", "sessionId": "another", "message": "two", "idempotencyKey": "b"})
	c.answer(req, 2)
	if m := w.idle(key); m.SessionID != "another" {
		t.Fatalf("session id %s", m.SessionID)
	}
	for id, want := range map[string]string{"": `"two"`, "another": `"two"`, old: `"one"`} {
		params := obj{}
		if id != "" {
			params["sessionId"] = id
		}
		h, _ := c.history(params)
		if len(h.Messages) != 2 || string(h.Messages[0].Content) != want {
			t.Errorf("%q: %+v", id, h.Messages)
		}
	}
	if h, _ := c.history(obj{"sessionId": "never"}); len(h.Messages) != 0 {
		t.Errorf("%+v", h.Messages)
	}
}
