package stream

import (
	"bytes"
	"encoding/json"
	"slices"

	"laneway/shared/protocol"
)

// cutMark ends a string that was made shorter, cutMember says that more is missing.
const (
	cutMark   = "…(truncated)"
	cutMember = "truncated"
)

// fit makes a JSON object as small as limit in bytes, by this rule: its longest
// strings lose their ends, between runes, down to one common length that fits,
// and say so by cutMark. If structure alone is too large, the short scalar members
// stay, with cutMember, but not in a chat event, whose schema is closed. An object
// that fits is returned as it is.
func fit(stream string, object []byte, limit int) []byte {
	if len(object) <= limit {
		return object
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber() // numbers stay as they were written
	var v map[string]any
	if d.Decode(&v) != nil {
		return bare(stream, nil)
	}
	var sizes []int
	eachString(v, func(s string) string {
		sizes = append(sizes, protocol.EncodedLen(s))
		return s
	})
	compact, err := protocol.Marshal(v)
	if err != nil {
		return bare(stream, nil)
	}
	// Escapes that the source did not need are gone by now; the rest is cut.
	if over := len(compact) - limit; over > 0 {
		longest := commonLength(sizes, over)
		if longest <= len(cutMark) {
			return bare(stream, v)
		}
		eachString(v, func(s string) string {
			if protocol.EncodedLen(s) <= longest {
				return s
			}
			kept, _ := protocol.TrimText(s, longest-len(cutMark))
			return kept + cutMark
		})
		if compact, err = protocol.Marshal(v); err != nil || len(compact) > limit {
			return bare(stream, v)
		}
	}
	return compact
}

// commonLength is the greatest length that, as a bound of all sizes, takes off at
// least over bytes in all; 0 if there is none.
func commonLength(sizes []int, over int) int {
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	sum := 0
	for i, size := range sizes {
		sum += size
		next := 0
		if i+1 < len(sizes) {
			next = sizes[i+1]
		}
		// The i+1 longest come down to a length of at least next.
		if length := (sum - over) / (i + 1); sum-over > 0 && length >= next {
			return length
		}
	}
	return 0
}

// eachString replaces every string value in v by what f gives for it.
func eachString(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = eachString(v[i], f)
		}
	case map[string]any:
		for k := range v {
			v[k] = eachString(v[k], f)
		}
	}
	return v
}

// bare keeps the members that say what an event is about.
func bare(stream string, v map[string]any) []byte {
	const longest, most = 200, 16
	out := map[string]any{}
	if stream != ChatStream {
		out[cutMember] = true
	}
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if len(out) > most || len(k) > longest {
			continue
		}
		switch x := v[k].(type) {
		case string:
			if protocol.EncodedLen(x) <= longest {
				out[k] = x
			}
		case bool, json.Number:
			out[k] = x
		}
	}
	b, err := protocol.Marshal(out)
	if err != nil {
		return []byte("{}")
	}
	return b
}
