package table

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Apply gives the item as it is after op; nil is an absent item, before and after.
// It does not look at op.If and expects that Validate has passed. The item before
// is not changed, and values of op are copied; the result may share other values
// with the item before. Errors: ErrInvalid where an attribute is not of the kind
// that the op needs or a sum leaves int64, ErrTooLarge for the item that results.
func Apply(op *Op, before *Item) (*Item, error) {
	switch op.Kind {
	case Check:
		return before, nil
	case Delete:
		return nil, nil
	case Put:
		after := &Item{Key: op.Key, Attrs: make(Attrs, len(op.Item))}
		for n, v := range op.Item {
			after.Attrs[n] = Clone(v)
		}
		return after, fits(after)
	case Update:
	}
	if before == nil && op.OnlyRemoves() {
		return nil, nil
	}
	after := &Item{Key: op.Key, Attrs: make(Attrs)}
	if before != nil {
		maps.Copy(after.Attrs, before.Attrs)
	}
	e := edit{attrs: after.Attrs}
	if err := e.all(op); err != nil {
		return nil, err
	}
	return after, fits(after)
}

// OnlyRemoves says whether an Update takes away and adds nothing: such a one leaves
// an absent item absent.
func (op *Op) OnlyRemoves() bool {
	return op.Kind == Update && len(op.Set)+len(op.Add)+len(op.AddTo) == 0
}

func fits(it *Item) error {
	if n := it.Size(); n > MaxItem {
		return fmt.Errorf("%w: item of %d bytes in %s, at most %d", ErrTooLarge, n, it.Key.Table, MaxItem)
	}
	return nil
}

// edit changes a copy of an item's attributes. Maps of the item before are copied
// once, before their first change.
type edit struct {
	attrs Attrs
	own   map[string]bool // attributes whose Map is already a copy
}

func (e *edit) all(op *Op) error {
	for _, s := range op.Set {
		if err := e.set(s.Path, Clone(s.Value)); err != nil {
			return err
		}
	}
	for _, a := range op.Add {
		if err := e.add(a); err != nil {
			return err
		}
	}
	for _, m := range op.AddTo {
		if err := e.addTo(m); err != nil {
			return err
		}
	}
	for _, m := range op.TakeFrom {
		if err := e.takeFrom(m); err != nil {
			return err
		}
	}
	for _, p := range op.Remove {
		if err := e.remove(p); err != nil {
			return err
		}
	}
	return nil
}

// members is the map of an attribute, ready to be changed; nil where the attribute
// is absent and create is false.
func (e *edit) members(attr string, create bool) (Map, error) {
	v, there := e.attrs[attr]
	m, isMap := v.(Map)
	switch {
	case there && !isMap:
		return nil, fmt.Errorf("%w: attribute %q is not a map", ErrInvalid, attr)
	case !there && !create:
		return nil, nil
	case e.own[attr]:
		return m, nil
	}
	c := make(Map, len(m)+1)
	maps.Copy(c, m)
	e.attrs[attr] = c
	if e.own == nil {
		e.own = make(map[string]bool)
	}
	e.own[attr] = true
	return c, nil
}

func (e *edit) set(p Path, v any) error {
	if p.Member == "" {
		e.attrs[p.Attr] = v
		return nil
	}
	m, err := e.members(p.Attr, true)
	if err != nil {
		return err
	}
	m[p.Member] = v
	return nil
}

func (e *edit) add(a AddOp) error {
	old, there := Lookup(&Item{Attrs: e.attrs}, a.Path)
	n, isInt := old.(int64)
	if there && !isInt {
		return fmt.Errorf("%w: %q is not a number", ErrInvalid, a.Path.Attr)
	}
	if (a.N > 0 && n > math.MaxInt64-a.N) || (a.N < 0 && n < math.MinInt64-a.N) {
		return fmt.Errorf("%w: sum in %q leaves 64 bits", ErrInvalid, a.Path.Attr)
	}
	return e.set(a.Path, n+a.N)
}

func (e *edit) stringSet(attr string) (Set, error) {
	v, there := e.attrs[attr]
	s, ok := v.(Set)
	if there && !ok {
		return nil, fmt.Errorf("%w: attribute %q is not a set", ErrInvalid, attr)
	}
	return s, nil
}

func (e *edit) addTo(m MemberOp) error {
	s, err := e.stringSet(m.Attr)
	if err != nil {
		return err
	}
	u := append(slices.Clone(s), m.Members...)
	slices.Sort(u)
	e.attrs[m.Attr] = slices.Compact(u)
	return nil
}

func (e *edit) takeFrom(m MemberOp) error {
	s, err := e.stringSet(m.Attr)
	if err != nil || s == nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(s), func(v string) bool { return slices.Contains(m.Members, v) })
	if len(rest) == 0 {
		delete(e.attrs, m.Attr)
		return nil
	}
	e.attrs[m.Attr] = rest
	return nil
}

func (e *edit) remove(p Path) error {
	if p.Member == "" {
		delete(e.attrs, p.Attr)
		return nil
	}
	m, err := e.members(p.Attr, false)
	if err != nil {
		return err
	}
	delete(m, p.Member)
	return nil
}

// Clone copies a value into the form in which stores return it: nothing shared,
// sets sorted, nil maps, lists and bytes as empty ones.
func Clone(v any) any {
	switch v := v.(type) {
	case []byte:
		return append(make([]byte, 0, len(v)), v...)
	case []string:
		return append(make([]string, 0, len(v)), v...)
	case Set:
		s := slices.Clone(v)
		slices.Sort(s)
		return s
	case Map:
		m := make(Map, len(v))
		for k, e := range v {
			m[k] = Clone(e)
		}
		return m
	}
	return v
}
