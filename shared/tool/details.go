package tool

import (
	"encoding/json"
	"maps"
	"slices"
)

const (
	detailsCap       = 8192 // bytes of details that are kept as they are
	detailsStringCap = 2000 // chars of one string in them
	detailsKeys      = 40   // names told of details that are too large
)

// keptDetails are the small fields that stay when details are too large to keep:
// clients decide by them how to show a result.
var keptDetails = []string{"status", "exitCode", "timedOut", "deniedReason", "errorKind", "durationMs", "path"}

// PersistDetails makes the details of a result fit for the transcript and for
// events: no secrets, strings of at most 2000 chars, at most 8 levels, at most 8192
// bytes as JSON. What is larger becomes a summary that says so. The details that
// were given are not changed; nil stays nil.
func PersistDetails(details map[string]any) map[string]any {
	if len(details) == 0 {
		return nil
	}
	plain, original, err := plainJSON(details)
	if err != nil {
		return map[string]any{"persistedDetailsTruncated": true}
	}
	clean, _ := cleaner{limit: detailsStringCap}.value("", plain, 0).(map[string]any)
	if fits(clean) {
		return clean
	}
	names := slices.Sorted(maps.Keys(plain))
	for i, name := range names {
		names[i] = eventText(name, 100)
	}
	summary := map[string]any{
		"persistedDetailsTruncated": true,
		"originalDetailsBytes":      original,
		"originalDetailKeys":        names[:min(len(names), detailsKeys)],
	}
	for _, name := range keptDetails {
		value, ok := clean[name]
		if !ok {
			continue
		}
		if small, err := json.Marshal(value); err == nil && len(small) <= 256 {
			summary[name] = value
		}
	}
	return summary
}

// plainJSON gives details the shape that they have after decoding, so that
// structures are cleaned as thoroughly as maps.
func plainJSON(details map[string]any) (map[string]any, int, error) {
	raw, err := json.Marshal(details)
	if err != nil {
		return nil, 0, err
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, 0, err
	}
	return plain, len(raw), nil
}

func fits(details map[string]any) bool {
	raw, err := json.Marshal(details)
	return err == nil && len(raw) <= detailsCap
}
