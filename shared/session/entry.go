package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"laneway/shared/table"
)

// Entry is what a session remembers beside its work: preferences, labels, totals.
// It is written when it changes, never by a claim or a renewal.
type Entry struct {
	Label          string `json:"label,omitempty"`
	DisplayName    string `json:"displayName,omitempty"`
	ThinkingLevel  string `json:"thinkingLevel,omitempty"`
	VerboseLevel   string `json:"verboseLevel,omitempty"`
	ReasoningLevel string `json:"reasoningLevel,omitempty"`
	FastMode       string `json:"fastMode,omitempty"`
	ModelProvider  string `json:"providerOverride,omitempty"`
	ModelOverride  string `json:"modelOverride,omitempty"`
	SendPolicy     string `json:"sendPolicy,omitempty"`
	QueueMode      string `json:"queueMode,omitempty"`
	QueueDebounce  *int64 `json:"queueDebounceMs,omitempty"`
	QueueCap       *int64 `json:"queueCap,omitempty"`
	QueueDrop      string `json:"queueDrop,omitempty"`
	PreviousID     string `json:"previousSessionId,omitempty"`
	StartedAt      int64  `json:"sessionStartedAt,omitempty"`
	LastInput      int64  `json:"lastInteractionAt,omitempty"`
	LastStatus     string `json:"status,omitempty"`
	LastRunID      string `json:"lastRunId,omitempty"`
	AbortedLastRun bool   `json:"abortedLastRun,omitempty"`
	InputTokens    int64  `json:"inputTokens,omitempty"`
	OutputTokens   int64  `json:"outputTokens,omitempty"`
	ContextTokens  int64  `json:"contextTokens,omitempty"`
	Deleted        bool   `json:"deleted,omitempty"`
}

const attrBody = "body"

// LoadEntry reads the entry; a session without one has the zero Entry.
func LoadEntry(ctx context.Context, t table.Store, ref Ref) (Entry, error) {
	var e Entry
	it, err := t.Get(ctx, ref.EntryKey())
	if errors.Is(err, table.ErrNotFound) {
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("read session entry: %w", err)
	}
	if err := json.Unmarshal(it.Attrs.Bytes(attrBody), &e); err != nil {
		return e, fmt.Errorf("session entry: %w", err)
	}
	return e, nil
}

// PutEntry is the op that writes the entry whole.
func PutEntry(ref Ref, e Entry) (table.Op, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return table.Op{}, err
	}
	return table.Op{Kind: table.Put, Key: ref.EntryKey(), Item: table.Attrs{attrBody: b}}, nil
}
