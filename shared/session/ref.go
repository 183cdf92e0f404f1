// Package session is the address of a conversation and what is known about it:
// keys, the hot item META, and the entry with preferences.
//
// Guarantees: a key that Resolve accepted is canonical, so two spellings of one
// conversation meet in one item; META is never deleted and its token and accept
// sequence only grow; everything is looked up under the tenant of its owner.
package session

import (
	"errors"
	"fmt"
	"strings"

	"laneway/shared/id"
	"laneway/shared/table"
)

// Ref addresses a session.
type Ref struct{ Tenant, Key string }

// DefaultTenant owns everything unless a token says otherwise.
const DefaultTenant = "default"

const (
	skMeta  = "META"
	skEntry = "ENTRY"
)

// PK is the partition of the session's own items.
func (r Ref) PK() string { return r.Tenant + "#S#" + r.Key }

// MetaKey is the key of the hot item.
func (r Ref) MetaKey() table.Key { return table.Key{Table: table.Sessions, PK: r.PK(), SK: skMeta} }

// EntryKey is the key of the preferences.
func (r Ref) EntryKey() table.Key { return table.Key{Table: table.Sessions, PK: r.PK(), SK: skEntry} }

// MailKey is the key of a mailbox message.
func (r Ref) MailKey(seq int64) table.Key {
	return table.Key{Table: table.Sessions, PK: r.PK(), SK: fmt.Sprintf("IN#%010d", seq)}
}

// Hash names the session where its key must not be shown: queue groups, logs.
func (r Ref) Hash() string { return id.Hash(r.Tenant, r.Key) }

// TranscriptPK is the partition of a transcript's rows.
func (r Ref) TranscriptPK(sessionID string) string {
	return r.Tenant + "#T#" + id.Hash(r.Key) + "#" + sessionID
}

// RefOfPK is the inverse of PK.
func RefOfPK(pk string) (Ref, bool) {
	tenant, key, ok := strings.Cut(pk, "#S#")
	return Ref{tenant, key}, ok && tenant != "" && key != ""
}

// ErrKey is a session key that cannot be used; its text names the rule.
var ErrKey = errors.New("session key")

// MaxKey bounds a canonical session key in bytes.
const MaxKey = 512

// DefaultAgent is the agent of a call that names none.
const DefaultAgent = "main"

// MainKey is the rest of an agent's main session.
const MainKey = "main"

// Key makes the canonical key of what a caller named. raw may be empty (the
// agent's main session), bare ("work": that of the agent) or whole
// ("agent:main:work"). agentID may be empty; when both name an agent they must
// agree. The error wraps ErrKey.
func Key(raw, agentID string) (key, agent string, err error) {
	if agentID != "" && !ValidAgent(agentID) {
		return "", "", fmt.Errorf("%w: agent id %q must match [a-z0-9][a-z0-9_-]{0,63}", ErrKey, clip(agentID))
	}
	raw = strings.TrimSpace(raw)
	if len(raw) > MaxKey {
		return "", "", fmt.Errorf("%w: longer than %d bytes", ErrKey, MaxKey)
	}
	if raw != "" && !id.Valid(raw) {
		return "", "", fmt.Errorf("%w: must be valid UTF-8 without control characters", ErrKey)
	}
	agent = agentID
	if agent == "" {
		agent = DefaultAgent
	}
	key = strings.ToLower(raw)
	if key == "" {
		key = MainKey
	}
	if !strings.HasPrefix(key, "agent:") {
		key = "agent:" + agent + ":" + key
	}
	if len(key) > MaxKey { // of the canonical form, so that it can be named as it is shown
		return "", "", fmt.Errorf("%w: longer than %d bytes", ErrKey, MaxKey)
	}
	owner, rest, ok := strings.Cut(strings.TrimPrefix(key, "agent:"), ":")
	if !ok || owner == "" || rest == "" || !ValidAgent(owner) {
		return "", "", fmt.Errorf("%w: malformed agent session key %q, want agent:<agentId>:<rest>", ErrKey, clip(raw))
	}
	if agentID != "" && owner != agentID {
		return "", "", fmt.Errorf("%w: agent id %q does not match session key agent %q", ErrKey, agentID, owner)
	}
	return key, owner, nil
}

// AgentOf is the agent of a canonical key.
func AgentOf(key string) string {
	agent, _, _ := strings.Cut(strings.TrimPrefix(key, "agent:"), ":")
	return agent
}

// ValidAgent says whether s can be an agent id.
func ValidAgent(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i, c := range []byte(s) {
		ok := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '_' || c == '-')
		if !ok {
			return false
		}
	}
	return true
}

// ValidTenant says whether s can be a tenant.
func ValidTenant(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}
