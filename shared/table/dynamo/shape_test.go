package dynamo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"laneway/shared/meter"
	"laneway/shared/table"
	"laneway/shared/table/dynamo"
)

var (
	badPath  = refusal("ValidationException", `"message":"The document path provided in the update expression is invalid for update"`)
	badPathT = refusal("TransactionCanceledException", `"CancellationReasons":[{"Code":"None"},{"Code":"ValidationError","Message":"The document path provided in the update expression is invalid for update"}]`)
	bare     = reply{200, `{"Item":{"pk":{"S":"p"},"sk":{"S":"1"},"a":{"S":"1"}}}`}
	withMap  = `"Item":{"pk":{"S":"p"},"sk":{"S":"1"},"a":{"S":"1"},"m":{"M":{"x":{"S":"y"}}}}`
)

func member(k table.Key) table.Op {
	return table.Op{Kind: table.Update, Key: k, Set: []table.SetOp{{Path: table.P("m", "a.b"), Value: "v"}}, If: table.Equal(table.P("a"), "1")}
}

// text replaces placeholders by what they stand for.
func plain(v any) string {
	s := fmt.Sprint(at(v, "UpdateExpression"), " IF ", at(v, "ConditionExpression"))
	names, _ := at(v, "ExpressionAttributeNames").(map[string]any)
	for p, n := range names {
		s = strings.ReplaceAll(s, p, fmt.Sprint(n))
	}
	return s
}

func TestAbsentMapIsMadeUnderTheConditionThatItIsAbsent(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, badPath, bare, done)
	if _, err := s.Write(t.Context(), member(k1)); err != nil {
		t.Fatal(err)
	}
	got := w.requests(3)
	if p := plain(got[0].Body); p != "SET m.a.b = :v001 IF a = :v000" {
		t.Errorf("first: %s", p)
	}
	if got[1].Op != "GetItem" || got[1].Body["ConsistentRead"] != true {
		t.Errorf("second: %s", got[1].Raw)
	}
	if p := plain(got[2].Body); p != "SET m = :v001 IF (a = :v000 AND attribute_not_exists(m))" {
		t.Errorf("third: %s", p)
	}
	if v := at(got[2].Body, "ExpressionAttributeValues", ":v001", "M", "a.b", "S"); v != "v" {
		t.Errorf("the map is not the member's: %s", got[2].Raw)
	}
}

// Somebody else makes the map in between: its members must not be lost.
func TestMapThatAppearsMeanwhileIsNotReplaced(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, badPath, bare, refusal("ConditionalCheckFailedException", withMap), done)
	if _, err := s.Write(t.Context(), member(k1)); err != nil {
		t.Fatal(err)
	}
	if p := plain(w.requests(4)[3].Body); p != "SET m.a.b = :v001 IF a = :v000" {
		t.Errorf("last: %s", p)
	}
}

func TestCallersConditionIsToldFromTheGuard(t *testing.T) {
	t.Parallel()
	other := strings.Replace(withMap, `"a":{"S":"1"}`, `"a":{"S":"2"}`, 1)
	s, w := setup(t, dynamo.Config{}, badPath, bare, refusal("ConditionalCheckFailedException", other))
	_, err := s.Write(t.Context(), member(k1))
	if c, ok := table.Failed(err); !ok || c.Found.Attrs.Str("a") != "2" {
		t.Errorf("got %v", err)
	}
	w.requests(3)
}

func TestTransactionInAnotherShapeHasAnotherToken(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, badPathT, bare, done)
	if _, err := s.Write(t.Context(), put(k2), member(k1)); err != nil {
		t.Fatal(err)
	}
	got := w.requests(3)
	if got[0].Body["ClientRequestToken"] == got[2].Body["ClientRequestToken"] {
		t.Error("one token for two different transactions")
	}
	if p := plain(at(got[2].Body, "TransactItems", 1, "Update")); p != "SET m = :v001 IF (a = :v000 AND attribute_not_exists(m))" {
		t.Errorf("last: %s", p)
	}
}

func TestRefusalWithAnotherReasonStaysOne(t *testing.T) {
	t.Parallel()
	// The attribute is no map: nothing to be done about that.
	text := reply{200, `{"Item":{"pk":{"S":"p"},"sk":{"S":"1"},"a":{"S":"1"},"m":{"S":"text"}}}`}
	s, w := setup(t, dynamo.Config{}, badPath, text)
	if _, err := s.Write(t.Context(), member(k1)); !errors.Is(err, table.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	w.requests(2)
	// Refused again and again though the item gives no reason.
	there := reply{200, "{" + withMap + "}"}
	s, w = setup(t, dynamo.Config{}, badPath, there, badPath, there, badPath, there)
	if _, err := s.Write(t.Context(), member(k1)); !errors.Is(err, table.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	w.requests(6)
}

func TestRemovingFromAnAbsentItemWritesNothing(t *testing.T) {
	t.Parallel()
	only := table.Op{Kind: table.Update, Key: k1, Remove: []table.Path{table.P("a")}}
	s, w := setup(t, dynamo.Config{}, refusal("ConditionalCheckFailedException", ""))
	if _, err := s.Write(t.Context(), only); err != nil {
		t.Fatal(err)
	}
	if p := plain(w.requests(1)[0].Body); p != "REMOVE a IF attribute_exists(pk)" {
		t.Errorf("sent: %s", p)
	}
	s, w = setup(t, dynamo.Config{}, refusal("TransactionCanceledException", `"CancellationReasons":[{"Code":"ConditionalCheckFailed"},{"Code":"None"}]`), done)
	if _, err := s.Write(t.Context(), only, put(k2)); err != nil {
		t.Fatal(err)
	}
	if p := plain(at(w.requests(2)[1].Body, "TransactItems", 0, "ConditionCheck")); p != "<nil> IF attribute_not_exists(pk)" {
		t.Errorf("sent: %s", p)
	}
}

func TestUnitsAreCounted(t *testing.T) {
	t.Parallel()
	var m meter.Meter
	ctx := meter.With(t.Context(), &m)
	s, _ := setup(t, dynamo.Config{},
		reply{200, `{"ConsumedCapacity":{"CapacityUnits":3}}`},
		reply{200, `{"ConsumedCapacity":[{"CapacityUnits":4,"WriteCapacityUnits":4},{"CapacityUnits":2,"ReadCapacityUnits":2}]}`},
		refused,
		reply{200, `{"ConsumedCapacity":{"CapacityUnits":0.5}}`},
	)
	if _, err := s.Write(ctx, put(k1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(ctx, put(k1), put(k2)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(ctx, put(k1)); !errors.Is(err, table.ErrCondition) {
		t.Fatal(err)
	}
	if _, err := s.Query(ctx, table.Query{Table: table.Runs, PK: "p"}); err != nil {
		t.Fatal(err)
	}
	got := m.Counts()
	if got[meter.TableCalls] != 4 || got[meter.TableWriteUnits] != 3+4+1 || got[meter.TableReadUnits] != 2.5 {
		t.Errorf("got %v", got)
	}
}
