package transcript

import (
	"slices"

	"laneway/shared/model"
)

// MissingResult is what a model is told about a call whose result is not known to
// the transcript.
const MissingResult = "[laneway] no result was recorded for this tool call; its outcome is unknown."

// AbortedMarker stands in the conversation for a reply that was stopped before it
// called anything.
const AbortedMarker = "[The previous reply was stopped before it was finished.]"

// Project makes the conversation that a model sees: entries after the last reset,
// a compaction's summary and kept tail, without custom entries, and repaired
// (results directly behind their calls, one for each, none without a call, no id twice).
func Project(entries []Entry) []model.Message {
	entries = visible(entries)
	out := make([]model.Message, 0, len(entries))
	results, taken := collect(entries), make(model.CallIDs)
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Type == Compaction:
			out = append(out, text(model.User, "Summary of the conversation so far:\n"+e.Summary))
		case e.Type == Custom || e.Role == model.ToolResult:
			// Results are placed behind their calls.
		case e.Role == model.Assistant:
			out = assistant(out, e, results, taken)
		case e.Type == Message || e.Type == CustomMessage:
			out = append(out, model.Message{Role: model.User, Content: e.Content})
		}
	}
	return out
}

// visible cuts what lies before the last boundary.
func visible(entries []Entry) []Entry {
	for i := range slices.Backward(entries) {
		switch entries[i].Type {
		case Message, Custom, CustomMessage: // no boundary
		case Reset:
			return entries[i+1:]
		case Compaction:
			first := entries[i].FirstKept
			out := []Entry{entries[i]}
			for j := range entries {
				if entries[j].Seq >= first && entries[j].Seq != entries[i].Seq && entries[j].Type != Reset {
					out = append(out, entries[j])
				}
			}
			return out
		}
	}
	return entries
}

// callKey tells calls of different messages apart: models repeat their ids.
type callKey struct {
	message int64 // sequence of the assistant row
	id      string
}

// collect finds the result of each call: the first row with its id behind the
// assistant row and before the next one that has the same id.
func collect(entries []Entry) map[callKey]*Entry {
	owner := make(map[string]int64)
	out := make(map[callKey]*Entry)
	for i := range entries {
		e := &entries[i]
		if e.Role == model.Assistant && !e.cut() {
			for _, b := range e.Content {
				if b.Type == model.ToolCall {
					owner[b.ID] = e.Seq
				}
			}
		}
		if e.Role != model.ToolResult {
			continue
		}
		seq, ok := owner[e.ToolCallID]
		if k := (callKey{seq, e.ToolCallID}); ok && out[k] == nil {
			out[k] = e
		}
	}
	return out
}

// assistant adds a message and the results of its calls. Some providers refuse an id that
// an earlier call has, taken, and other providers' models repeat theirs.
func assistant(out []model.Message, e *Entry, results map[callKey]*Entry, taken model.CallIDs) []model.Message {
	if e.cut() {
		return append(out, text(model.Assistant, AbortedMarker))
	}
	if len(e.Content) == 0 {
		return out
	}
	m := model.Message{Role: model.Assistant, StopReason: e.StopReason, Content: e.Content}
	at := len(out)
	out = append(out, m)
	for i, b := range m.Content {
		if b.Type != model.ToolCall {
			continue
		}
		own := taken.Own(b.ID)
		if own != b.ID {
			out[at].Content = slices.Clone(out[at].Content)
			out[at].Content[i].ID = own
		}
		r := model.Message{Role: model.ToolResult, ToolCallID: own, ToolName: b.Name}
		if res := results[callKey{e.Seq, b.ID}]; res != nil {
			r.Content, r.IsError = res.Content, res.IsError
		} else {
			r.Content, r.IsError = []model.Block{{Type: model.Text, Text: MissingResult}}, true
		}
		out = append(out, r)
	}
	return out
}

// cut says whether a message was stopped before its end. Calls inside it were never
// begun: they get no results and are not replayed.
func (e *Entry) cut() bool {
	return e.StopReason == "aborted" || e.StopReason == "error" || e.Abort != nil
}

func text(role model.Role, s string) model.Message {
	return model.Message{Role: role, Content: []model.Block{{Type: model.Text, Text: s}}}
}

// OpenCalls lists the calls of the last assistant message that have no result, in
// their order. A commit of anything but results must close them first.
func OpenCalls(entries []Entry) []model.Block {
	for i := range slices.Backward(entries) {
		e := &entries[i]
		if e.Role != model.Assistant {
			continue
		}
		if e.cut() {
			return nil
		}
		have := make(map[string]bool)
		for _, r := range entries[i+1:] {
			if r.Role == model.ToolResult {
				have[r.ToolCallID] = true
			}
		}
		var open []model.Block
		for _, b := range e.Content {
			if b.Type == model.ToolCall && !have[b.ID] {
				open = append(open, b)
			}
		}
		return open
	}
	return nil
}
