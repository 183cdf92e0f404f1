package protocol

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"laneway/shared/id"
)

// ownPrefixes begin the ids that the gateway makes itself. A caller who could
// choose one would be answered with somebody else's run.
var ownPrefixes = []string{"cron:", "followup-", "spawn:"}

// Decode reads and checks the params of a method in one pass. Absent params and
// null count as an empty object. json.RawMessage members of the result alias raw;
// strings do not.
//
// The error is ready to be sent: INVALID_REQUEST, "invalid <method> params: …".
func Decode[T any](method string, raw json.RawMessage) (T, *Error) {
	var out, zero T
	if e := decodeValue(method, raw, reflect.ValueOf(&out).Elem()); e != nil {
		return zero, e
	}
	return out, nil
}

func decodeValue(method string, raw json.RawMessage, v reflect.Value) *Error {
	s, err := schemaOf(v.Type())
	if err != nil {
		return Internal()
	}
	var p problems
	if err := decodeInto(s, raw, v, &p); err != nil {
		return InvalidParams(method, err.Error())
	}
	if p.n > 0 {
		return InvalidParams(method, p.String())
	}
	return p.refusal
}

// decodeInto reads raw into v. Its error is errSyntax or errDepth; everything
// else that is wrong is in p.
func decodeInto(s *schema, raw []byte, v reflect.Value, p *problems) error {
	d := decoder{s: scanner{b: raw}, p: p}
	var steps [8]step
	p.path = steps[:0]
	if !utf8.Valid(raw) {
		return errSyntax
	}
	switch {
	case d.s.end(), d.s.peek() == 'n':
		// Absent or null: the required members are still missing.
		if !d.s.end() {
			if err := d.s.word("null"); err != nil {
				return err
			}
		}
		for i := range s.rules {
			if s.rules[i].required {
				p.lacks(s.rules[i].name)
			}
		}
		d.check(v, 0)
	default:
		if err := d.structure(s, v); err != nil {
			return err
		}
	}
	if !d.s.end() {
		return errSyntax
	}
	return nil
}

type decoder struct {
	s scanner
	p *problems
}

// structure reads an object into a struct.
func (d *decoder) structure(s *schema, v reflect.Value) error {
	if d.s.peek() != '{' {
		d.p.is("must be object")
		return d.skip()
	}
	before := d.p.n
	var seen [maxMembers / 64]uint64
	err := d.s.object(func(name []byte, escaped bool) error {
		i, known := s.byName[string(name)] // the compiler makes no copy for it
		if escaped {
			i, known = s.byName[unquote(name, true)]
		}
		if !known {
			d.stranger(s, unquote(name, escaped))
			return d.skip()
		}
		r := &s.rules[i]
		if seen[i/64]&(1<<(i%64)) != 0 {
			d.p.unknown(r.name, "repeated")
			return d.skip()
		}
		seen[i/64] |= 1 << (i % 64)
		if r.kind == kindRefused {
			d.p.member(r.name, "is not accepted from callers")
			return d.skip()
		}
		d.p.push(step{name: r.name})
		err := d.member(r, v.Field(r.field))
		d.p.pop()
		return err
	})
	if err != nil {
		return err
	}
	for i := range s.rules {
		if s.rules[i].required && seen[i/64]&(1<<(i%64)) == 0 {
			d.p.lacks(s.rules[i].name)
		}
	}
	d.check(v, before)
	return nil
}

// check asks a struct about the rules between its members, if they are right one
// by one.
func (d *decoder) check(v reflect.Value, before int) {
	if d.p.n > before || !v.CanAddr() {
		return
	}
	if c, ok := reflect.TypeAssert[checked](v.Addr()); ok {
		c.check(d.p)
	}
}

// stranger deals with a member that the schema does not have. An open object
// ignores it, unless it is a known one in another spelling: that would be dropped
// in silence though the caller meant it.
func (d *decoder) stranger(s *schema, name string) {
	if s.open {
		for i := range s.rules {
			if strings.EqualFold(s.rules[i].name, name) {
				d.p.unknown(name, "unexpected")
				return
			}
		}
		return
	}
	d.p.unknown(name, "unexpected")
}

func (d *decoder) skip() error {
	_, err := d.s.value()
	return err
}

// member reads a value into a field, through its pointer or Optional.
func (d *decoder) member(r *rule, v reflect.Value) error {
	if r.optional {
		v.Field(0).SetBool(true)
		if d.s.peek() == 'n' {
			v.Field(1).SetBool(true)
			return d.skip()
		}
		v = v.Field(2)
	}
	if r.pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	return d.value(r, v)
}

func (d *decoder) value(r *rule, v reflect.Value) error {
	switch r.kind {
	case kindString:
		return d.text(r, v)
	case kindObject:
		return d.structure(r.object, v)
	case kindList:
		return d.list(r, v)
	default:
		raw, err := d.s.value()
		if err == nil {
			d.scalar(r, v, raw)
		}
		return err
	}
}

// scalar reads a value that is taken by its bytes.
func (d *decoder) scalar(r *rule, v reflect.Value, raw []byte) {
	switch r.kind {
	case kindBool:
		if raw[0] != 't' && raw[0] != 'f' {
			d.wrongType(r, "boolean")
			return
		}
		v.SetBool(raw[0] == 't')
	case kindInteger:
		n, ok := integer(raw)
		if !ok {
			d.wrongType(r, "integer")
			return
		}
		d.bounds(r, float64(n))
		v.SetInt(n)
	case kindNumber:
		n, ok := number(raw)
		if !ok {
			d.wrongType(r, "number")
			return
		}
		d.bounds(r, n)
		v.SetFloat(n)
	case kindUnion:
		if u, ok := reflect.TypeAssert[union](v.Addr()); ok {
			if err := u.UnmarshalJSON(raw); err != nil {
				d.p.is(err.Error())
			}
		}
	default: // kindRaw
		switch {
		case r.only == '{' && raw[0] != '{':
			d.wrongType(r, "object")
		case r.only == '[' && raw[0] != '[':
			d.wrongType(r, "array")
		}
		v.SetBytes(raw)
	}
}

func (d *decoder) wrongType(r *rule, want string) {
	if r.optional {
		want += " or null"
	}
	d.p.is("must be " + want)
}

func (d *decoder) bounds(r *rule, n float64) {
	if r.min != nil && n < float64(*r.min) {
		d.p.is("must be >= " + strconv.FormatInt(*r.min, 10))
	}
	if r.max != nil && n > float64(*r.max) {
		d.p.is("must be <= " + strconv.FormatInt(*r.max, 10))
	}
}

func (d *decoder) text(r *rule, v reflect.Value) error {
	if d.s.peek() != '"' {
		d.wrongType(r, "string")
		return d.skip()
	}
	body, escaped, err := d.s.str()
	if err != nil {
		return err
	}
	s := unquote(body, escaped)
	v.SetString(s)
	if problem := r.textProblem(s); problem != "" {
		d.p.is(problem)
	}
	return nil
}

func (r *rule) textProblem(s string) string {
	switch {
	case r.constant != "":
		if s != r.constant {
			return "must be equal to constant '" + r.constant + "'"
		}
	case r.enum != nil:
		if slices.Contains(r.enum, s) {
			return ""
		}
		return "must be equal to one of the allowed values: " + strings.Join(r.enum, ", ")
	case r.id:
		return r.idProblem(s)
	}
	if r.min != nil && (*r.min == 1 && s == "" || *r.min > 1 && length(s) < *r.min) {
		return "must not have fewer than " + strconv.FormatInt(*r.min, 10) + " characters"
	}
	if r.max != nil && int64(len(s)) > *r.max && length(s) > *r.max {
		return "must not have more than " + strconv.FormatInt(*r.max, 10) + " characters"
	}
	return ""
}

func (r *rule) idProblem(s string) string {
	switch {
	case s == "" && r.blank, id.Valid(s) && !r.key:
		return ""
	case s == "":
		return "must not have fewer than 1 characters"
	case len(s) > id.MaxBytes:
		return "must not have more than " + strconv.Itoa(id.MaxBytes) + " bytes"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "must not have control characters"
	case !id.Valid(s):
		return "must be an identifier of 1 to " + strconv.Itoa(id.MaxBytes) + " bytes"
	}
	for _, prefix := range ownPrefixes {
		if strings.HasPrefix(s, prefix) {
			return "must not begin with '" + prefix + "', which is reserved for the gateway's own runs"
		}
	}
	return ""
}

func (d *decoder) list(r *rule, v reflect.Value) error {
	if d.s.peek() != '[' {
		d.wrongType(r, "array")
		return d.skip()
	}
	if err := d.s.enter(); err != nil {
		return err
	}
	defer d.s.leave()
	d.s.take('[')
	out := reflect.MakeSlice(v.Type(), 0, 0)
	n := int64(0)
	for more := !d.s.take(']'); more; {
		// Items past the limit are read over and not kept: the list is refused.
		if r.max != nil && n >= *r.max {
			if err := d.skip(); err != nil {
				return err
			}
		} else {
			item := reflect.New(v.Type().Elem()).Elem()
			d.p.push(step{index: int(n)})
			err := d.member(r.item, item)
			d.p.pop()
			if err != nil {
				return err
			}
			out = reflect.Append(out, item)
		}
		n++
		if d.s.take(']') {
			more = false
		} else if !d.s.take(',') {
			return errSyntax
		}
	}
	v.Set(out)
	if r.min != nil && n < *r.min {
		d.p.is("must not have fewer than " + strconv.FormatInt(*r.min, 10) + " items")
	}
	if r.max != nil && n > *r.max {
		d.p.is("must not have more than " + strconv.FormatInt(*r.max, 10) + " items")
	}
	return nil
}

// number reads a JSON number that fits a float64.
func number(raw []byte) (float64, bool) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil
}

// integer reads a whole number as the reference does: 1e3 and 5.0 are whole, and
// what JavaScript cannot hold exactly is not.
func integer(raw []byte) (int64, bool) {
	n, ok := number(raw)
	if !ok || n != float64(int64(n)) || n > 1<<53-1 || n < -(1<<53-1) {
		return 0, false
	}
	return int64(n), true
}
