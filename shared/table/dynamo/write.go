package dynamo

import (
	"context"
	"errors"
	"fmt"

	"laneway/shared/table"
)

// maxShapes bounds how often a Write is made again because an item changed its shape
// under it; more often than that is a conflict.
const maxShapes = 8

// Write implements table.Store.
func (s *Store) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	if err := table.Validate(ops); err != nil {
		return table.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return table.Result{}, err
	}
	w := write{store: s, ops: ops, shapes: make([]shape, len(ops))}
	for range maxShapes {
		again, err := w.try(ctx)
		if !again {
			return table.Result{New: w.new}, err
		}
	}
	return table.Result{}, fmt.Errorf("%w: items keep changing", table.ErrConflict)
}

// write is one Write on its way.
type write struct {
	store     *Store
	ops       []table.Op
	shapes    []shape
	ambiguous bool // an answer was lost
	// unexplained counts refusals that the stored items gave no reason for.
	unexplained int
	new         *table.Item
	newErr      error // the update is done, but New cannot be read
}

// try sends the ops in their present shapes. again means that the shapes were wrong,
// nothing was written, and there are new ones.
func (w *write) try(ctx context.Context) (again bool, err error) {
	if len(w.ops) == 1 && w.shapes[0].absentItem {
		return false, nil // found absent under its own condition: nothing to remove
	}
	out := w.send(ctx)
	switch {
	case out.err == nil:
		return false, w.newErr
	case len(out.failed) > 0:
		return w.conditionFailed(out)
	case errors.Is(out.err, table.ErrInvalid):
		return w.readShapes(ctx, out.err)
	}
	return false, out.err
}

// conditionFailed tells the caller's failed condition from a guard's.
func (w *write) conditionFailed(out outcome) (again bool, err error) {
	for _, f := range out.failed {
		op := &w.ops[f.op]
		found, err := unmarshalItem(op.Key.Table, f.found)
		if err != nil {
			return false, err
		}
		guarded := w.shapes[f.op].guard(op) != nil
		if !guarded || !table.Eval(op.If, found) {
			return false, &table.ConditionError{Op: f.op, Found: found, Ambiguous: w.ambiguous}
		}
		w.shapes[f.op] = shapeOf(op, found)
		again = true
	}
	return again, nil
}

// readShapes looks whether a refusal came from a map that is absent. It did not if the
// items say that the ops cannot be applied, or that the shapes were right.
func (w *write) readShapes(ctx context.Context, refused error) (again bool, err error) {
	members := false
	for i := range w.ops {
		op := &w.ops[i]
		if len(memberAttrs(op)) == 0 {
			continue
		}
		members = true
		it, err := w.store.find(ctx, op.Key)
		if err != nil {
			return false, err
		}
		if !table.Eval(op.If, it) {
			return false, &table.ConditionError{Op: i, Found: it, Ambiguous: w.ambiguous}
		}
		if _, err := table.Apply(op, it); err != nil {
			return false, fmt.Errorf("%w (op %d)", err, i)
		}
		if s := shapeOf(op, it); !s.equal(w.shapes[i]) {
			w.shapes[i] = s
			again = true
		}
	}
	// With the shapes unchanged the map may have been made between the refusal and the
	// reading, which one more try settles; a second refusal has another reason.
	if !again {
		w.unexplained++
	}
	if !again && (!members || w.unexplained > 2) {
		return false, refused
	}
	return true, nil
}
