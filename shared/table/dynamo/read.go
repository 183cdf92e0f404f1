package dynamo

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/meter"
	"laneway/shared/table"
)

// Get implements table.Store.
func (s *Store) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if err := table.ValidateKey(k); err != nil {
		return table.Item{}, err
	}
	it, err := s.find(ctx, k)
	switch {
	case err != nil:
		return table.Item{}, err
	case it == nil:
		return table.Item{}, fmt.Errorf("%w in %s", table.ErrNotFound, k.Table)
	}
	return *it, nil
}

// find is Get with nil for an absent item.
func (s *Store) find(ctx context.Context, k table.Key) (*table.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	meter.From(ctx).Add(meter.TableCalls, 1)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.name(k.Table), Key: keyOf(k), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: total,
	})
	if err != nil {
		return nil, readError(ctx, err)
	}
	countRead(ctx, out.ConsumedCapacity)
	return unmarshalItem(k.Table, out.Item)
}

// readError: a read has no outcome that could be ambiguous, so that a context that has
// ended is just that.
func readError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return classify(err).err
}

// Query implements table.Store.
func (s *Store) Query(ctx context.Context, q table.Query) (table.Page, error) {
	after, err := table.ValidateQuery(q)
	if err != nil {
		return table.Page{}, err
	}
	r := reader{
		store: s, table: q.Table, pkAttr: pkAttr, skAttr: skAttr,
		pk: q.PK, from: q.From, to: q.To, limit: q.Limit, desc: q.Desc,
	}
	if after != "" {
		r.start = keyOf(table.Key{PK: q.PK, SK: after})
	}
	items, more, err := r.page(ctx)
	if err != nil {
		return table.Page{}, err
	}
	p := table.Page{Items: items}
	if more {
		p.Next = table.CursorAt(items[len(items)-1].Key.SK)
	}
	return p, nil
}

// Index implements table.Store.
func (s *Store) Index(ctx context.Context, q table.IndexQuery) (table.KeyPage, error) {
	def, after, err := table.ValidateIndexQuery(q)
	if err != nil {
		return table.KeyPage{}, err
	}
	r := reader{
		store: s, table: q.Table, index: def.Name, pkAttr: def.PK, skAttr: def.SK,
		pk: q.PK, from: q.From, to: q.To, limit: q.Limit, desc: q.Desc,
	}
	if q.After != "" {
		r.start = keyOf(after.Key)
		r.start[def.PK], r.start[def.SK] = text(q.PK), text(after.SK)
	}
	items, more, err := r.page(ctx)
	if err != nil {
		return table.KeyPage{}, err
	}
	var p table.KeyPage
	for i := range items {
		p.Keys = append(p.Keys, table.IndexKey{Key: items[i].Key, SK: items[i].Attrs.Str(def.SK)})
	}
	if more {
		p.Next = table.IndexCursorAt(p.Keys[len(p.Keys)-1])
	}
	return p, nil
}

// reader gets one page of a table or an index.
//
// DynamoDB takes one condition on the sort key. With both bounds that is BETWEEN, whose
// upper end is inclusive: what is at that end is left out here, and one item more is
// asked for, so that the page is full without it.
type reader struct {
	store          *Store
	table, index   string
	pkAttr, skAttr string
	pk, from, to   string
	limit          int
	desc           bool
	start          map[string]types.AttributeValue
}

// page goes on until it has an item or nothing is left. more: something may follow the
// last item.
func (r *reader) page(ctx context.Context) (items []table.Item, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if r.to != "" && r.from >= r.to {
		return nil, false, nil
	}
	in := r.request()
	for {
		meter.From(ctx).Add(meter.TableCalls, 1)
		out, err := r.store.client.Query(ctx, in)
		if err != nil {
			return nil, false, readError(ctx, err)
		}
		countRead(ctx, out.ConsumedCapacity)
		items, more, err = r.keep(items, out)
		if err != nil || len(items) > 0 || !more {
			return items, more, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func (r *reader) keep(items []table.Item, out *dynamodb.QueryOutput) ([]table.Item, bool, error) {
	more := len(out.LastEvaluatedKey) > 0
	for _, m := range out.Items {
		it, err := unmarshalItem(r.table, m)
		if err != nil {
			return nil, false, err
		}
		sk := it.Key.SK
		if r.index != "" {
			sk = it.Attrs.Str(r.skAttr)
		}
		switch {
		case r.to != "" && strings.Compare(sk, r.to) >= 0:
			if !r.desc {
				return items, false, nil
			}
		case r.limit > 0 && len(items) == r.limit:
			return items, true, nil
		default:
			items = append(items, *it)
		}
	}
	return items, more, nil
}

func (r *reader) request() *dynamodb.QueryInput {
	e := &expr{}
	cond := e.name(r.pkAttr) + " = " + e.value(text(r.pk))
	ask := r.limit
	switch {
	case r.from != "" && r.to != "":
		cond += " AND " + e.name(r.skAttr) + " BETWEEN " + e.value(text(r.from)) + " AND " + e.value(text(r.to))
		if ask > 0 {
			ask++
		}
	case r.from != "":
		cond += " AND " + e.name(r.skAttr) + " >= " + e.value(text(r.from))
	case r.to != "":
		cond += " AND " + e.name(r.skAttr) + " < " + e.value(text(r.to))
	}
	in := &dynamodb.QueryInput{
		TableName: r.store.name(r.table), KeyConditionExpression: aws.String(cond),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ScanIndexForward: aws.Bool(!r.desc), ExclusiveStartKey: r.start, ReturnConsumedCapacity: total,
	}
	if ask > 0 {
		in.Limit = aws.Int32(int32(min(ask, math.MaxInt32)))
	}
	if r.index != "" {
		in.IndexName = aws.String(r.index)
	} else {
		in.ConsistentRead = aws.Bool(true)
	}
	return in
}
