// Package transcript is what was said in a session: append-only rows, and the
// conversation that a model sees made of them.
//
// Guarantees: a row is written once, under its own sequence number, in the
// transaction that advances the session's head under the claim; rows are never
// changed; a reader that loaded up to a head has every row up to it; the
// conversation made of rows is valid for a provider: each tool call has exactly
// one result, directly behind its message, whatever crash or abort came between.
package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"laneway/shared/blob"
	"laneway/shared/model"
	"laneway/shared/reply"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Type of an entry.
type Type string

// The types. Custom entries never reach a model; custom messages do.
const (
	Message       Type = "message"
	Reset         Type = "reset"
	Compaction    Type = "compaction"
	Custom        Type = "custom"
	CustomMessage Type = "custom_message"
)

// Abort marks the partial text of an aborted run.
type Abort struct {
	Aborted bool   `json:"aborted"`
	Origin  string `json:"origin"`
	RunID   string `json:"runId"`
}

// Provider and model of rows that no model wrote, as stock clients know them.
const (
	GatewayProvider = "openclaw"
	GatewayModel    = "gateway-injected"
)

// Entry is a row.
type Entry struct {
	Seq        int64          `json:"-"`
	ID         string         `json:"id"`
	Type       Type           `json:"type"`
	RunID      string         `json:"runId,omitempty"`
	At         int64          `json:"timestamp"`                // ms
	Key        string         `json:"idempotencyKey,omitempty"` // "<runId>:user", "<runId>:assistant"
	Role       model.Role     `json:"role,omitempty"`
	Content    []model.Block  `json:"content,omitempty"`
	StopReason string         `json:"stopReason,omitempty"`
	Error      string         `json:"errorMessage,omitempty"`
	ToolCallID string         `json:"toolCallId,omitempty"`
	ToolName   string         `json:"toolName,omitempty"`
	IsError    bool           `json:"isError,omitempty"`
	Details    map[string]any `json:"details,omitempty"`
	Sent       []reply.Sent   `json:"sent,omitempty"`    // of a tool: what it delivered to people
	Verbose    string         `json:"verbose,omitempty"` // of a tool's result: the level that held, where it was not off
	Usage      *model.Usage   `json:"usage,omitempty"`
	Provider   string         `json:"provider,omitempty"`
	Model      string         `json:"model,omitempty"`
	Abort      *Abort         `json:"openclawAbort,omitempty"`
	Silent     bool           `json:"silent,omitempty"`    // the reply was the silent token: clients don't see it
	Label      string         `json:"label,omitempty"`     // of an injected message
	Reason     string         `json:"reason,omitempty"`    // Reset: new, reset, idle, daily
	Summary    string         `json:"summary,omitempty"`   // Compaction
	FirstKept  int64          `json:"firstKept,omitempty"` // Compaction: rows from here on are kept
}

// Text is the text of the entry's blocks.
func (e *Entry) Text() string {
	var s strings.Builder
	for _, b := range e.Content {
		if b.Type == model.Text {
			s.WriteString(b.Text)
		}
	}
	return s.String()
}

// MaxRow is the size in bytes from which a row's body goes to the blob store.
const MaxRow = 300 << 10

const (
	attrBody = "body"
	attrBlob = "blob"
	attrSize = "size"
)

// RowSK is the sort key of a row.
func RowSK(seq int64) string { return fmt.Sprintf("%012d", seq) }

// Log reads and writes the rows of transcripts.
type Log struct {
	Store table.Store
	Blobs blob.Store // nil: rows over MaxRow are refused by the table
	Cache *Cache     // nil: none
}

// Put is the op that writes e under its Seq, once. A body over MaxRow is stored in
// the blob store first, under a name of its own, so that a writer that lost its
// claim meanwhile has changed nothing that anybody reads.
func (l *Log) Put(ctx context.Context, ref session.Ref, sessionID string, e Entry) (table.Op, error) {
	body, err := json.Marshal(&e)
	if err != nil {
		return table.Op{}, fmt.Errorf("transcript row: %w", err)
	}
	item := table.Attrs{attrBody: body}
	if len(body) > MaxRow && l.Blobs != nil {
		key := "transcript/" + ref.Tenant + "/" + ref.Hash() + "/" + sessionID + "/" + RowSK(e.Seq) + "-" + e.ID
		if err := l.Blobs.Put(ctx, key, body); err != nil {
			return table.Op{}, fmt.Errorf("transcript row: %w", err)
		}
		item = table.Attrs{attrBlob: key, attrSize: int64(len(body))}
	}
	return table.Op{
		Kind: table.Put, If: table.NotExists(), Item: item,
		Key: table.Key{Table: table.Sessions, PK: ref.TranscriptPK(sessionID), SK: RowSK(e.Seq)},
	}, nil
}

func (l *Log) decode(ctx context.Context, it table.Item) (Entry, error) {
	var e Entry
	seq, err := strconv.ParseInt(it.Key.SK, 10, 64)
	if err != nil {
		return e, fmt.Errorf("transcript row %q: %w", it.Key.SK, err)
	}
	body := it.Attrs.Bytes(attrBody)
	if key := it.Attrs.Str(attrBlob); key != "" {
		if l.Blobs == nil {
			return e, fmt.Errorf("transcript row %d: no blob store", seq)
		}
		if body, err = l.Blobs.Get(ctx, key); err != nil {
			return e, fmt.Errorf("transcript row %d: %w", seq, err)
		}
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, fmt.Errorf("transcript row %d: %w", seq, err)
	}
	e.Seq = seq
	return e, nil
}
