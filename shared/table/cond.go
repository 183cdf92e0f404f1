package table

// Cond is a typed condition on one item: the constructors below are all there are.
type Cond interface{ cond() }

type (
	// ItemCond is Exists or NotExists of the whole item.
	ItemCond struct{ Exists bool }
	// AttrCond is the presence of an attribute or map member.
	AttrCond struct {
		Path   Path
		Exists bool
	}
	// CompareCond compares an attribute with a value of the same kind. An absent
	// attribute satisfies none of them.
	CompareCond struct {
		Path  Path
		Op    CompareOp
		Value any
	}
	// AllCond holds when each of its conditions does.
	AllCond []Cond
	// AnyCond holds when one of its conditions does.
	AnyCond []Cond
)

// CompareOp is the comparison of a CompareCond.
type CompareOp int

// Comparisons: of strings by bytes, of numbers by value; Eq also of bools.
const (
	Eq CompareOp = iota + 1
	Lt
	Gt
)

func (ItemCond) cond()    {}
func (AttrCond) cond()    {}
func (CompareCond) cond() {}
func (AllCond) cond()     {}
func (AnyCond) cond()     {}

// Exists holds when the item is there.
func Exists() Cond { return ItemCond{true} }

// NotExists holds when the item is absent.
func NotExists() Cond { return ItemCond{false} }

// Has holds when the attribute or member is there.
func Has(p Path) Cond { return AttrCond{p, true} }

// Lacks holds when the attribute or member (or the whole item) is absent.
func Lacks(p Path) Cond { return AttrCond{p, false} }

// Equal holds when the attribute is there and equal to v.
func Equal(p Path, v any) Cond { return CompareCond{p, Eq, v} }

// Less holds when the attribute is there and less than v.
func Less(p Path, v any) Cond { return CompareCond{p, Lt, v} }

// Greater holds when the attribute is there and greater than v.
func Greater(p Path, v any) Cond { return CompareCond{p, Gt, v} }

// All holds when every condition does; of none, always.
func All(cs ...Cond) Cond { return AllCond(cs) }

// Any holds when one of the conditions does; of none, never.
func Any(cs ...Cond) Cond { return AnyCond(cs) }
