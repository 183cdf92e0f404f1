package protocol

import "laneway/shared/id"

// ParamsSchema is the JSON Schema (2020-12) of a method's params, for documents,
// tools and tests. What it refuses, Decode refuses; Decode also knows the rules
// between members, reserved ids, and that no member comes twice.
func ParamsSchema(name string) (schema map[string]any, ok bool) {
	m, ok := Lookup(name)
	if !ok {
		return nil, false
	}
	s, err := schemaOf(m.params)
	if err != nil {
		return nil, false
	}
	return s.shape(), true
}

func (s *schema) shape() map[string]any {
	members := make(map[string]any, len(s.rules))
	required := []any{}
	for i := range s.rules {
		r := &s.rules[i]
		if r.kind == kindRefused {
			members[r.name] = false
			continue
		}
		members[r.name] = r.shape()
		if r.required {
			required = append(required, r.name)
		}
	}
	out := map[string]any{"type": "object", "properties": members}
	if !s.open {
		out["additionalProperties"] = false
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (r *rule) shape() map[string]any {
	out := r.valueShape()
	if r.optional {
		return map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}
	}
	return out
}

func (r *rule) valueShape() map[string]any {
	low, high := "minimum", "maximum"
	out := map[string]any{}
	switch r.kind {
	case kindString:
		low, high = "minLength", "maxLength"
		out["type"] = "string"
		if r.id {
			out["maxLength"] = id.MaxBytes
			if !r.blank {
				out["minLength"] = 1
			}
		}
		if r.constant != "" {
			out["const"] = r.constant
		}
		if r.enum != nil {
			list := make([]any, len(r.enum))
			for i, e := range r.enum {
				list[i] = e
			}
			out["enum"] = list
		}
	case kindBool:
		out["type"] = "boolean"
	case kindInteger:
		out["type"] = "integer"
	case kindNumber:
		out["type"] = "number"
	case kindList:
		low, high = "minItems", "maxItems"
		out["type"], out["items"] = "array", r.item.shape()
	case kindObject:
		return r.object.shape()
	case kindUnion:
		return r.union
	default:
		switch r.only {
		case '{':
			out["type"] = "object"
		case '[':
			out["type"] = "array"
		}
	}
	if r.min != nil {
		out[low] = *r.min
	}
	if r.max != nil {
		out[high] = *r.max
	}
	return out
}
