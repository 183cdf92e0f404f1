package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"laneway/shared/table"
)

// The stored form of an item's attributes: a version byte, the number of attributes,
// then name and value of each, sorted by name. Every value begins with a tag byte.
// Lengths and counts are uvarints; numbers are zigzag varints.
const formatVersion = 1

const (
	tagString = 's'
	tagInt    = 'i'
	tagFalse  = 'f'
	tagTrue   = 't'
	tagBytes  = 'b'
	tagSet    = 'S'
	tagList   = 'l'
	tagMap    = 'm'
)

// errCorrupt means that stored bytes are not what this package writes.
var errCorrupt = errors.New("bolt: stored item is damaged")

func encode(a table.Attrs) []byte {
	b := make([]byte, 0, 256)
	b = append(b, formatVersion)
	return appendMembers(b, a)
}

func appendMembers(b []byte, m map[string]any) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	var few [32]string // most items have fewer, and their names stay on the stack
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = appendString(b, name)
		b = appendValue(b, m[name])
	}
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendStrings(b []byte, tag byte, list []string) []byte {
	b = binary.AppendUvarint(append(b, tag), uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendString(append(b, tagString), v)
	case int64:
		return binary.AppendVarint(append(b, tagInt), v)
	case bool:
		if v {
			return append(b, tagTrue)
		}
		return append(b, tagFalse)
	case []byte:
		return append(binary.AppendUvarint(append(b, tagBytes), uint64(len(v))), v...)
	case table.Set:
		return appendStrings(b, tagSet, v)
	case []string:
		return appendStrings(b, tagList, v)
	case table.Map:
		return appendMembers(append(b, tagMap), v)
	}
	// Validate lets no other kind through; were there one, reading would fail and
	// say so, rather than give back something else than what was written.
	return append(b, 0)
}

// decode copies everything out of b, which belongs to the file's memory map.
func decode(b []byte) (table.Attrs, error) {
	d := decoder{b: b}
	if v := d.byte(); v != formatVersion && d.err == nil {
		return nil, fmt.Errorf("%w: format %d is unknown", errCorrupt, v)
	}
	a := table.Attrs(d.members(0))
	if d.err == nil && len(d.b) > 0 {
		d.fail()
	}
	return a, d.err
}

// decoder takes bytes from the front of b. After the first error it gives zeros.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errCorrupt
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// count reads a length or a number of elements; each element takes at least a byte,
// so that a damaged one cannot ask for more memory than there is.
func (d *decoder) count() int {
	n, w := binary.Uvarint(d.b)
	if w <= 0 || n > uint64(len(d.b)-w) {
		d.fail()
		return 0
	}
	d.b = d.b[w:]
	return int(n)
}

func (d *decoder) bytes() []byte {
	n := d.count()
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) strings() []string {
	list := make([]string, d.count())
	for i := range list {
		list[i] = string(d.bytes())
	}
	return list
}

func (d *decoder) members(depth int) map[string]any {
	n := d.count()
	if depth > table.MaxDepth+1 {
		d.fail()
		return nil
	}
	m := make(map[string]any, min(n, 1024))
	for range n {
		name := known.get(d.bytes())
		m[name] = d.value(depth)
		if d.err != nil {
			return nil
		}
	}
	return m
}

func (d *decoder) value(depth int) any {
	switch d.byte() {
	case tagString:
		return string(d.bytes())
	case tagInt:
		v, w := binary.Varint(d.b)
		if w <= 0 {
			d.fail()
			return nil
		}
		d.b = d.b[w:]
		return v
	case tagFalse:
		return false
	case tagTrue:
		return true
	case tagBytes:
		return append([]byte{}, d.bytes()...)
	case tagSet:
		return table.Set(d.strings())
	case tagList:
		return d.strings()
	case tagMap:
		return table.Map(d.members(depth + 1))
	}
	d.fail()
	return nil
}
