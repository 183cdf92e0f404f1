package table

import "fmt"

// definitions answers lookups of every operation; it is never changed.
var definitions = func() map[string]Def {
	m := make(map[string]Def)
	for _, d := range Definitions() {
		m[d.Name] = d
	}
	return m
}()

func definition(name string) (Def, bool) {
	d, ok := definitions[name]
	return d, ok
}

// indexLimit is the number of bytes that an attribute may have because it is a key
// of an index; 0: it is none.
func indexLimit(tableName, attr string) int {
	for _, x := range definitions[tableName].Indexes {
		switch attr {
		case x.PK:
			return MaxPK
		case x.SK:
			return MaxSK
		}
	}
	return 0
}

// ValidateQuery refuses whatever DynamoDB would refuse of a Query, and gives the
// sort key after which the page starts ("": at its end of the range).
func ValidateQuery(q Query) (after string, err error) {
	if _, ok := definition(q.Table); !ok {
		return "", fmt.Errorf("%w: no table %q", ErrInvalid, q.Table)
	}
	if err := checkRange(q.PK, q.From, q.To, q.Limit); err != nil {
		return "", err
	}
	if q.After == "" {
		return "", nil
	}
	parts, err := decodeCursor(q.After, 1)
	if err != nil {
		return "", err
	}
	return parts[0], cursorInside(parts[0], q.From, q.To)
}

// ValidateIndexQuery is ValidateQuery for an index; it also gives the index's
// definition and the entry after which the page starts (its zero: none).
func ValidateIndexQuery(q IndexQuery) (def IndexDef, after IndexKey, err error) {
	d, ok := definition(q.Table)
	if !ok {
		return def, after, fmt.Errorf("%w: no table %q", ErrInvalid, q.Table)
	}
	for _, x := range d.Indexes {
		if x.Name == q.Index {
			def = x
		}
	}
	if def.Name == "" {
		return def, after, fmt.Errorf("%w: no index %q on %s", ErrInvalid, q.Index, q.Table)
	}
	if err := checkRange(q.PK, q.From, q.To, q.Limit); err != nil {
		return def, after, err
	}
	if q.After == "" {
		return def, after, nil
	}
	parts, err := decodeCursor(q.After, 3)
	if err != nil {
		return def, after, err
	}
	after = IndexKey{SK: parts[0], Key: Key{Table: q.Table, PK: parts[1], SK: parts[2]}}
	if err := ValidateKey(after.Key); err != nil {
		return def, after, err
	}
	return def, after, cursorInside(after.SK, q.From, q.To)
}

func checkRange(pk, from, to string, limit int) error {
	if limit < 0 {
		return fmt.Errorf("%w: negative limit", ErrInvalid)
	}
	if err := checkKeyPart("partition key", pk, MaxPK); err != nil {
		return err
	}
	for _, b := range [2]string{from, to} {
		if b == "" {
			continue
		}
		if err := checkKeyPart("bound", b, MaxSK); err != nil {
			return err
		}
	}
	return nil
}

// cursorInside keeps a cursor of one query out of another: DynamoDB refuses it too.
func cursorInside(sk, from, to string) error {
	if err := checkKeyPart("cursor", sk, MaxSK); err != nil {
		return err
	}
	if sk < from || to != "" && sk >= to {
		return fmt.Errorf("%w: the cursor is outside the range", ErrInvalid)
	}
	return nil
}
