package dynamo_test

import (
	"errors"
	"testing"

	"laneway/shared/table"
	"laneway/shared/table/dynamo"
)

var (
	k1 = table.Key{Table: table.Runs, PK: "p", SK: "1"}
	k2 = table.Key{Table: table.Runs, PK: "p", SK: "2"}
	k3 = table.Key{Table: table.Runs, PK: "p", SK: "3"}
)

func put(k table.Key) table.Op {
	return table.Op{Kind: table.Put, Key: k, Item: table.Attrs{"a": "1"}, If: table.NotExists()}
}

// What the service answers, and what a caller is told.
func TestErrorsAreClassified(t *testing.T) {
	t.Parallel()
	reasons := func(list string) reply {
		return refusal("TransactionCanceledException", `"Message":"Transaction cancelled","CancellationReasons":[`+list+`]`)
	}
	const (
		none     = `{"Code":"None"}`
		failed   = `{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"}`
		found    = `{"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"p"},"sk":{"S":"2"},"owner":{"S":"you"}}}`
		conflict = `{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"}`
		throttle = `{"Code":"ThrottlingError"}`
		capacity = `{"Code":"ProvisionedThroughputExceeded"}`
		invalid  = `{"Code":"ValidationError","Message":"An operand in the update expression has an incorrect data type"}`
		large    = `{"Code":"ValidationError","Message":"Item size to update has exceeded the maximum allowed size"}`
		coll     = `{"Code":"ItemCollectionSizeLimitExceeded"}`
		unknown  = `{"Code":"SomethingNew"}`
	)
	rows := []struct {
		name  string
		reply reply
		want  error
		op    int    // of a failed condition
		owner string // of the item found
	}{
		{"condition of the second", reasons(none + "," + found + "," + none), table.ErrCondition, 1, "you"},
		{"condition over an absent item", reasons(failed + "," + none + "," + none), table.ErrCondition, 0, ""},
		{"first of two conditions", reasons(none + "," + found + "," + failed), table.ErrCondition, 1, "you"},
		{"condition and conflict (C6)", reasons(conflict + "," + found + "," + none), table.ErrCondition, 1, "you"},
		{"condition and throttle", reasons(throttle + "," + found + "," + none), table.ErrCondition, 1, "you"},
		{"condition and validation", reasons(invalid + "," + found + "," + none), table.ErrCondition, 1, "you"},
		{"conflict", reasons(none + "," + conflict + "," + none), table.ErrConflict, 0, ""},
		{"conflict and throttle", reasons(throttle + "," + conflict + "," + none), table.ErrConflict, 0, ""},
		{"throttle", reasons(none + "," + none + "," + throttle), table.ErrThrottled, 0, ""},
		{"no capacity", reasons(none + "," + none + "," + capacity), table.ErrThrottled, 0, ""},
		{"validation", reasons(none + "," + invalid + "," + none), table.ErrInvalid, 0, ""},
		{"validation and conflict", reasons(conflict + "," + invalid + "," + none), table.ErrInvalid, 0, ""},
		{"item too large", reasons(none + "," + large + "," + none), table.ErrTooLarge, 0, ""},
		{"collection too large", reasons(none + "," + coll + "," + none), table.ErrTooLarge, 0, ""},
		{"a reason that is not known", reasons(none + "," + unknown + "," + none), table.ErrInvalid, 0, ""},
		{"no reasons", refusal("TransactionCanceledException", ""), table.ErrInvalid, 0, ""},
		{"conflict exception", refusal("TransactionConflictException", ""), table.ErrConflict, 0, ""},
		{"in progress", refusal("TransactionInProgressException", ""), table.ErrConflict, 0, ""},
		{"replicated conflict", refusal("ReplicatedWriteConflictException", ""), table.ErrConflict, 0, ""},
		{"throughput", refusal("ProvisionedThroughputExceededException", ""), table.ErrThrottled, 0, ""},
		{"request limit", refusal("RequestLimitExceeded", ""), table.ErrThrottled, 0, ""},
		{"throttling", refusal("ThrottlingException", ""), table.ErrThrottled, 0, ""},
		{"collection size", refusal("ItemCollectionSizeLimitExceededException", ""), table.ErrTooLarge, 0, ""},
		{"item size", refusal("ValidationException", `"message":"Item size has exceeded the maximum allowed size"`), table.ErrTooLarge, 0, ""},
		{"transaction size", refusal("ValidationException", `"message":"Transaction request exceeds the 4MB transaction size limit"`), table.ErrTooLarge, 0, ""},
		{"request size", reply{413, `{}`}, table.ErrTooLarge, 0, ""},
		{"validation exception", refusal("ValidationException", `"message":"Type mismatch"`), table.ErrInvalid, 0, ""},
		{"token mismatch", refusal("IdempotentParameterMismatchException", ""), table.ErrInvalid, 0, ""},
		{"no table", refusal("ResourceNotFoundException", ""), table.ErrInvalid, 0, ""},
		{"no access", refusal("AccessDeniedException", ""), table.ErrInvalid, 0, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s, w := setup(t, dynamo.Config{}, r.reply)
			_, err := s.Write(t.Context(), put(k1), put(k2), put(k3))
			if !errors.Is(err, r.want) {
				t.Fatalf("got %v, want %v", err, r.want)
			}
			w.requests(1)
			c, ok := table.Failed(err)
			if ok != errors.Is(r.want, table.ErrCondition) {
				t.Fatalf("ConditionError: %v", err)
			}
			if !ok {
				return
			}
			if c.Op != r.op || c.Ambiguous || (c.Found != nil) != (r.owner != "") || c.Found != nil && c.Found.Attrs.Str("owner") != r.owner {
				t.Errorf("got op %d, ambiguous %v, found %v", c.Op, c.Ambiguous, c.Found)
			}
		})
	}
}

// A single op's refusals have codes of their own.
func TestErrorsOfASingleOpAreClassified(t *testing.T) {
	t.Parallel()
	for _, op := range []table.Op{
		put(k1),
		{Kind: table.Delete, Key: k1, If: table.Exists()},
		{Kind: table.Update, Key: k1, Set: []table.SetOp{{Path: table.P("a"), Value: "2"}}, If: table.Exists()},
	} {
		s, w := setup(t, dynamo.Config{},
			refusal("ConditionalCheckFailedException", `"Item":{"pk":{"S":"p"},"sk":{"S":"1"},"n":{"N":"7"}}`),
			refusal("TransactionConflictException", ""))
		_, err := s.Write(t.Context(), op)
		c, ok := table.Failed(err)
		if !ok || c.Found == nil || c.Found.Key != k1 || c.Found.Attrs.Int("n") != 7 || c.Ambiguous {
			t.Errorf("op %d: got %v, %+v", op.Kind, err, c)
		}
		if _, err := s.Write(t.Context(), op); !errors.Is(err, table.ErrConflict) {
			t.Errorf("op %d: got %v, want ErrConflict", op.Kind, err)
		}
		for _, r := range w.requests(2) {
			if r.Body["ReturnValuesOnConditionCheckFailure"] != "ALL_OLD" {
				t.Errorf("%s does not ask for the item", r.Op)
			}
		}
	}
}

func TestErrorsOfReadsAreClassified(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, dynamo.Config{}, refusal("ThrottlingException", ""), reply{500, `{}`}, cut, refusal("ValidationException", ""))
	for _, want := range []error{table.ErrThrottled, table.ErrUnknown, table.ErrUnknown, table.ErrInvalid} {
		if _, err := s.Get(t.Context(), k1); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
