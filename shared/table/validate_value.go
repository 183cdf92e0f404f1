package table

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// checkAttr checks a path and the value that is to be written there.
func checkAttr(tableName string, p Path, v any) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if limit := indexLimit(tableName, p.Attr); limit > 0 {
		s, ok := v.(string)
		if !ok || p.Member != "" {
			return fmt.Errorf("%w: attribute %q is an index key and must be a string", ErrInvalid, p.Attr)
		}
		return checkKeyPart("index key "+p.Attr, s, limit)
	}
	depth := 0
	if p.Member != "" {
		depth = 1
	}
	if err := checkValue(v, depth); err != nil {
		return fmt.Errorf("%w in attribute %q", err, p.Attr)
	}
	return nil
}

func checkPath(p Path) error {
	if p.Attr == "pk" || p.Attr == "sk" {
		return fmt.Errorf("%w: attribute %q is part of the key", ErrInvalid, p.Attr)
	}
	if err := checkName(p.Attr); err != nil {
		return err
	}
	if p.Member == "" {
		return nil
	}
	return checkName(p.Member)
}

func checkName(n string) error {
	switch {
	case n == "":
		return fmt.Errorf("%w: empty attribute name", ErrInvalid)
	case len(n) > maxName:
		return fmt.Errorf("%w: attribute name of %d bytes", ErrInvalid, len(n))
	case !utf8.ValidString(n):
		return fmt.Errorf("%w: attribute name is not valid UTF-8", ErrInvalid)
	}
	return nil
}

func checkValue(v any, depth int) error {
	switch v := v.(type) {
	case int64, bool, []byte:
		return nil
	case string:
		return checkText(v)
	case []string:
		for _, s := range v {
			if err := checkText(s); err != nil {
				return err
			}
		}
		return nil
	case Set:
		return checkSet(v)
	case Map:
		if depth >= MaxDepth {
			return fmt.Errorf("%w: maps more than %d deep", ErrInvalid, MaxDepth)
		}
		for k, e := range v {
			if err := checkName(k); err != nil {
				return err
			}
			if err := checkValue(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: unsupported kind %T", ErrInvalid, v)
}

func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: invalid UTF-8", ErrInvalid)
	}
	return nil
}

func checkSet(s Set) error {
	if len(s) == 0 {
		return fmt.Errorf("%w: empty set", ErrInvalid)
	}
	for _, m := range s {
		if m == "" {
			return fmt.Errorf("%w: empty member of a set", ErrInvalid)
		}
		if err := checkText(m); err != nil {
			return err
		}
	}
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(s) {
		return fmt.Errorf("%w: a member twice in a set", ErrInvalid)
	}
	return nil
}
