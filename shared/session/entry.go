package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"laneway/shared/id"
	"laneway/shared/table"
)

// Entry is what a session remembers beside its work: preferences, labels, totals.
// It is written when it changes, never by a claim or a renewal.
type Entry struct {
	Label          string `json:"label,omitempty"`
	DisplayName    string `json:"displayName,omitempty"`
	ThinkingLevel  string `json:"thinkingLevel,omitempty"`
	VerboseLevel   string `json:"verboseLevel,omitempty"`
	TraceLevel     string `json:"traceLevel,omitempty"`
	ReasoningLevel string `json:"reasoningLevel,omitempty"`
	FastMode       string `json:"fastMode,omitempty"`
	ModelProvider  string `json:"providerOverride,omitempty"`
	ModelOverride  string `json:"modelOverride,omitempty"`
	ModelSource    string `json:"modelOverrideSource,omitempty"` // user (also empty), auto, default
	// AuthProfile is the credential that the session keeps to; one that a run chose by
	// itself (source auto) holds for one transcript, so that a reset clears it.
	AuthProfile       string          `json:"authProfileOverride,omitempty"`
	AuthProfileSource string          `json:"authProfileOverrideSource,omitempty"` // user, auto
	AuthProfileFor    string          `json:"authProfileSessionId,omitempty"`
	Fallback          *FallbackNotice `json:"fallbackNotice,omitempty"`
	SendPolicy        string          `json:"sendPolicy,omitempty"`
	QueueMode         string          `json:"queueMode,omitempty"`
	QueueDebounce     *int64          `json:"queueDebounceMs,omitempty"`
	QueueCap          *int64          `json:"queueCap,omitempty"`
	QueueDrop         string          `json:"queueDrop,omitempty"`
	PreviousID        string          `json:"previousSessionId,omitempty"`
	StartedAt         int64           `json:"sessionStartedAt,omitempty"`
	LastInput         int64           `json:"lastInteractionAt,omitempty"`
	LastStatus        string          `json:"status,omitempty"`
	LastRunID         string          `json:"lastRunId,omitempty"`
	AbortedLastRun    bool            `json:"abortedLastRun,omitempty"`
	InputTokens       int64           `json:"inputTokens,omitempty"`
	OutputTokens      int64           `json:"outputTokens,omitempty"`
	ContextTokens     int64           `json:"contextTokens,omitempty"`
	Category          string          `json:"category,omitempty"`
	Icon              string          `json:"icon,omitempty"`
	Color             string          `json:"color,omitempty"`
	StatusNote        string          `json:"statusNote,omitempty"`
	Archived          bool            `json:"archived,omitempty"`
	Pinned            bool            `json:"pinned,omitempty"`
	Unread            bool            `json:"unread,omitempty"`
	CreatedVia        string          `json:"createdVia,omitempty"` // set where the session was made by more than a message: operator
	// Deleted: the session was deleted when its accept sequence was DeletedSeq. It is
	// there again once a run was accepted after that, or something was written into it.
	Deleted    bool  `json:"deleted,omitempty"`
	DeletedSeq int64 `json:"deletedSeq,omitempty"`
}

// FallbackNotice says which model answered in the place of which, so that people are
// told once.
type FallbackNotice struct {
	Selected string `json:"selected"` // provider/id
	Active   string `json:"active"`
	Reason   string `json:"reason,omitempty"`
	Run      string `json:"run"` // short id of the run that tells it
}

const (
	attrBody = "body"
	attrRev  = "rev" // another with every write: tells a change from what was read
)

// LoadEntry reads the entry; a session without one has the zero Entry.
func LoadEntry(ctx context.Context, t table.Store, ref Ref) (Entry, error) {
	it, err := t.Get(ctx, ref.EntryKey())
	if errors.Is(err, table.ErrNotFound) {
		return Entry{}, nil
	}
	if err != nil {
		return Entry{}, fmt.Errorf("read session entry: %w", err)
	}
	return decodeEntry(&it)
}

func decodeEntry(it *table.Item) (Entry, error) {
	var e Entry
	if it == nil {
		return e, nil
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
	return table.Op{Kind: table.Put, Key: ref.EntryKey(), Item: table.Attrs{attrBody: b, attrRev: id.UUID()}}, nil
}

// ChangeEntry is the op that writes a change of the entry as it is now, for a transaction
// with others. Its condition fails where somebody else has changed the entry since.
func ChangeEntry(ctx context.Context, t table.Store, ref Ref, change func(*Entry)) (table.Op, error) {
	it, err := t.Get(ctx, ref.EntryKey())
	found := &it
	if errors.Is(err, table.ErrNotFound) {
		found = nil
	} else if err != nil {
		return table.Op{}, fmt.Errorf("read session entry: %w", err)
	}
	e, err := decodeEntry(found)
	if err != nil {
		return table.Op{}, err
	}
	change(&e)
	return putOver(ref, e, found)
}

// putOver is PutEntry where the entry still is what was found; nil: there was none.
func putOver(ref Ref, e Entry, found *table.Item) (table.Op, error) {
	op, err := PutEntry(ref, e)
	op.If = table.NotExists()
	if found != nil {
		op.If = table.Equal(table.P(attrRev), found.Attrs.Str(attrRev))
	}
	return op, err
}

// entryTries bounds how often a change is made again because another one came
// between its reading and its writing.
const entryTries = 16

// UpdateEntry changes the entry: what others wrote meanwhile is not lost, change is
// called again on it. An error of change is returned as it is, and nothing written.
func UpdateEntry(ctx context.Context, t table.Store, ref Ref, change func(*Entry) error) (Entry, error) {
	it, err := t.Get(ctx, ref.EntryKey())
	found := &it
	if errors.Is(err, table.ErrNotFound) {
		found = nil
	} else if err != nil {
		return Entry{}, fmt.Errorf("read session entry: %w", err)
	}
	for range entryTries {
		e, err := decodeEntry(found)
		if err != nil {
			return e, err
		}
		if err := change(&e); err != nil {
			return e, err
		}
		op, err := putOver(ref, e, found)
		if err != nil {
			return e, err
		}
		_, err = t.Write(ctx, op)
		ce, failed := table.Failed(err)
		if !failed {
			return e, err
		}
		found = ce.Found
	}
	return Entry{}, fmt.Errorf("change session entry: %w", table.ErrConflict)
}
