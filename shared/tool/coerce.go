package tool

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// maxExponent keeps a number like 1e999999999 from being written out in digits.
const maxExponent = 32

// coerce repairs what models get wrong about JSON types, where the meaning is
// plain: a number or boolean in quotes, an object or list written as a string of
// JSON, a scalar where text is wanted, 5.0 for 5, and null for an optional
// parameter that is meant to be absent. What stays wrong is left for validation.
// It says whether anything was changed; the value may be changed in place.
func coerce(schema, value any) (any, bool) {
	s, ok := schema.(map[string]any)
	if !ok {
		return value, false
	}
	value, changed := coerceType(typesOf(s), value)
	switch v := value.(type) {
	case map[string]any:
		if coerceObject(s, v) {
			changed = true
		}
	case []any:
		items := s["items"]
		for i := range v {
			fitted, c := coerce(items, v[i])
			v[i], changed = fitted, changed || c
		}
	}
	return value, changed
}

func coerceObject(schema, object map[string]any) (changed bool) {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name, value := range object {
		property, known := properties[name]
		if !known {
			property = schema["additionalProperties"]
		}
		if value == nil && known && !slices.Contains(required, any(name)) && !allowsNull(property) {
			delete(object, name)
			changed = true
			continue
		}
		fitted, c := coerce(property, value)
		if c {
			object[name] = fitted
			changed = true
		}
	}
	return changed
}

func coerceType(types []string, value any) (any, bool) {
	if len(types) == 0 {
		return value, false
	}
	for _, t := range types {
		if same, changed, ok := hasType(t, value); ok {
			return same, changed
		}
	}
	for _, t := range types {
		if converted, ok := convert(t, value); ok {
			return converted, true
		}
	}
	return value, false
}

// hasType says whether the value is of the JSON type; an integer is given back in
// digits alone, so that 5.0 and 1e2 decode into a Go integer.
func hasType(t string, value any) (any, bool, bool) {
	switch v := value.(type) {
	case nil:
		return value, false, t == "null"
	case bool:
		return value, false, t == "boolean"
	case string:
		return value, false, t == "string"
	case map[string]any:
		return value, false, t == "object"
	case []any:
		return value, false, t == "array"
	case json.Number:
		if t == "number" {
			return value, false, true
		}
		if t == "integer" {
			whole, ok := wholeNumber(v)
			return whole, ok && whole != v, ok
		}
	}
	return value, false, false
}

func convert(t string, value any) (any, bool) {
	switch v := value.(type) {
	case string:
		return convertString(t, strings.TrimSpace(v))
	case json.Number:
		return v.String(), t == "string"
	case bool:
		if v {
			return "true", t == "string"
		}
		return "false", t == "string"
	}
	return nil, false
}

func convertString(t, text string) (any, bool) {
	switch t {
	case "boolean":
		return text == "true", text == "true" || text == "false"
	case "null":
		return nil, text == "null"
	case "number", "integer", "object", "array":
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil || decoder.More() {
			return nil, false
		}
		fitted, _, ok := hasType(t, value)
		return fitted, ok
	}
	return nil, false
}

// wholeNumber writes a number that has no fraction as digits.
func wholeNumber(n json.Number) (json.Number, bool) {
	text := n.String()
	if !strings.ContainsAny(text, ".eE") {
		return n, true
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, ok := new(big.Int).SetString(strings.TrimPrefix(text[i+1:], "+"), 10)
		if !ok || exponent.CmpAbs(big.NewInt(maxExponent)) > 0 {
			return n, false
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() {
		return n, false
	}
	return json.Number(r.Num().String()), true
}

func typesOf(schema map[string]any) []string {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		types := make([]string, 0, len(t))
		for _, one := range t {
			if name, ok := one.(string); ok {
				types = append(types, name)
			}
		}
		return types
	}
	return nil
}

// allowsNull is careful: only a schema that names its types is known to refuse null.
func allowsNull(schema any) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return true
	}
	types := typesOf(s)
	return len(types) == 0 || slices.Contains(types, "null")
}
