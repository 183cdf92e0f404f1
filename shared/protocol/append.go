package protocol

import "strconv"

// The payloads that make up a stream encode themselves: they are sent for every
// few characters of a reply, and what they carry is JSON already.

// appender is a value that knows its JSON form.
type appender interface{ AppendJSON(dst []byte) []byte }

// AppendJSON appends the event's JSON form; Data must be valid JSON.
func (e AgentEvent) AppendJSON(dst []byte) []byte {
	dst = appendText(append(dst, '{'), "runId", e.RunID)
	dst = appendInt(append(dst, ','), "seq", e.Seq)
	dst = appendText(append(dst, ','), "stream", e.Stream)
	dst = appendInt(append(dst, ','), "ts", e.TS)
	dst = append(dst, `,"data":`...)
	if len(e.Data) == 0 {
		dst = append(dst, "{}"...) // clients read members of it without looking
	} else {
		dst = append(dst, e.Data...)
	}
	dst = appendOptional(dst, "sessionKey", e.SessionKey)
	dst = appendOptional(dst, "sessionId", e.SessionID)
	dst = appendOptional(dst, "agentId", e.AgentID)
	dst = appendOptional(dst, "spawnedBy", e.SpawnedBy)
	if e.IsHeartbeat {
		dst = append(dst, `,"isHeartbeat":true`...)
	}
	return append(dst, '}')
}

// AppendJSON appends the JSON form.
func (a AssistantText) AppendJSON(dst []byte) []byte {
	dst = appendText(append(dst, '{'), "text", a.Text)
	dst = appendText(append(dst, ','), "delta", a.Delta)
	dst = appendOptional(dst, "itemId", a.ItemID)
	if a.Replace {
		dst = append(dst, `,"replace":true`...)
	}
	return append(dst, '}')
}

func appendName(dst []byte, name string) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendText(dst []byte, name, s string) []byte { return AppendString(appendName(dst, name), s) }

func appendOptional(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return appendText(append(dst, ','), name, s)
}

func appendInt(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendName(dst, name), n, 10)
}
