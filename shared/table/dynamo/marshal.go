package dynamo

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/table"
)

// The SDK's own marshalling works by reflection on Go types and would have to be told
// about Set, int64 and lists one by one; the kinds of the port are seven.

func marshalItem(k table.Key, a table.Attrs) map[string]types.AttributeValue {
	m := make(map[string]types.AttributeValue, len(a)+2)
	for n, v := range a {
		m[n] = marshal(v)
	}
	m[pkAttr], m[skAttr] = text(k.PK), text(k.SK)
	return m
}

// marshal expects a value that table.Validate has let through.
func marshal(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return text(v)
	case int64:
		return number(v)
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []byte:
		return &types.AttributeValueMemberB{Value: append([]byte{}, v...)}
	case table.Set:
		return &types.AttributeValueMemberSS{Value: v}
	case []string:
		l := make([]types.AttributeValue, len(v))
		for i, s := range v {
			l[i] = text(s)
		}
		return &types.AttributeValueMemberL{Value: l}
	case table.Map:
		m := make(map[string]types.AttributeValue, len(v))
		for k, e := range v {
			m[k] = marshal(e)
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}

func number(n int64) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// unmarshalItem gives nil for no item. An item that holds what the port does not know
// (written by something else, or a sum beyond 64 bits) is ErrInvalid.
func unmarshalItem(tableName string, m map[string]types.AttributeValue) (*table.Item, error) {
	if len(m) == 0 {
		return nil, nil
	}
	it := &table.Item{Key: table.Key{Table: tableName}, Attrs: make(table.Attrs, len(m))}
	for n, av := range m {
		v, err := unmarshal(av)
		if err != nil {
			return nil, fmt.Errorf("%w in attribute %q of %s", err, n, tableName)
		}
		switch n {
		case pkAttr:
			it.Key.PK, _ = v.(string)
		case skAttr:
			it.Key.SK, _ = v.(string)
		default:
			it.Attrs[n] = v
		}
	}
	return it, nil
}

func unmarshal(av types.AttributeValue) (any, error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return av.Value, nil
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(av.Value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: stored number is not a 64-bit integer", table.ErrInvalid)
		}
		return n, nil
	case *types.AttributeValueMemberBOOL:
		return av.Value, nil
	case *types.AttributeValueMemberB:
		return append([]byte{}, av.Value...), nil
	case *types.AttributeValueMemberSS:
		s := table.Set(slices.Clone(av.Value))
		slices.Sort(s)
		return s, nil
	case *types.AttributeValueMemberL:
		l := make([]string, len(av.Value))
		for i, e := range av.Value {
			s, ok := e.(*types.AttributeValueMemberS)
			if !ok {
				return nil, fmt.Errorf("%w: stored list holds more than strings", table.ErrInvalid)
			}
			l[i] = s.Value
		}
		return l, nil
	case *types.AttributeValueMemberM:
		m := make(table.Map, len(av.Value))
		for k, e := range av.Value {
			v, err := unmarshal(e)
			if err != nil {
				return nil, err
			}
			m[k] = v
		}
		return m, nil
	}
	return nil, fmt.Errorf("%w: stored value of unknown kind %T", table.ErrInvalid, av)
}
