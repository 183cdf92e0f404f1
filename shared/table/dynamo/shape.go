package dynamo

import (
	"maps"

	"laneway/shared/table"
)

// shape is what a request assumes about the stored item of an op.
//
// DynamoDB refuses to set or remove a member of a map that is absent, and an update
// that only removes leaves an absent item absent on DynamoDB but not on every
// emulator. So a request is first made for the common case: maps are there, and the
// item of an update that only removes is there (which the request then checks). If
// that is refused, the item is read and the request made again for what was found,
// with the assumption as a part of its condition. So it is still one conditional,
// atomic operation; if the assumption turns out wrong meanwhile, the item that comes
// with the failed condition gives the next shape.
type shape struct {
	absentMaps map[string]bool // attributes without which the members become a whole map
	absentItem bool            // of an update that only removes: there is nothing to do
}

// shapeOf is the shape for a stored item.
func shapeOf(op *table.Op, it *table.Item) shape {
	s := shape{absentItem: it == nil && op.OnlyRemoves()}
	for _, attr := range memberAttrs(op) {
		if _, there := table.Lookup(it, table.P(attr)); !there {
			if s.absentMaps == nil {
				s.absentMaps = make(map[string]bool)
			}
			s.absentMaps[attr] = true
		}
	}
	return s
}

func (s shape) equal(o shape) bool {
	return s.absentItem == o.absentItem && maps.Equal(s.absentMaps, o.absentMaps)
}

// guard is the assumption as a condition; nil: none.
func (s shape) guard(op *table.Op) table.Cond {
	var all []table.Cond
	switch {
	case s.absentItem:
		return table.NotExists()
	case op.OnlyRemoves():
		all = append(all, table.Exists())
	}
	for attr := range s.absentMaps {
		all = append(all, table.Lacks(table.P(attr)))
	}
	if len(all) == 0 {
		return nil
	}
	return table.All(all...)
}

// memberAttrs are the attributes whose members an update names, once each.
func memberAttrs(op *table.Op) []string {
	var attrs []string
	seen := make(map[string]bool)
	note := func(p table.Path) {
		if p.Member != "" && !seen[p.Attr] {
			seen[p.Attr] = true
			attrs = append(attrs, p.Attr)
		}
	}
	for _, s := range op.Set {
		note(s.Path)
	}
	for _, a := range op.Add {
		note(a.Path)
	}
	for _, p := range op.Remove {
		note(p)
	}
	return attrs
}

// both is the caller's condition and the guard.
func both(op *table.Op, s shape) table.Cond {
	g := s.guard(op)
	switch {
	case g == nil:
		return op.If
	case op.If == nil:
		return g
	}
	return table.All(op.If, g)
}
