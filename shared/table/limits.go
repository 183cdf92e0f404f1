package table

// What a store takes. The numbers are DynamoDB's; every adapter keeps them.
const (
	MaxPK    = 2048      // bytes of a partition key, in a table or an index
	MaxSK    = 1024      // bytes of a sort key, in a table or an index
	MaxItem  = 400 << 10 // bytes of an item, keys and attribute names included
	MaxOps   = 100       // ops of a Write
	MaxWrite = 4 << 20   // bytes of all items of a Write with several ops
	MaxPage  = 1 << 20   // bytes of a Page
	MaxDepth = 31        // levels of Map inside an attribute

	// MaxPaths and MaxConds keep an op's expressions under the 4 KB and the 300
	// operators that DynamoDB accepts: paths of an update, of which an addition to a
	// member of a map counts as three, and parts of a condition.
	MaxPaths = 100
	MaxConds = 60

	maxName = 64<<10 - 1
)

// Size is the number of bytes that count against MaxItem, by DynamoDB's rules:
// names and strings in UTF-8, two digits of a number in a byte, three bytes for a
// map or list and one for each of its elements.
func (it *Item) Size() int {
	if it == nil {
		return 0
	}
	return len("pk") + len(it.Key.PK) + len("sk") + len(it.Key.SK) + it.Attrs.size()
}

func (a Attrs) size() int {
	n := 0
	for name, v := range a {
		n += len(name) + valueSize(v)
	}
	return n
}

func valueSize(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case int64:
		return intSize(v)
	case bool:
		return 1
	case []byte:
		return len(v)
	case Set:
		n := 0
		for _, s := range v {
			n += len(s)
		}
		return n
	case []string:
		n := 3
		for _, s := range v {
			n += len(s) + 1
		}
		return n
	case Map:
		n := 3
		for k, e := range v {
			n += len(k) + valueSize(e) + 1
		}
		return n
	}
	return 0
}

func intSize(v int64) int {
	n := 1
	if v < 0 {
		n++
	}
	digits := 0
	for ; v != 0; v /= 10 {
		digits++
	}
	return n + (digits+1)/2
}

// opSize is what an op carries before anything stored is known.
func opSize(op *Op) int {
	n := len("pk") + len(op.Key.PK) + len("sk") + len(op.Key.SK) + op.Item.size()
	for _, s := range op.Set {
		n += len(s.Path.Attr) + len(s.Path.Member) + valueSize(s.Value)
	}
	for _, m := range op.AddTo {
		n += len(m.Attr) + valueSize(m.Members)
	}
	return n
}
