package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"laneway/shared/chars"
	"laneway/shared/model"
)

const (
	eventTextCap  = 8000   // chars of one text block
	eventTotalCap = 32_000 // chars of all text blocks together
	eventArgsCap  = 32_768 // bytes of the arguments
	errorLineCap  = 400    // chars of an error's first line
	shortString   = 400    // chars of a string in arguments that are too long as a whole
	maxDepth      = 8
	eventCutMark  = "\n…(truncated)…"
)

// EventResult is a result as clients see it in events: bounded, without secrets
// and without the bytes of images.
type EventResult struct {
	Content []EventBlock   `json:"content"`
	Details map[string]any `json:"details,omitempty"`
}

// EventBlock is a text, or an image without its bytes.
type EventBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Bytes    int    `json:"bytes,omitempty"`
	Omitted  bool   `json:"omitted,omitempty"`
}

// ForEvent makes the view of a result that may leave in an event.
func ForEvent(r Result) EventResult {
	e := EventResult{Content: []EventBlock{}, Details: PersistDetails(r.Details)}
	left := eventTotalCap
	for _, b := range r.Content {
		switch b.Type {
		case model.Image:
			e.Content = append(e.Content, EventBlock{Type: "image", MimeType: b.MimeType, Bytes: len(b.Data), Omitted: true})
		case model.Text:
			if left <= 0 {
				continue
			}
			text := eventText(b.Text, min(eventTextCap, left))
			left -= chars.Count(text)
			e.Content = append(e.Content, EventBlock{Type: "text", Text: text})
		default: // nothing else is a tool's to say
		}
	}
	return e
}

// ErrorLine is the first line of an error result, bounded and without secrets;
// empty for a result that is none.
func ErrorLine(r Result) string {
	if !r.IsError {
		return ""
	}
	for _, b := range r.Content {
		if b.Type != model.Text {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(b.Text), "\n")
		return chars.Head(eventText(line, eventTextCap), errorLineCap)
	}
	return ""
}

// ArgsForEvent makes the view of a call's arguments that may leave in an event. It
// is always JSON, also if what the model wrote is not.
func ArgsForEvent(args json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || decoder.More() {
		value = string(args)
	}
	for _, limit := range []int{eventTextCap, shortString} {
		shown, err := json.Marshal(cleaner{limit: limit}.value("", value, 0))
		if err == nil && len(shown) <= eventArgsCap {
			return shown
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"omitted":true,"bytes":%d}`, len(args)))
}

// cleaner makes values fit to be shown.
type cleaner struct{ limit int } // chars of one string

func (c cleaner) value(key string, v any, depth int) any {
	switch v := v.(type) {
	case string:
		switch {
		case v != "" && secretName(key):
			return mask
		case key == "encrypted_content":
			return fmt.Sprintf("[opaque data omitted: %d chars]", chars.Count(v))
		}
		return eventText(v, c.limit)
	case []byte:
		return fmt.Sprintf("[binary omitted: %d chars]", len(v))
	case map[string]any:
		if depth >= maxDepth {
			return "[nested data omitted]"
		}
		out := make(map[string]any, len(v))
		for name, inner := range v {
			if secretName(key) { // everything below a secret name is one
				name, inner = key, fmt.Sprint(inner)
			}
			out[name] = c.value(name, inner, depth+1)
		}
		return out
	case []any:
		if depth >= maxDepth {
			return "[nested data omitted]"
		}
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = c.value(key, inner, depth+1)
		}
		return out
	}
	return v
}

// eventText cleans a text and cuts it to limit chars, the mark included.
func eventText(text string, limit int) string {
	if isBinary(text) {
		return fmt.Sprintf("[binary omitted: %d chars]", chars.Count(text))
	}
	// Secrets are looked for in more than is shown, so that the cut does not
	// leave the recognisable half of one behind.
	window := chars.Head(text, limit+4096)
	cut := len(window) < len(text)
	window = redact(dataURI.ReplaceAllStringFunc(window, func(uri string) string {
		return fmt.Sprintf("[inline data URI: %d chars]", len(uri))
	}))
	if !cut && chars.Fits(window, limit) {
		return window
	}
	return chars.Head(window, limit-chars.Count(eventCutMark)) + eventCutMark
}

var dataURI = regexp.MustCompile(`data:[a-zA-Z0-9]+/[a-zA-Z0-9.+-]+(?:;[a-zA-Z0-9=-]+)*;base64,[A-Za-z0-9+/=_-]{16,}`)

// isBinary says whether a string is no text: it has a zero byte, or more than a
// tenth of its start are bytes that no text has.
func isBinary(s string) bool {
	const sample = 4096
	odd, seen := 0, 0
	for i := 0; i < len(s) && seen < sample; seen++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0:
			return true
		case r == utf8.RuneError, r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\x1b':
			odd++
		}
		i += size
	}
	return odd*10 > seen
}
