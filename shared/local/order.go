package local

import (
	"bytes"
	"strings"
	"sync"
)

// sequence lets frames of one connection begin in the order in which they were
// read, key by key: frames of different sessions do not wait for each other's
// commits. It belongs to the goroutine that reads.
type sequence struct {
	mu   sync.Mutex
	last map[string]chan struct{}
}

// next gives a place behind the last frame of the key. enter waits for one's turn;
// leave ends it and must be called.
func (s *sequence) next(key string) (enter, leave func()) {
	mine := make(chan struct{})
	s.mu.Lock()
	if s.last == nil {
		s.last = make(map[string]chan struct{})
	}
	before := s.last[key]
	s.last[key] = mine
	s.mu.Unlock()
	enter = func() {
		if before != nil {
			<-before
		}
	}
	leave = func() {
		s.mu.Lock()
		if s.last[key] == mine {
			delete(s.last, key)
		}
		s.mu.Unlock()
		close(mine)
	}
	return enter, leave
}

func unordered() {}

// orderedMethods are those whose effects are accepted in the order in which they
// were sent. They are quick: what takes long comes after their reply.
var orderedMethods = [][]byte{
	[]byte(`"connect"`), []byte(`"agent"`), []byte(`"chat.send"`), []byte(`"chat.abort"`), []byte(`"sessions.send"`),
	[]byte(`"sessions.subscribe"`), []byte(`"sessions.messages.subscribe"`),
}

var keyNames = [][]byte{[]byte(`"sessionKey"`), []byte(`"key"`)}

// scanned is how much of a frame is looked at for its method and session.
const scanned = 4 << 10

// orderKey says whether a frame is to keep its place, and among which others: those
// that name the same session, or, as an agent's main session has many names, none.
// It looks at the text without decoding it, and at its ends only: a frame that hides
// its method or session in the middle of a long text keeps its place among those
// without a session, which is all that is promised for it.
func orderKey(body []byte) (string, bool) {
	head, tail := body[:min(len(body), scanned)], body[max(0, len(body)-scanned):]
	found := false
	for _, m := range orderedMethods {
		if bytes.Contains(head, m) || bytes.Contains(tail, m) {
			found = true
			break
		}
	}
	if !found {
		return "", false
	}
	for _, part := range [][]byte{head, tail} {
		for _, name := range keyNames {
			if key := stringAfter(part, name); key != "" {
				return strings.ToLower(key), true
			}
		}
	}
	return "", true
}

// stringAfter is the string value that follows a member's name, as it is written.
func stringAfter(text, name []byte) string {
	_, rest, ok := bytes.Cut(text, name)
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t\r\n:")
	if len(rest) == 0 || rest[0] != '"' {
		return ""
	}
	value, _, ok := bytes.Cut(rest[1:], []byte{'"'})
	if !ok {
		return ""
	}
	return string(value)
}
