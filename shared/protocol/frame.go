package protocol

import (
	"encoding/json"
	"errors"
	"reflect"
	"unicode/utf8"
)

// InvalidID answers a frame that has no usable id of its own.
const InvalidID = "invalid"

// ErrNotJSON says that a message is no JSON text. After hello it is ignored; as
// the first message it ends the connection.
var ErrNotJSON = errors.New("protocol: message is not JSON")

// Request is a request frame.
type Request struct {
	ID                string
	Method            string
	Params            json.RawMessage // aliases the message; nil if absent
	Traceparent       string
	ExpectedProfileID string
}

type requestFrame struct {
	Type              string          `json:"type" wire:"required,const=req"`
	ID                string          `json:"id" wire:"required,id"`
	Method            string          `json:"method" wire:"required,min=1"`
	Params            json.RawMessage `json:"params"`
	Traceparent       string          `json:"traceparent" wire:"max=128"`
	ExpectedProfileID string          `json:"expectedProfileId" wire:"min=1,max=128"`
}

// DecodeRequest reads a message as a request frame. It fails with ErrNotJSON, or
// with an *Error; then the request's ID is the one to answer under: the frame's
// own if it has one, else InvalidID.
func DecodeRequest(message []byte) (Request, error) {
	s, err := schemaOf(reflect.TypeFor[requestFrame]())
	if err != nil {
		return Request{ID: InvalidID}, Internal()
	}
	if !utf8.Valid(message) {
		return Request{}, ErrNotJSON
	}
	var f requestFrame
	var p problems
	// decodeInto reads an empty text and null as an empty object, which params may
	// be and a frame may not.
	switch first := (&scanner{b: message}).peek(); first {
	case 0:
		return Request{}, ErrNotJSON
	case '{':
		err = decodeInto(s, message, reflect.ValueOf(&f).Elem(), &p)
	default:
		err = decodeOther(message)
		p.is("must be object")
	}
	if errors.Is(err, errSyntax) {
		return Request{}, ErrNotJSON
	}
	if err == nil && !p.any() {
		return Request{f.ID, f.Method, f.Params, f.Traceparent, f.ExpectedProfileID}, nil
	}
	reason := p.String()
	if err != nil {
		reason = err.Error()
	}
	id := f.ID
	if id == "" || len(id) > maxEcho {
		id = InvalidID
	}
	return Request{ID: id, Method: f.Method}, Invalid("invalid request frame: " + reason)
}

// maxEcho bounds an id that is sent back though it is not valid.
const maxEcho = 512

// decodeOther checks that a message is JSON at all.
func decodeOther(message []byte) error {
	s := scanner{b: message}
	if _, err := s.value(); err != nil {
		return err
	}
	if !s.end() {
		return errSyntax
	}
	return nil
}

// Frame is any frame as a client reads it.
type Frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	OK      bool            `json:"ok,omitempty"`
	Event   string          `json:"event,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Err     *Error          `json:"error,omitempty"`
}

// DecodeFrame reads a message as a client does: leniently. A text that is no JSON
// object is ErrNotJSON.
func DecodeFrame(message []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(message, &f); err != nil {
		return Frame{}, ErrNotJSON
	}
	return f, nil
}
