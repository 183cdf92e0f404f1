package stream

import (
	"encoding/json"

	"laneway/shared/protocol"
)

// ChatStream is the Event.Stream of a chat event.
const ChatStream = "chat"

// CapTools is the capability of connections that get the tool streams (S6).
const CapTools = "tool-events"

// Streams of agent events that this package knows by name.
const (
	lifecycleStream = "lifecycle"
	assistantStream = "assistant"
	thinkingStream  = "thinking"
)

// Event is an event that must be delivered.
type Event struct {
	// Stream is the stream of an agent event, or ChatStream.
	Stream string
	// Data has the JSON form of an object: the event's data, or, of a chat event, its
	// members beside runId, sessionKey, agentId and seq, so state first of all. A
	// json.RawMessage must be valid.
	Data any

	end bool
}

// Agent is an agent event.
func Agent(stream string, data any) Event { return Event{Stream: stream, Data: data} }

// Chat is a chat event.
func Chat(members any) Event { return Event{Stream: ChatStream, Data: members} }

// EndMessage is the end of the assistant message that is being streamed: an
// assistant event with its whole text and whatever of it was not sent yet. In
// Prepare it is left out if the message has no text.
func EndMessage() Event { return Event{Stream: assistantStream, end: true} }

// toolStreams go to connections with CapTools only, and show what a tool does: the
// text before it must be out before they are.
var toolStreams = map[string]bool{"tool": true, "item": true, "command_output": true, "patch": true}

// quietStreams are informational events that need no text before them.
var quietStreams = map[string]bool{"usage": true, "run_status": true, lifecycleStream: true}

// encode gives the JSON object of v.
func encode(v any) (json.RawMessage, error) {
	if v == nil {
		return json.RawMessage("{}"), nil
	}
	b, err := protocol.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(b) < 2 || b[0] != '{' {
		return nil, errNoObject
	}
	return b, nil
}
