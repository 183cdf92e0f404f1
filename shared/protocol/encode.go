package protocol

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// AppendRequest appends a request frame, as clients send it. Params that are nil
// are left out.
func AppendRequest(dst []byte, id, method string, params any) ([]byte, error) {
	dst = append(dst, `{"type":"req","id":`...)
	dst = AppendString(dst, id)
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	dst, err := appendMember(dst, "params", params)
	return append(dst, '}'), err
}

// AppendResult appends an ok response. A payload that is a json.RawMessage must be
// valid JSON and is copied as it is; nil is left out.
func AppendResult(dst []byte, id string, payload any) ([]byte, error) {
	dst = appendResponse(dst, id, true)
	dst, err := appendMember(dst, "payload", payload)
	return append(dst, '}'), err
}

// AppendError appends a response that says what failed. It cannot fail itself:
// details that have no JSON form are left out.
func AppendError(dst []byte, id string, e *Error) []byte {
	return AppendFailure(dst, id, nil, e)
}

// AppendFailure is AppendError with a payload beside the error, which is how a
// failed agent run is answered. A payload without a JSON form is left out.
func AppendFailure(dst []byte, id string, payload any, e *Error) []byte {
	dst = appendResponse(dst, id, false)
	if with, err := appendMember(dst, "payload", payload); err == nil {
		dst = with
	}
	dst = append(dst, `,"error":`...)
	return append(appendErrorObject(dst, e), '}')
}

// AppendEvent appends an event frame. Frames carry no seq of their own: several
// writers post to one connection, and a gap makes clients reload.
func AppendEvent(dst []byte, event string, payload any) ([]byte, error) {
	dst = append(dst, `{"type":"event","event":`...)
	dst = AppendString(dst, event)
	dst, err := appendMember(dst, "payload", payload)
	return append(dst, '}'), err
}

func appendResponse(dst []byte, id string, ok bool) []byte {
	if id == "" {
		id = InvalidID // an empty id is dropped by clients
	}
	dst = append(dst, `{"type":"res","id":`...)
	dst = AppendString(dst, id)
	if ok {
		return append(dst, `,"ok":true`...)
	}
	return append(dst, `,"ok":false`...)
}

func appendErrorObject(dst []byte, e *Error) []byte {
	if e == nil {
		e = Internal()
	}
	c := *e
	if c.Code == "" {
		c.Code = CodeUnavailable
	}
	if c.Message == "" {
		c.Message = "internal error"
	}
	c.RetryAfterMs = max(0, c.RetryAfterMs)
	out, err := AppendJSON(dst, c)
	if err != nil {
		c.Details = nil
		out, _ = AppendJSON(dst, c)
	}
	return out
}

func appendMember(dst []byte, name string, v any) ([]byte, error) {
	switch raw := v.(type) {
	case nil:
		return dst, nil
	case json.RawMessage:
		if len(raw) == 0 {
			return dst, nil
		}
	}
	n := len(dst)
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	out, err := AppendJSON(dst, v)
	if err != nil {
		return dst[:n], err
	}
	return out, nil
}

// AppendJSON appends the JSON form of v without HTML escapes, which would triple
// the size of markup and code. A json.RawMessage is copied as it is.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case json.RawMessage:
		if len(v) > 0 {
			return append(dst, v...), nil
		}
	case appender:
		return v.AppendJSON(dst), nil
	}
	w := bytes.NewBuffer(dst)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	out := w.Bytes()
	return out[:len(out)-1], nil // the encoder ends with a line feed
}

// Marshal is the JSON form of v without HTML escapes. Payloads that are put into
// frames as json.RawMessage are made with it.
func Marshal(v any) (json.RawMessage, error) { return AppendJSON(nil, v) }

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, exactly as AppendJSON would.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		n := 1
		c := s[i]
		if c >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			if escapedLen(r, n) == n {
				i += n
				continue
			}
			dst = append(dst, s[start:i]...)
			if r == utf8.RuneError {
				dst = append(dst, `\ufffd`...)
			} else {
				dst = append(dst, `\u202`...)
				dst = append(dst, hexDigits[r&0xf])
			}
		} else {
			if plain := plainLen(s[i:]); plain > 0 {
				i += plain
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
		}
		i += n
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
