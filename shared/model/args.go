package model

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"laneway/shared/id"
)

// Args makes a tool call's arguments of the text that a model wrote. They are
// always valid JSON, because they are stored and sent inside JSON: no text gives
// {}, and text that is no JSON becomes a JSON string, which no tool's schema
// accepts, so that the model is told instead of something half-written being run.
func Args(text string) json.RawMessage {
	t := strings.TrimSpace(text)
	if t == "" {
		return json.RawMessage("{}")
	}
	if json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	b, err := json.Marshal(text)
	if err != nil { // a string always marshals
		return json.RawMessage("{}")
	}
	return b
}

// ArgsText is what the model wrote, as Args took it. (A JSON string that the model
// itself wrote loses its quotes: no schema of arguments takes one anyway.)
func ArgsText(args json.RawMessage) string {
	t := bytes.TrimSpace(args)
	if len(t) == 0 {
		return "{}"
	}
	var s string
	if t[0] == '"' && json.Unmarshal(t, &s) == nil {
		return s
	}
	return string(t)
}

// ArgsObject is ArgsText for providers that only take an object: anything else
// is put into one.
func ArgsObject(args json.RawMessage) json.RawMessage {
	t := bytes.TrimSpace(args)
	if len(t) > 0 && t[0] == '{' && json.Valid(t) {
		return json.RawMessage(t)
	}
	if len(t) == 0 || bytes.Equal(t, []byte("null")) {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(map[string]string{"arguments": ArgsText(args)})
	if err != nil { // strings always marshal
		return json.RawMessage("{}")
	}
	return b
}

// PlainCallID is a tool call's id for providers that take only letters, digits, _
// and -, at most 64 of them. An id that is like that stays; any other, as another
// provider may have made it, is replaced, each always by the same.
func PlainCallID(s string) string {
	plain := s != "" && len(s) <= 64
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "call_" + id.Hash("tool-call", s)
}

// CallIDs are the ids of tool calls that are taken.
type CallIDs map[string]int

// Own takes an id for a call: its own, or where another call has that one, one made from
// it, always the same for the same calls in a row.
func (c CallIDs) Own(s string) string {
	own := s
	for c[own] > 0 {
		c[s]++
		own = s + "_" + strconv.Itoa(c[s])
	}
	c[own] = 1
	return own
}
