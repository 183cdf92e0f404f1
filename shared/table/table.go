// Package table is the storage port of Laneway: conditional-write tables.
//
// It promises what DynamoDB promises and no more. Items live under (table, pk,
// sk). Get and Query are strongly consistent. Write is atomic: one op is a
// conditional write, several are a transaction, all or nothing; a failed
// condition says which op failed and what item was there. Index may be stale
// and is never the ground for a write. There are no scans, filters or joins.
// Limits hold on every adapter: at most 100 ops in a Write, each item once, an
// item at most 400 KB, no empty key parts.
//
// The adapters are dynamo (AWS) and bolt (one machine); tabletest is the judge
// of both.
package table

import "context"

// Key addresses an item. PK is valid UTF-8 of 1 to 2048 bytes, SK of 1 to 1024.
type Key struct{ Table, PK, SK string }

// Attrs are an item's attributes beside its key. A value is one of: string,
// int64, bool, []byte, Set, Map (of the same values), or []string (a list). Absent is not the same as empty; an empty
// Set cannot be stored (removing the last member removes the attribute).
type Attrs map[string]any

// Set is a string set; order has no meaning, adapters return it sorted.
type Set []string

// Map is a nested map; its members can be addressed by a Path.
type Map map[string]any

// Item is a stored item.
type Item struct {
	Key   Key
	Attrs Attrs
}

// Str is the string n, or "" where it is absent or of another kind.
func (a Attrs) Str(n string) string { v, _ := a[n].(string); return v }

// Int is the number n, or 0 where it is absent or of another kind.
func (a Attrs) Int(n string) int64 { v, _ := a[n].(int64); return v }

// Bool is the bool n, or false where it is absent or of another kind.
func (a Attrs) Bool(n string) bool { v, _ := a[n].(bool); return v }

// Bytes is the bytes n, or nil where they are absent or of another kind.
func (a Attrs) Bytes(n string) []byte { v, _ := a[n].([]byte); return v }

// StrSet is the set n, or nil where it is absent or of another kind.
func (a Attrs) StrSet(n string) Set { v, _ := a[n].(Set); return v }

// MapOf is the map n, or nil where it is absent or of another kind.
func (a Attrs) MapOf(n string) Map { v, _ := a[n].(Map); return v }

// Path names an attribute, or one member of a Map attribute. Member may hold any
// valid UTF-8, dots and dashes included.
type Path struct{ Attr, Member string }

// P is the path of an attribute, or of a member of a map attribute.
func P(attr string, member ...string) Path {
	p := Path{Attr: attr}
	if len(member) > 0 {
		p.Member = member[0]
	}
	return p
}

// Kind is what an Op does.
type Kind int

// The kinds of Op.
const (
	Put    Kind = iota + 1 // the whole item, replacing what was there
	Update                 // some attributes; creates the item where it is absent, unless it only removes
	Delete                 // the item; deleting an absent one succeeds
	Check                  // only the condition
)

// Op is one write. If is evaluated against the item as it is before the Write.
type Op struct {
	Kind Kind
	Key  Key
	Item Attrs // Put
	// Update. A path may occur once in all five lists. Setting a member of a map
	// creates the map where the attribute is absent (adapters see to that; a nil
	// Map value in Set is written as an empty map).
	Set       []SetOp
	Add       []AddOp    // numbers; an absent one counts as 0
	AddTo     []MemberOp // members into a string set
	TakeFrom  []MemberOp // members out of a string set
	Remove    []Path
	If        Cond // nil: no condition
	ReturnNew bool // Update as the only op of a Write: WriteResult.New has the item after it
}

// SetOp sets a path to a value.
type SetOp struct {
	Path  Path
	Value any
}

// AddOp adds a number to a path.
type AddOp struct {
	Path Path
	N    int64
}

// MemberOp adds or removes members of a string-set attribute.
type MemberOp struct {
	Attr    string
	Members Set
}

// Query asks for the items of one partition in sort-key order.
type Query struct {
	Table, PK string
	From      string // inclusive; empty: from the start
	To        string // exclusive; empty: to the end
	Limit     int    // at most so many items in the page; 0: as many as fit
	Desc      bool
	After     string // cursor of the page before
}

// Page is a part of a Query's answer. A page ends at Limit or at 1 MB; Next is
// empty when nothing is left. A last page may be empty.
type Page struct {
	Items []Item
	Next  string
}

// IndexQuery asks an index of a table, which may be stale.
type IndexQuery struct {
	Table, Index, PK string
	From, To         string
	Limit            int
	Desc             bool
	After            string
}

// KeyPage is a part of an index's answer: keys of items and the index sort key.
type KeyPage struct {
	Keys []IndexKey
	Next string
}

// IndexKey is an entry of a KEYS_ONLY index.
type IndexKey struct {
	Key Key
	SK  string // sort key in the index
}

// Store is the port. All errors answer errors.Is with the sentinels of errors.go.
type Store interface {
	// Get returns ErrNotFound where there is no item.
	Get(ctx context.Context, k Key) (Item, error)
	Query(ctx context.Context, q Query) (Page, error)
	Index(ctx context.Context, q IndexQuery) (KeyPage, error)
	// Write does all ops or none. A failed condition is a *ConditionError.
	Write(ctx context.Context, ops ...Op) (Result, error)
}

// Result is what a Write that succeeded has to say.
type Result struct {
	New *Item // see Op.ReturnNew
}
