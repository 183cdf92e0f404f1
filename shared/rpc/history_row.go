package rpc

import (
	"encoding/json"
	"strings"

	"laneway/shared/chars"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/reply"
	"laneway/shared/run"
	"laneway/shared/transcript"
)

const (
	// minRow is room for the newest row whatever a caller asks for.
	minRow = 512
	// cutMark ends a text that was cut.
	cutMark = "\n[cut]"
)

// shown says whether clients see a row. Boundaries, custom entries and replies that
// were the silent token are not for them.
func shown(e *transcript.Entry) bool {
	if e.Type != transcript.Message || e.Silent {
		return false
	}
	if e.Role != model.Assistant || e.Error != "" {
		return true
	}
	for _, b := range e.Content {
		if b.Type != model.Text || reply.Strip(b.Text) != "" {
			return true
		}
	}
	return false
}

// historyRow is a row as clients see it, each text cut to so many characters.
func historyRow(e *transcript.Entry, most int) protocol.HistoryRow {
	r := protocol.HistoryRow{
		Role: string(e.Role), Timestamp: e.At, ToolCallID: e.ToolCallID, ToolName: e.ToolName, IsError: e.IsError,
		Provider: e.Provider, Model: e.Model, StopReason: e.StopReason, ErrorMessage: chars.Head(e.Error, most),
		Openclaw: protocol.RowMark{ID: e.ID, RunID: e.RunID},
	}
	if e.Key != "" && (e.Role == model.User || e.Abort != nil) {
		r.IdempotencyKey = e.Key
	}
	if u := e.Usage; u != nil {
		r.Usage = &protocol.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, TotalTokens: u.Total}
	}
	if a := e.Abort; a != nil {
		r.OpenclawAbort = &protocol.AbortMark{Aborted: a.Aborted, Origin: a.Origin, RunID: a.RunID}
	}
	if e.Role == model.User && onlyText(e.Content) {
		text, cut := cutText(e.Text(), most)
		r.Content, r.Openclaw.Truncated = protocol.StringContent(text), cut
		return r
	}
	parts := make([]protocol.ContentPart, 0, len(e.Content))
	for i := range e.Content {
		part, cut, ok := partOf(&e.Content[i], e.Role, most)
		if ok {
			parts = append(parts, part)
		}
		r.Openclaw.Truncated = r.Openclaw.Truncated || cut
	}
	var err error
	if r.Content, err = protocol.Marshal(parts); err != nil {
		// Stored arguments that are no JSON: the text says what was said.
		r.Content = protocol.TextContent(chars.Head(e.Text(), most))
	}
	return r
}

func onlyText(content []model.Block) bool {
	for _, b := range content {
		if b.Type != model.Text {
			return false
		}
	}
	return true
}

// partOf is one block; ok is false for what clients get nothing of.
func partOf(b *model.Block, role model.Role, most int) (part protocol.ContentPart, cut, ok bool) {
	switch b.Type {
	case model.Text:
		text := b.Text
		if role == model.Assistant {
			text = reply.Strip(text)
		}
		text, cut = cutText(text, most)
		return protocol.ContentPart{Type: "text", Text: text}, cut, text != "" || role != model.Assistant
	case model.Thinking:
		text, cut := cutText(b.Thinking, most)
		return protocol.ContentPart{Type: "thinking", Thinking: text}, cut, text != ""
	case model.ToolCall:
		args := b.Arguments
		if chars.Count(string(args)) > most {
			// A piece of JSON is none: its beginning goes as a text.
			text, _ := cutText(string(args), most)
			args, cut = protocol.StringContent(text), true
		}
		return protocol.ContentPart{Type: "toolCall", ID: b.ID, Name: b.Name, Arguments: args}, cut, true
	case model.Image:
		return protocol.ContentPart{Type: "image", MimeType: b.MimeType}, false, true
	}
	return part, false, false
}

func cutText(s string, most int) (string, bool) {
	if chars.Fits(s, most) {
		return s, false
	}
	return chars.Head(s, most) + cutMark, true
}

// userRow is the message of a run that has begun and has not written it yet.
func userRow(st *run.Status) protocol.HistoryRow {
	text, cut := cutText(st.Input.Message, defaultChars)
	return protocol.HistoryRow{
		Role: string(model.User), Content: protocol.StringContent(text), Timestamp: st.AcceptedAt,
		IdempotencyKey: protocol.UserRowKey(st.RunID),
		Openclaw:       protocol.RowMark{ID: protocol.UserRowKey(st.RunID), RunID: st.RunID, Truncated: cut},
	}
}

// cutRow makes a row fit into so many bytes: of all that it holds the text is left,
// and of that what there is room for.
func cutRow(r protocol.HistoryRow, room int) protocol.HistoryRow {
	text := textOf(r.Content)
	plain := len(r.Content) > 0 && r.Content[0] == '"'
	r.ErrorMessage, _ = protocol.TrimText(r.ErrorMessage, room/4)
	r.Openclaw.Truncated, r.Content = true, protocol.StringContent("")
	size, err := sizeOf(r)
	if err != nil {
		return r
	}
	text, _ = protocol.TrimText(text, max(0, room-size-len(cutMark)-40))
	if text += cutMark; plain {
		r.Content = protocol.StringContent(text)
	} else {
		r.Content = protocol.TextContent(text)
	}
	return r
}

// previewChars is how much of a message a list shows.
const previewChars = 240

func oneLine(s string) string {
	return chars.Head(strings.Join(strings.Fields(s), " "), previewChars)
}

// messageText is the visible text of a row: what a user or the agent said.
func messageText(e *transcript.Entry) string {
	switch {
	case !shown(e):
		return ""
	case e.Role == model.Assistant:
		return reply.Strip(e.Text())
	case e.Role == model.User:
		return e.Text()
	}
	return ""
}

// textOf is the text of a row's content in either form.
func textOf(content json.RawMessage) string {
	var whole string
	if json.Unmarshal(content, &whole) == nil {
		return whole
	}
	var parts []protocol.ContentPart
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
