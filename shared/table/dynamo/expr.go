package dynamo

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/table"
)

// expr gathers the names and values of one operation's expressions. The SDK has a
// builder, but its placeholders (:1, :10) are prefixes of each other, which some
// emulators replace wrongly; these have one width. Every name goes through a
// placeholder, so that none is reserved and dots and dashes are just characters.
type expr struct {
	names  map[string]string // placeholder: name
	values map[string]types.AttributeValue
	byName map[string]string // name: placeholder
}

func (e *expr) name(n string) string {
	if p, ok := e.byName[n]; ok {
		return p
	}
	if e.names == nil {
		e.names, e.byName = make(map[string]string), make(map[string]string)
	}
	p := fmt.Sprintf("#n%03d", len(e.names))
	e.names[p], e.byName[n] = n, p
	return p
}

func (e *expr) path(p table.Path) string {
	if p.Member == "" {
		return e.name(p.Attr)
	}
	return e.name(p.Attr) + "." + e.name(p.Member)
}

func (e *expr) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = make(map[string]types.AttributeValue)
	}
	p := fmt.Sprintf(":v%03d", len(e.values))
	e.values[p] = v
	return p
}

// condition is nil where nothing needs to be asked.
func (e *expr) condition(c table.Cond) *string {
	if c == nil {
		return nil
	}
	switch s, known := e.cond(c); {
	case s != "":
		return aws.String(s)
	case known:
		return nil
	}
	pk := e.name(pkAttr)
	return aws.String("attribute_exists(" + pk + ") AND attribute_not_exists(" + pk + ")")
}

// required is condition where DynamoDB wants one, even if it always holds.
func (e *expr) required(c table.Cond) *string {
	if s := e.condition(c); s != nil {
		return s
	}
	pk := e.name(pkAttr)
	return aws.String("attribute_exists(" + pk + ") OR attribute_not_exists(" + pk + ")")
}

// cond gives an expression, or "" and the value that c always has: DynamoDB has no
// empty AND or OR.
func (e *expr) cond(c table.Cond) (s string, known bool) {
	switch c := c.(type) {
	case table.ItemCond:
		return existence(c.Exists) + "(" + e.name(pkAttr) + ")", false
	case table.AttrCond:
		return existence(c.Exists) + "(" + e.path(c.Path) + ")", false
	case table.CompareCond:
		op := map[table.CompareOp]string{table.Eq: "=", table.Lt: "<", table.Gt: ">"}[c.Op]
		return e.path(c.Path) + " " + op + " " + e.value(marshal(c.Value)), false
	case table.AllCond:
		return e.join(c, " AND ", true)
	case table.AnyCond:
		return e.join(c, " OR ", false)
	}
	return "", false
}

func existence(exists bool) string {
	if exists {
		return "attribute_exists"
	}
	return "attribute_not_exists"
}

// join leaves out parts that always have the value neutral; one that always has the
// other value decides.
func (e *expr) join(parts []table.Cond, with string, neutral bool) (string, bool) {
	for _, p := range parts {
		if v, ok := always(p); ok && v != neutral {
			return "", !neutral // before names and values of the others are used up
		}
	}
	var list []string
	for _, p := range parts {
		if s, _ := e.cond(p); s != "" {
			list = append(list, s)
		}
	}
	switch len(list) {
	case 0:
		return "", neutral
	case 1:
		return list[0], false
	}
	return "(" + strings.Join(list, with) + ")", false
}

// always says whether c has the same value for every item, and which.
func always(c table.Cond) (value, ok bool) {
	var parts []table.Cond
	neutral := false
	switch c := c.(type) {
	case table.AllCond:
		parts, neutral = c, true
	case table.AnyCond:
		parts = c
	default:
		return false, false
	}
	constant := true
	for _, p := range parts {
		switch v, ok := always(p); {
		case ok && v != neutral:
			return v, true
		case !ok:
			constant = false
		}
	}
	return neutral, constant
}

// update writes the four clauses. Members of maps that the shape takes for absent
// become one assignment of the whole map each; removals from those are left out.
func (e *expr) update(op *table.Op, absent map[string]bool) *string {
	var sets, adds, deletes, removes []string
	whole := make(map[string]table.Map)
	for attr := range absent {
		whole[attr] = table.Map{}
	}
	for _, s := range op.Set {
		if s.Path.Member != "" && absent[s.Path.Attr] {
			whole[s.Path.Attr][s.Path.Member] = s.Value
			continue
		}
		sets = append(sets, e.path(s.Path)+" = "+e.value(marshal(s.Value)))
	}
	for _, a := range op.Add {
		if a.Path.Member != "" && absent[a.Path.Attr] {
			whole[a.Path.Attr][a.Path.Member] = a.N
			continue
		}
		if a.Path.Member == "" {
			adds = append(adds, e.name(a.Path.Attr)+" "+e.value(number(a.N)))
			continue
		}
		p := e.path(a.Path)
		sets = append(sets, p+" = if_not_exists("+p+", "+e.value(number(0))+") + "+e.value(number(a.N)))
	}
	for attr, m := range whole {
		if len(m) > 0 {
			sets = append(sets, e.name(attr)+" = "+e.value(marshal(m)))
		}
	}
	for _, m := range op.AddTo {
		adds = append(adds, e.name(m.Attr)+" "+e.value(marshal(m.Members)))
	}
	for _, m := range op.TakeFrom {
		deletes = append(deletes, e.name(m.Attr)+" "+e.value(marshal(m.Members)))
	}
	for _, p := range op.Remove {
		if p.Member == "" || !absent[p.Attr] {
			removes = append(removes, e.path(p))
		}
	}
	var clauses []string
	for _, c := range []struct {
		word string
		list []string
	}{{"SET ", sets}, {"ADD ", adds}, {"DELETE ", deletes}, {"REMOVE ", removes}} {
		if len(c.list) > 0 {
			clauses = append(clauses, c.word+strings.Join(c.list, ", "))
		}
	}
	if len(clauses) == 0 {
		return nil
	}
	return aws.String(strings.Join(clauses, " "))
}
