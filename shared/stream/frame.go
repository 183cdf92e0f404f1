package stream

import (
	"strconv"

	"laneway/shared/protocol"
)

// frames writes the frames of one run. They are appended by hand: a delta must be
// on its way within microseconds.
type frames struct {
	agent, chat []byte // up to the first member that differs between events
	sessionID   []byte // the member for lifecycle events, or nothing
	max         int    // bytes of a frame
	room        int    // bytes that encoded text may take in a frame
}

func newFrames(i *Info, limit int) *frames {
	common := func(event string) []byte {
		b := append([]byte(`{"type":"event","event":"`), event...)
		b = append(b, `","payload":{"runId":`...)
		b = protocol.AppendString(b, i.RunID)
		b = member(b, "sessionKey", i.SessionKey)
		b = member(b, "agentId", i.AgentID)
		return member(b, "spawnedBy", i.Spawned)
	}
	f := &frames{agent: common("agent"), chat: common("chat"), max: limit}
	if i.Heartbeat {
		f.agent = append(f.agent, `,"isHeartbeat":true`...)
	}
	if i.Lane != "main" {
		f.agent = member(f.agent, "lane", i.Lane)
	}
	f.sessionID = member(nil, "sessionId", i.SessionID)
	// What is around a text: at most 200 bytes of members, an id and two numbers.
	f.room = limit - len(f.agent) - len(f.sessionID) - 400
	return f
}

// member appends a member unless its value is empty.
func member(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	return protocol.AppendString(b, value)
}

// event is the frame of an agent event; data that is too large is made smaller.
func (f *frames) event(stream string, data []byte, seq, ts int64) []byte {
	data = fit(stream, data, f.room)
	b := make([]byte, 0, len(f.agent)+len(f.sessionID)+len(data)+128)
	b = append(b, f.agent...)
	if stream == lifecycleStream {
		b = append(b, f.sessionID...)
	}
	b = append(b, `,"stream":`...)
	b = protocol.AppendString(b, stream)
	b = append(b, `,"data":`...)
	b = append(b, data...)
	return end(b, seq, ts)
}

// end closes an agent event.
func end(b []byte, seq, ts int64) []byte {
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, `,"ts":`...)
	b = strconv.AppendInt(b, ts, 10)
	return append(b, `}}`...)
}

// chatEvent is the frame of a chat event with these members.
func (f *frames) chatEvent(members []byte, seq int64) []byte {
	members = fit(ChatStream, members, f.room)
	b := make([]byte, 0, len(f.chat)+len(members)+64)
	b = append(b, f.chat...)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	if len(members) > 2 {
		b = append(b, ',')
	}
	b = append(b, members[1:]...) // with its closing brace: that of the payload
	return append(b, '}')
}

// piece is what one frame says of a text: encoded text whole (nil: left out) and
// delta, as they are.
type piece struct {
	whole, delta []byte
	withWhole    bool
	replace      bool
}

// textEvent is the frame of an assistant or thinking delta.
func (f *frames) textEvent(stream, itemID string, p piece, seq, ts int64) []byte {
	b := make([]byte, 0, len(f.agent)+len(p.whole)+len(p.delta)+len(itemID)+160)
	b = append(b, f.agent...)
	b = append(b, `,"stream":"`...)
	b = append(b, stream...)
	b = append(b, `","data":`...)
	b = textData(b, itemID, p)
	return end(b, seq, ts)
}

// textData appends the data of an assistant or thinking event.
func textData(b []byte, itemID string, p piece) []byte {
	b = append(b, '{')
	if p.withWhole {
		b = append(b, `"text":"`...)
		b = append(b, p.whole...)
		b = append(b, `",`...)
	}
	b = append(b, `"delta":"`...)
	b = append(b, p.delta...)
	b = append(b, '"')
	b = member(b, "itemId", itemID)
	if p.replace {
		b = append(b, `,"replace":true`...)
	}
	return append(b, '}')
}

// chatDelta is the frame of a chat delta.
func (f *frames) chatDelta(p piece, seq, ts int64) []byte {
	b := make([]byte, 0, len(f.chat)+len(p.whole)+len(p.delta)+224)
	b = append(b, f.chat...)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, `,"state":"delta","deltaText":"`...)
	b = append(b, p.delta...)
	b = append(b, '"')
	if p.replace {
		b = append(b, `,"replace":true`...)
	}
	if p.withWhole {
		b = append(b, `,"message":{"role":"assistant","content":[{"type":"text","text":"`...)
		b = append(b, p.whole...)
		b = append(b, `"}],"timestamp":`...)
		b = strconv.AppendInt(b, ts, 10)
		b = append(b, '}')
	}
	return append(b, `}}`...)
}
