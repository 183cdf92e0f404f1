package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// A params struct is its own schema. The json tag names the member; the wire tag
// holds its rules, separated by commas:
//
//	required    must be there
//	min=, max=  characters of a string, items of a list, or value of a number
//	enum=a|b    one of these strings
//	const=a     this string
//	id          an identifier as package id defines it: 1 to 512 bytes, no control characters
//	blank       with id: the empty string counts as absent
//	key         an id that becomes a run id: the prefixes of our own ids are refused
//	object, array   of a json.RawMessage: must be one
//
// A field of type Refused is a member that exists but is not for callers. A
// pointer tells absent from zero; an Optional tells null from absent as well. The
// tag `wire:"open"` on a blank field lets unknown members pass.
type schema struct {
	rules  []rule
	byName map[string]int
	open   bool
}

type kind uint8

const (
	kindString kind = iota
	kindBool
	kindInteger
	kindNumber
	kindList
	kindObject
	kindRaw
	kindUnion // decodes itself, see union
	kindRefused
)

type rule struct {
	name     string
	field    int
	kind     kind
	pointer  bool
	optional bool // an Optional: null is allowed
	required bool
	id       bool
	blank    bool
	key      bool
	only     byte // of kindRaw: the first byte that the value must have, 0 for any
	min, max *int64
	enum     []string
	constant string
	item     *rule          // of kindList
	object   *schema        // of kindObject
	union    map[string]any // JSON Schema of kindUnion
}

// maxMembers bounds a schema; the decoder marks the members it has seen in bits.
const maxMembers = 128

// Refused is the type of a member that only the gateway itself may set.
type Refused struct{}

// Optional is a member that may be absent, null, or a value. Null asks for the
// default to come back.
type Optional[T any] struct {
	Set   bool // the member was there
	Null  bool // and it was null
	Value T
}

// IsZero is for omitzero.
func (o Optional[T]) IsZero() bool { return !o.Set }

// MarshalJSON writes null or the value; use omitzero with it.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Set || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSON reads null or the value.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	*o = Optional[T]{Set: true}
	if string(b) == "null" {
		o.Null = true
		return nil
	}
	return json.Unmarshal(b, &o.Value)
}

// Some is an Optional with a value.
func Some[T any](v T) Optional[T] { return Optional[T]{Set: true, Value: v} }

func (Optional[T]) isOptional() {}

// union is a value of more than one JSON type. UnmarshalJSON gets valid JSON; its
// error is worded as a schema problem. shape is the JSON Schema.
type union interface {
	json.Unmarshaler
	shape() map[string]any
}

// checked is a struct with rules between its members; check is called when each
// member by itself is right.
type checked interface{ check(p *problems) }

var (
	typeRaw     = reflect.TypeFor[json.RawMessage]()
	typeRefused = reflect.TypeFor[Refused]()
	typeUnion   = reflect.TypeFor[union]()

	typeOptional = reflect.TypeFor[interface{ isOptional() }]()
)

type compiled struct {
	schema *schema
	err    error
}

var schemas sync.Map // reflect.Type → compiled

// schemaOf compiles the schema of a struct type once.
func schemaOf(t reflect.Type) (*schema, error) {
	if c, ok := schemas.Load(t); ok {
		known := c.(compiled) //nolint:forcetypeassert // nothing else is stored
		return known.schema, known.err
	}
	s, err := compile(t)
	schemas.Store(t, compiled{s, err})
	return s, err
}

func compile(t reflect.Type) (*schema, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("protocol: %s is no struct", t)
	}
	s := &schema{byName: make(map[string]int, t.NumField())}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			s.open = f.Tag.Get("wire") == "open"
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			return nil, fmt.Errorf("protocol: %s.%s has no json name", t, f.Name)
		}
		r := rule{name: name, field: i}
		if err := r.read(f.Type, f.Tag.Get("wire")); err != nil {
			return nil, fmt.Errorf("protocol: %s.%s: %w", t, f.Name, err)
		}
		s.byName[name] = len(s.rules)
		s.rules = append(s.rules, r)
	}
	if len(s.rules) > maxMembers {
		return nil, fmt.Errorf("protocol: %s has over %d members", t, maxMembers)
	}
	return s, nil
}

func (r *rule) read(t reflect.Type, tag string) error {
	if t.Implements(typeOptional) {
		f, _ := t.FieldByName("Value")
		r.optional, t = true, f.Type
	}
	if t.Kind() == reflect.Pointer {
		r.pointer, t = true, t.Elem()
	}
	listTag := tag
	switch {
	case t == typeRefused:
		r.kind = kindRefused
	case t == typeRaw:
		r.kind = kindRaw
	case reflect.PointerTo(t).Implements(typeUnion):
		r.kind = kindUnion
		r.union = reflect.New(t).Interface().(union).shape() //nolint:forcetypeassert // the case says so
	case t.Kind() == reflect.String:
		r.kind = kindString
	case t.Kind() == reflect.Bool:
		r.kind = kindBool
	case t.Kind() == reflect.Int64:
		r.kind = kindInteger
	case t.Kind() == reflect.Float64:
		r.kind = kindNumber
	case t.Kind() == reflect.Struct:
		r.kind = kindObject
		s, err := schemaOf(t)
		if err != nil {
			return err
		}
		r.object = s
	case t.Kind() == reflect.Slice:
		r.kind = kindList
		r.item = &rule{}
		var of string
		listTag, of, _ = strings.Cut(tag, ";") // rules of the list; rules of its items
		if err := r.item.read(t.Elem(), of); err != nil {
			return err
		}
	default:
		return fmt.Errorf("no rule for the type %s", t)
	}
	return r.readTag(listTag)
}

func (r *rule) readTag(tag string) error {
	if tag == "" {
		return nil
	}
	for part := range strings.SplitSeq(tag, ",") {
		word, arg, _ := strings.Cut(part, "=")
		switch word {
		case "required":
			r.required = true
		case "id":
			r.id = true
		case "blank":
			r.blank = true
		case "key":
			r.id, r.key = true, true
		case "object":
			r.only = '{'
		case "array":
			r.only = '['
		case "enum":
			r.enum = strings.Split(arg, "|")
		case "const":
			r.constant = arg
		case "min", "max":
			n, err := strconv.ParseInt(arg, 10, 64)
			if err != nil {
				return err
			}
			if word == "min" {
				r.min = &n
			} else {
				r.max = &n
			}
		default:
			return fmt.Errorf("unknown rule %q", part)
		}
	}
	return nil
}
