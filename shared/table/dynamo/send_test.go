package dynamo_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"laneway/shared/table"
	"laneway/shared/table/dynamo"
)

var (
	busy    = refusal("TransactionConflictException", "")
	going   = refusal("TransactionInProgressException", "")
	crash   = reply{500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`}
	down    = reply{503, `<html>`}
	refused = refusal("ConditionalCheckFailedException", `"Item":{"pk":{"S":"p"},"sk":{"S":"1"},"a":{"S":"1"}}`)
)

func add(k table.Key) table.Op {
	return table.Op{Kind: table.Update, Key: k, Add: []table.AddOp{{Path: table.P("n"), N: 1}}}
}

// C5: a lost answer is settled by the same write with the same token.
func TestC5_LostAnswerIsSettledByTheSameWrite(t *testing.T) {
	t.Parallel()
	for _, lost := range []reply{cut, crash, down} {
		s, w := setup(t, dynamo.Config{}, lost, going, lost, done)
		if _, err := s.Write(t.Context(), add(k1), put(k2)); err != nil {
			t.Fatal(err)
		}
		got := w.requests(4)
		token, _ := got[0].Body["ClientRequestToken"].(string)
		if token == "" {
			t.Error("no client token")
		}
		for _, r := range got {
			if at(r.Body, "ClientRequestToken") != token || at(r.Body, "TransactItems", 0, "Update", "UpdateExpression") != at(got[0].Body, "TransactItems", 0, "Update", "UpdateExpression") {
				t.Errorf("another write was sent: %s", r.Raw)
			}
		}
	}
}

func TestC5_FailedConditionAfterALostAnswerIsAmbiguous(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, cut, refused)
	_, err := s.Write(t.Context(), put(k1))
	c, ok := table.Failed(err)
	if !ok || !c.Ambiguous || c.Found == nil {
		t.Errorf("got %v, %+v", err, c)
	}
	w.requests(2)
}

func TestLostAnswersEndInUnknown(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{Tries: 3}, cut, crash, cut)
	if _, err := s.Write(t.Context(), put(k1)); !errors.Is(err, table.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	w.requests(3)
}

// After a lost answer a conflict is about the repetition: the first try may be done.
func TestConflictAfterALostAnswerDecidesNothing(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, cut, busy, refusal("ThrottlingException", ""), busy)
	_, err := s.Write(t.Context(), put(k1))
	if !errors.Is(err, table.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	w.requests(4)
}

// A single UpdateItem has no token: adding twice cannot be told from adding once.
func TestAdditionIsNotSentTwice(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, cut)
	if _, err := s.Write(t.Context(), add(k1)); !errors.Is(err, table.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	w.requests(1)
}

func TestConflictsAndThrottlesAreTheCallers(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, busy, refusal("ThrottlingException", ""))
	if _, err := s.Write(t.Context(), put(k1)); !errors.Is(err, table.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	if _, err := s.Write(t.Context(), put(k1)); !errors.Is(err, table.ErrThrottled) {
		t.Errorf("got %v, want ErrThrottled", err)
	}
	w.requests(2)
}

func TestTryThatTakesTooLongIsALostAnswer(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{TryTimeout: 50 * time.Millisecond, Tries: 2}, stall, stall)
	_, err := s.Write(t.Context(), put(k1))
	if !errors.Is(err, table.ErrUnknown) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnknown and no deadline, which would look like the caller's", err)
	}
	w.requests(2)
}

func TestEndOfTheContextLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	s, w := setup(t, dynamo.Config{}, stall)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Write(ctx, put(k1))
	if !errors.Is(err, table.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnknown and the context's error", err)
	}
	w.requests(1)
	if _, err := s.Get(ctx, k1); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, table.ErrUnknown) {
		t.Errorf("Get: got %v, want the context's error alone", err)
	}
}

// Nothing was written where nobody was reached.
func TestUnreachedServiceIsNotAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := dynamo.New(clientOf(url), dynamo.Config{Clock: instant{}})
	_, err = s.Write(t.Context(), add(k1))
	if !errors.Is(err, table.ErrThrottled) || errors.Is(err, table.ErrUnknown) {
		t.Errorf("got %v, want ErrThrottled alone", err)
	}
}
