package loop

import (
	"laneway/shared/model"
	"laneway/shared/stream"
	"laneway/shared/tool"
)

func lifecycleStart(at int64) stream.Event {
	return stream.Agent("lifecycle", map[string]any{"phase": "start", "startedAt": at})
}

// toolStart tells that a call begins. What a heartbeat's tools do is told to nobody.
func (a *attempt) toolStart(b model.Block, at int64) []stream.Event {
	if a.heartbeat() {
		return nil
	}
	return toolStart(b, at)
}

func (a *attempt) toolUpdate(b model.Block, partial tool.Result) {
	if !a.heartbeat() {
		a.out.Emit("tool", toolUpdate(b, partial))
	}
}

func toolStart(b model.Block, at int64) []stream.Event {
	return []stream.Event{
		{Stream: "tool", Data: map[string]any{"phase": "start", "name": b.Name, "toolCallId": b.ID, "args": tool.ArgsForEvent(b.Arguments)}},
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
