package table

import (
	"errors"
	"fmt"
)

// What callers branch on. An adapter wraps its cause behind one of these.
var (
	ErrNotFound  = errors.New("table: no such item")
	ErrCondition = errors.New("table: condition failed")
	// ErrConflict: another transaction touched an item at the same time; nothing
	// was written; try again. It is never a failed condition.
	ErrConflict = errors.New("table: conflicting transaction")
	// ErrThrottled: the store had no capacity; nothing was written.
	ErrThrottled = errors.New("table: throttled")
	// ErrUnknown: the answer was lost; the write may have been applied. Sending
	// the same conditional write again settles it.
	ErrUnknown  = errors.New("table: outcome unknown")
	ErrTooLarge = errors.New("table: too large") // an item, a transaction
	ErrInvalid  = errors.New("table: invalid request")
	ErrClosed   = errors.New("table: closed")
)

// ConditionError is a failed condition: which op of the Write, and the item that
// was there (nil: none).
type ConditionError struct {
	Op    int
	Found *Item
	// Ambiguous is set when an earlier try of the same Write ended without an
	// answer: then the item may be as it is because of this very write.
	Ambiguous bool
}

func (e *ConditionError) Error() string { return fmt.Sprintf("table: condition of op %d failed", e.Op) }

// Is makes errors.Is(err, ErrCondition) true.
func (e *ConditionError) Is(target error) bool { return target == ErrCondition }

// Failed is the ConditionError in err's chain, if there is one.
func Failed(err error) (*ConditionError, bool) {
	var c *ConditionError
	ok := errors.As(err, &c)
	return c, ok
}
