package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/table"
)

const (
	allOld = types.ReturnValuesOnConditionCheckFailureAllOld
	total  = types.ReturnConsumedCapacityTotal
)

// request builds the ops in their shapes, once: every call of the function sends the
// same bytes with the same client token.
func (w *write) request() func(context.Context) error {
	if w.transaction() {
		return w.transact()
	}
	op, e := &w.ops[0], &expr{}
	condition := e.condition(both(op, w.shapes[0]))
	switch op.Kind {
	case table.Put:
		return w.put(op, e, condition)
	case table.Delete:
		return w.delete(op, e, condition)
	case table.Update, table.Check: // a Check is a transaction
	}
	return w.update(op, e, condition)
}

func (w *write) put(op *table.Op, e *expr, condition *string) func(context.Context) error {
	in := &dynamodb.PutItemInput{
		TableName: w.store.name(op.Key.Table), Item: marshalItem(op.Key, op.Item),
		ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: allOld, ReturnConsumedCapacity: total,
	}
	return func(ctx context.Context) error {
		out, err := w.store.client.PutItem(ctx, in, once)
		if err == nil {
			countWrite(ctx, out.ConsumedCapacity)
		}
		return err
	}
}

func (w *write) delete(op *table.Op, e *expr, condition *string) func(context.Context) error {
	in := &dynamodb.DeleteItemInput{
		TableName: w.store.name(op.Key.Table), Key: keyOf(op.Key),
		ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: allOld, ReturnConsumedCapacity: total,
	}
	return func(ctx context.Context) error {
		out, err := w.store.client.DeleteItem(ctx, in, once)
		if err == nil {
			countWrite(ctx, out.ConsumedCapacity)
		}
		return err
	}
}

func (w *write) update(op *table.Op, e *expr, condition *string) func(context.Context) error {
	update := e.update(op, w.shapes[0].absentMaps)
	in := &dynamodb.UpdateItemInput{
		TableName: w.store.name(op.Key.Table), Key: keyOf(op.Key), UpdateExpression: update,
		ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: allOld, ReturnConsumedCapacity: total,
	}
	if op.ReturnNew {
		in.ReturnValues = types.ReturnValueAllNew
	}
	return func(ctx context.Context) error {
		out, err := w.store.client.UpdateItem(ctx, in, once)
		if err != nil {
			return err
		}
		countWrite(ctx, out.ConsumedCapacity)
		if op.ReturnNew {
			w.new, w.newErr = unmarshalItem(op.Key.Table, out.Attributes)
		}
		return nil
	}
}

func (w *write) transact() func(context.Context) error {
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String(w.store.c.Token()), ReturnConsumedCapacity: total,
		TransactItems: make([]types.TransactWriteItem, len(w.ops)),
	}
	for i := range w.ops {
		in.TransactItems[i] = w.member(&w.ops[i], w.shapes[i])
	}
	return func(ctx context.Context) error {
		out, err := w.store.client.TransactWriteItems(ctx, in, once)
		if err != nil {
			return err
		}
		for i := range out.ConsumedCapacity {
			countWrite(ctx, &out.ConsumedCapacity[i])
		}
		return nil
	}
}

// member is one op of a transaction. An update for which nothing is left to do (its
// item or the maps that it removes from are absent) stays as the check of just that.
func (w *write) member(op *table.Op, s shape) types.TransactWriteItem {
	e, name := &expr{}, w.store.name(op.Key.Table)
	condition := e.condition(both(op, s))
	switch op.Kind {
	case table.Put:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: name, Item: marshalItem(op.Key, op.Item), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case table.Delete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: name, Key: keyOf(op.Key), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case table.Update:
		if s.absentItem {
			break
		}
		if update := e.update(op, s.absentMaps); update != nil {
			return types.TransactWriteItem{Update: &types.Update{
				TableName: name, Key: keyOf(op.Key), ConditionExpression: condition, UpdateExpression: update,
				ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
			}}
		}
	case table.Check:
	}
	e = &expr{}
	condition = e.required(both(op, s))
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: name, Key: keyOf(op.Key), ConditionExpression: condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
	}}
}
