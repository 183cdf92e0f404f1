package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"laneway/shared/table"
)

// WaitRow is a client that waits for a run, in a row of its own: agent.wait, or the
// repeat of an agent call.
type WaitRow struct {
	Waiter
	Deadline int64  // ms; 0: none
	Lease    int64  // ms: until then its answerer has it for itself
	Answer   []byte // the frame that it is answered with, once somebody has taken it
	Told     bool   // the answer was posted: nobody waits any more
	Put      string // id of the write that made the row
	key      table.Key
}

const (
	attrWho      = "who"
	attrDeadline = "until"
	attrLease    = "lease"
	attrAnswer   = "ans"
	attrTold     = "told"
	attrPut      = "wid"
)

// PutWaiter stores a waiter, by a write with an id. A repeat of the same request
// replaces it, unless it is answered already: an answer that was written stays the
// answer (W2), also once it was told, so that the same write, sent again by somebody
// who got no answer to it and then stood still, makes nobody wait a second time. One
// with a deadline is cleaned up some time after it; one that waits for the end, however late
// that comes, is not: its run may live for longer than anything is kept.
func PutWaiter(ctx context.Context, t table.Store, r Ref, w Waiter, put string, deadline, expires time.Time) error {
	who, err := json.Marshal(w)
	if err != nil {
		return err
	}
	item := table.Attrs{attrWho: who, attrPut: put}
	if !deadline.IsZero() {
		item[attrDeadline], item[table.TTLAttr] = deadline.UnixMilli(), expires.Unix()
	}
	_, err = t.Write(ctx, table.Op{
		Kind: table.Put, Key: r.WaiterKey(w.ConnectionID, w.RequestID), Item: item, If: table.Lacks(table.P(attrAnswer)),
	})
	if errors.Is(err, table.ErrCondition) {
		return nil
	}
	return err
}

// DropWaiter removes the row that a write made, if it did: one that was told that nobody
// waits must not be answered when the run ends. Somebody else's row under the same request
// stays, and so does one that is answered.
func DropWaiter(ctx context.Context, t table.Store, r Ref, w Waiter, put string) error {
	_, err := t.Write(ctx, table.Op{
		Kind: table.Delete, Key: r.WaiterKey(w.ConnectionID, w.RequestID),
		If: table.All(table.Equal(table.P(attrPut), put), table.Lacks(table.P(attrAnswer))),
	})
	if errors.Is(err, table.ErrCondition) {
		return nil
	}
	return err
}

// Waiters lists the waiters of a run that were not told its end.
func Waiters(ctx context.Context, t table.Store, r Ref) ([]WaitRow, error) {
	var out []WaitRow
	q := table.Query{Table: table.Runs, PK: r.PK(), From: "W#", To: "W$"}
	for {
		page, err := t.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read waiters: %w", err)
		}
		for i := range page.Items {
			w, err := decodeWaiter(&page.Items[i])
			if err != nil {
				return nil, err
			}
			if !w.Told {
				out = append(out, w)
			}
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}

// LoadWaiter reads one waiter; false where it was never there, or is gone. One that
// was answered is still there for a while, see WaitRow.Told.
func LoadWaiter(ctx context.Context, t table.Store, r Ref, connectionID, requestID string) (WaitRow, bool, error) {
	it, err := t.Get(ctx, r.WaiterKey(connectionID, requestID))
	if errors.Is(err, table.ErrNotFound) {
		return WaitRow{}, false, nil
	}
	if err != nil {
		return WaitRow{}, false, err
	}
	w, err := decodeWaiter(&it)
	return w, err == nil, err
}

func decodeWaiter(it *table.Item) (WaitRow, error) {
	w := WaitRow{
		Deadline: it.Attrs.Int(attrDeadline), Lease: it.Attrs.Int(attrLease), Answer: it.Attrs.Bytes(attrAnswer),
		Told: it.Attrs.Bool(attrTold), Put: it.Attrs.Str(attrPut), key: it.Key,
	}
	if w.Told {
		return w, nil
	}
	if err := json.Unmarshal(it.Attrs.Bytes(attrWho), &w.Waiter); err != nil {
		return w, fmt.Errorf("waiter: %w", err)
	}
	return w, nil
}

// ErrHeld is a waiter that another answerer has taken a moment ago.
var ErrHeld = errors.New("run: waiter is being answered by somebody else")

// Take makes the caller the answerer of a waiter until lease is over: the answer is
// written into the row before it is posted, and whoever takes it later posts the
// same (W2). It returns the frame to post. ErrHeld: somebody else is at it;
// ErrAnswered: the row is gone, or says that it was told.
func (w *WaitRow) Take(ctx context.Context, t table.Store, answer []byte, now time.Time, lease time.Duration) ([]byte, error) {
	free := table.Any(table.Lacks(table.P(attrLease)), table.Less(table.P(attrLease), now.UnixMilli()))
	set := []table.SetOp{{Path: table.P(attrLease), Value: now.Add(lease).UnixMilli()}}
	if len(w.Answer) > 0 {
		answer = w.Answer
	} else {
		free = table.All(free, table.Lacks(table.P(attrAnswer)))
		set = append(set, table.SetOp{Path: table.P(attrAnswer), Value: answer})
	}
	op := table.Op{Kind: table.Update, Key: w.key, If: table.All(table.Exists(), table.Lacks(table.P(attrTold)), free), Set: set}
	var err error
	for unclear, try := false, 0; try < takeTries; try++ {
		_, err = t.Write(ctx, op)
		ce, failed := table.Failed(err)
		switch {
		case err == nil:
			w.Answer, w.Lease = answer, now.Add(lease).UnixMilli()
			return answer, nil
		case failed && (ce.Found == nil || ce.Found.Attrs.Bool(attrTold)):
			return nil, ErrAnswered
		case failed && (unclear || ce.Ambiguous) && ce.Found.Attrs.Int(attrLease) == set[0].Value && bytes.Equal(ce.Found.Attrs.Bytes(attrAnswer), answer):
			w.Answer, w.Lease = answer, now.Add(lease).UnixMilli()
			return answer, nil // the lost answer was a yes (C5)
		case failed:
			return nil, ErrHeld
		}
		unclear = unclear || errors.Is(err, table.ErrUnknown)
		if !unclear && !errors.Is(err, table.ErrConflict) && !errors.Is(err, table.ErrThrottled) {
			break
		}
	}
	return nil, fmt.Errorf("take waiter: %w", err)
}

// takeTries is how often a write of Take is sent that got no clear answer.
const takeTries = 3

// ErrAnswered is a waiter that nobody waits behind any more.
var ErrAnswered = errors.New("run: waiter has been answered")

// Done says that a waiter was told its answer; one without an answer, because its
// connection is gone, is removed. An answered row is kept for a while.
func (w *WaitRow) Done(ctx context.Context, t table.Store) error {
	op := table.Op{Kind: table.Delete, Key: w.key}
	if len(w.Answer) > 0 {
		op = table.Op{
			Kind: table.Update, Key: w.key, If: table.Exists(),
			Set: []table.SetOp{
				{Path: table.P(attrTold), Value: true},
				{Path: table.P(table.TTLAttr), Value: time.UnixMilli(w.Lease).Add(Keep).Unix()},
			},
			Remove: []table.Path{table.P(attrWho)},
		}
	}
	_, err := t.Write(ctx, op)
	if errors.Is(err, table.ErrCondition) {
		return nil
	}
	return err
}
