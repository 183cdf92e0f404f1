package loop

import (
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/stream"
	"laneway/shared/tool"
)

func lifecycle(phase string, kv ...any) stream.Event {
	d := map[string]any{"phase": phase}
	for i := 0; i+1 < len(kv); i += 2 {
		d[kv[i].(string)] = kv[i+1]
	}
	return stream.Event{Stream: "lifecycle", Data: d}
}

// terminalEvents are the last events of a run: its lifecycle end, then the chat's.
func terminalEvents(st *run.Status, text string) []stream.Event {
	o := st.Outcome
	d := map[string]any{"startedAt": st.StartedAt, "endedAt": st.EndedAt, "executionSettled": true}
	if o.StopReason != "" {
		d["stopReason"] = o.StopReason
	}
	chat := stream.Chat{Text: text, StopReason: o.StopReason, Usage: o.Usage, Silent: o.Kind == run.OK && len(o.Payloads) == 0}
	switch o.Kind {
	case run.OK:
		d["phase"], d["aborted"], d["livenessState"] = "end", false, "working"
		chat.State = "final"
	case run.Aborted:
		d["phase"], d["aborted"], d["status"] = "end", true, "cancelled"
		chat.State = "aborted"
	case run.Timeout:
		d["phase"], d["aborted"], d["status"] = "end", true, "timeout"
		d["timeoutPhase"], d["providerStarted"] = o.TimeoutPhase, o.ProviderStarted
		chat.State, chat.ErrorMessage, chat.ErrorKind = "error", o.Error, "timeout"
	default:
		d["phase"], d["error"], d["livenessState"] = "error", o.Error, "blocked"
		d["errorObservation"] = map[string]any{"provider": o.Provider, "model": o.Model, "failoverReason": o.ErrorKind}
		chat.State, chat.ErrorMessage, chat.ErrorKind = "error", o.Error, chatErrorKind(o.ErrorKind)
	}
	return []stream.Event{{Stream: "lifecycle", Data: d}, chat.Event()}
}

// chatErrorKind maps a class to the closed list of the chat event.
func chatErrorKind(class string) string {
	switch model.Class(class) {
	case model.Timeout:
		return "timeout"
	case model.RateLimit, model.Overloaded:
		return "rate_limit"
	case model.ContextOverflow:
		return "context_length"
	}
	return "unknown"
}

func toolStart(b model.Block, at int64) []stream.Event {
	return []stream.Event{
		{Stream: "tool", Data: map[string]any{"phase": "start", "name": b.Name, "toolCallId": b.ID, "args": tool.RedactArgs(b.Arguments)}},
		{Stream: "item", Data: map[string]any{
			"itemId": "tool:" + b.ID, "toolCallId": b.ID, "name": b.Name, "kind": "tool", "phase": "start",
			"title": b.Name, "status": "running", "startedAt": at,
		}},
	}
}

func toolUpdate(b model.Block, partial tool.Result) map[string]any {
	return map[string]any{"phase": "update", "name": b.Name, "toolCallId": b.ID, "partialResult": tool.ForEvent(partial)}
}

func toolResult(b model.Block, r tool.Result, began, ended int64) []stream.Event {
	status := "completed"
	if r.IsError {
		status = "failed"
	}
	data := map[string]any{"phase": "result", "name": b.Name, "toolCallId": b.ID, "isError": r.IsError, "commandBearing": b.Name == "exec", "result": tool.ForEvent(r)}
	item := map[string]any{
		"itemId": "tool:" + b.ID, "toolCallId": b.ID, "name": b.Name, "kind": "tool", "phase": "end",
		"title": b.Name, "status": status, "startedAt": began, "endedAt": ended,
	}
	if r.Meta != "" {
		data["meta"], item["meta"] = r.Meta, r.Meta
	}
	return []stream.Event{{Stream: "tool", Data: data}, {Stream: "item", Data: item}}
}
