package table

import (
	"fmt"
	"unicode/utf8"
)

// Validate refuses whatever DynamoDB would refuse of a Write, before anything is
// sent or stored. Adapters call it first. Errors are ErrInvalid or ErrTooLarge and
// name the op and what is wrong with it, never a value.
func Validate(ops []Op) error {
	switch {
	case len(ops) == 0:
		return fmt.Errorf("%w: a write without ops", ErrInvalid)
	case len(ops) > MaxOps:
		return fmt.Errorf("%w: %d ops in a write, at most %d", ErrTooLarge, len(ops), MaxOps)
	}
	total := 0
	for i := range ops {
		if err := checkOp(&ops[i], len(ops) == 1); err != nil {
			return fmt.Errorf("%w (op %d on %q)", err, i, ops[i].Key.Table)
		}
		n := opSize(&ops[i])
		if n > MaxItem {
			return fmt.Errorf("%w: op %d carries %d bytes, at most %d", ErrTooLarge, i, n, MaxItem)
		}
		total += n
	}
	if len(ops) == 1 {
		return nil
	}
	if total > MaxWrite {
		return fmt.Errorf("%w: ops carry %d bytes, at most %d", ErrTooLarge, total, MaxWrite)
	}
	seen := make(map[Key]int, len(ops))
	for i := range ops {
		if j, twice := seen[ops[i].Key]; twice {
			return fmt.Errorf("%w: ops %d and %d are on the same item", ErrInvalid, j, i)
		}
		seen[ops[i].Key] = i
	}
	return nil
}

func checkOp(op *Op, alone bool) error {
	if err := ValidateKey(op.Key); err != nil {
		return err
	}
	updates := len(op.Set) + len(op.Add) + len(op.AddTo) + len(op.TakeFrom) + len(op.Remove)
	weight := updates
	for _, a := range op.Add {
		if a.Path.Member != "" {
			weight += 2
		}
	}
	switch {
	case op.Kind < Put || op.Kind > Check:
		return fmt.Errorf("%w: no such kind of op: %d", ErrInvalid, op.Kind)
	case op.Kind == Update && updates == 0:
		return fmt.Errorf("%w: an update that changes nothing", ErrInvalid)
	case op.Kind != Update && updates > 0:
		return fmt.Errorf("%w: changes of attributes outside an update", ErrInvalid)
	case op.Kind != Put && op.Item != nil:
		return fmt.Errorf("%w: an item outside a put", ErrInvalid)
	case op.Kind == Check && op.If == nil:
		return fmt.Errorf("%w: a check without a condition", ErrInvalid)
	case op.ReturnNew && (op.Kind != Update || !alone):
		return fmt.Errorf("%w: ReturnNew is for an update that is the only op", ErrInvalid)
	case weight > MaxPaths:
		return fmt.Errorf("%w: %d paths in an update, at most %d", ErrTooLarge, weight, MaxPaths)
	}
	if op.If != nil {
		nodes := 0
		if err := checkCond(op.If, &nodes); err != nil {
			return err
		}
	}
	for n, v := range op.Item {
		if err := checkAttr(op.Key.Table, Path{Attr: n}, v); err != nil {
			return err
		}
	}
	if op.Kind == Update {
		return checkUpdate(op)
	}
	return nil
}

func checkUpdate(op *Op) error {
	var seen paths
	for _, s := range op.Set {
		if err := seen.take(s.Path); err != nil {
			return err
		}
		if err := checkAttr(op.Key.Table, s.Path, s.Value); err != nil {
			return err
		}
	}
	for _, a := range op.Add {
		if err := seen.take(a.Path); err != nil {
			return err
		}
		if err := checkAttr(op.Key.Table, a.Path, a.N); err != nil {
			return err
		}
	}
	for _, list := range [2][]MemberOp{op.AddTo, op.TakeFrom} {
		for _, m := range list {
			if err := seen.take(Path{Attr: m.Attr}); err != nil {
				return err
			}
			if err := checkAttr(op.Key.Table, Path{Attr: m.Attr}, m.Members); err != nil {
				return err
			}
		}
	}
	for _, p := range op.Remove {
		if err := seen.take(p); err != nil {
			return err
		}
		if err := checkPath(p); err != nil {
			return err
		}
	}
	return nil
}

// paths finds two that overlap: equal ones, and an attribute beside its own member.
type paths struct {
	all   map[Path]bool
	whole map[string]bool // attribute: true when taken as a whole, false by a member
}

func (s *paths) take(p Path) error {
	if s.all == nil {
		s.all, s.whole = make(map[Path]bool), make(map[string]bool)
	}
	whole, there := s.whole[p.Attr]
	if s.all[p] || there && (whole || p.Member == "") {
		return fmt.Errorf("%w: paths overlap at attribute %q", ErrInvalid, p.Attr)
	}
	s.all[p], s.whole[p.Attr] = true, p.Member == ""
	return nil
}

func checkCond(c Cond, nodes *int) error {
	*nodes++
	if *nodes > MaxConds {
		return fmt.Errorf("%w: a condition of more than %d parts", ErrTooLarge, MaxConds)
	}
	var parts []Cond
	switch c := c.(type) {
	case ItemCond:
		return nil
	case AttrCond:
		return checkPath(c.Path)
	case CompareCond:
		return checkCompare(c)
	case AllCond:
		parts = c
	case AnyCond:
		parts = c
	default:
		return fmt.Errorf("%w: no such condition: %T", ErrInvalid, c)
	}
	for _, p := range parts {
		if err := checkCond(p, nodes); err != nil {
			return err
		}
	}
	return nil
}

func checkCompare(c CompareCond) error {
	if err := checkPath(c.Path); err != nil {
		return err
	}
	if c.Op < Eq || c.Op > Gt {
		return fmt.Errorf("%w: no such comparison: %d", ErrInvalid, c.Op)
	}
	switch v := c.Value.(type) {
	case int64:
		return nil
	case string:
		if utf8.ValidString(v) {
			return nil
		}
		return fmt.Errorf("%w: %q is compared with invalid UTF-8", ErrInvalid, c.Path.Attr)
	case bool:
		if c.Op == Eq {
			return nil
		}
	}
	return fmt.Errorf("%w: %q cannot be compared so with a %T", ErrInvalid, c.Path.Attr, c.Value)
}

// ValidateKey refuses a key that no item can have.
func ValidateKey(k Key) error {
	if _, ok := definition(k.Table); !ok {
		return fmt.Errorf("%w: no table %q", ErrInvalid, k.Table)
	}
	if err := checkKeyPart("partition key", k.PK, MaxPK); err != nil {
		return err
	}
	return checkKeyPart("sort key", k.SK, MaxSK)
}

func checkKeyPart(what, s string, limit int) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: empty %s", ErrInvalid, what)
	case len(s) > limit:
		return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrInvalid, what, len(s), limit)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, what)
	}
	return nil
}
