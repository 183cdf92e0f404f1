package table

import "strings"

// Eval says whether c holds for an item; it == nil is an absent item and c == nil
// always holds. It is the meaning of conditions: bolt decides with it, and the
// suites judge every other adapter by it.
func Eval(c Cond, it *Item) bool {
	switch c := c.(type) {
	case nil:
		return true
	case ItemCond:
		return (it != nil) == c.Exists
	case AttrCond:
		_, ok := Lookup(it, c.Path)
		return ok == c.Exists
	case CompareCond:
		v, ok := Lookup(it, c.Path)
		return ok && compare(v, c.Op, c.Value)
	case AllCond:
		for _, e := range c {
			if !Eval(e, it) {
				return false
			}
		}
		return true
	case AnyCond:
		for _, e := range c {
			if Eval(e, it) {
				return true
			}
		}
	}
	return false
}

// Lookup finds the value of a path. A member of something that is no map is absent.
func Lookup(it *Item, p Path) (any, bool) {
	if it == nil {
		return nil, false
	}
	v, ok := it.Attrs[p.Attr]
	if !ok || p.Member == "" {
		return v, ok
	}
	m, ok := v.(Map)
	if !ok {
		return nil, false
	}
	v, ok = m[p.Member]
	return v, ok
}

// compare is false for values of different kinds: nothing is converted.
func compare(have any, op CompareOp, want any) bool {
	var order int
	switch want := want.(type) {
	case string:
		have, ok := have.(string)
		if !ok {
			return false
		}
		order = strings.Compare(have, want)
	case int64:
		have, ok := have.(int64)
		if !ok {
			return false
		}
		switch {
		case have < want:
			order = -1
		case have > want:
			order = 1
		}
	case bool:
		have, ok := have.(bool)
		return ok && op == Eq && have == want
	default:
		return false
	}
	switch op {
	case Eq:
		return order == 0
	case Lt:
		return order < 0
	case Gt:
		return order > 0
	}
	return false
}
