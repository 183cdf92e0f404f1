package protocol

import (
	"encoding/json"
	"reflect"
	"slices"
)

// Methods is the table of all methods that the protocol has params for, in a fixed
// order. Which of them are served is the server's matter.
func Methods() []Method { return slices.Clone(methods) }

// DecodeAny checks params against a method's schema without giving them back, for
// tools and tests that hold methods by name.
func DecodeAny(name string, raw json.RawMessage) *Error {
	m, ok := Lookup(name)
	if !ok {
		return UnknownMethod(name)
	}
	return decodeValue(name, raw, reflect.New(m.params).Elem())
}
