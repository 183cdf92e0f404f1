package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"go.etcd.io/bbolt"

	"laneway/shared/table"
)

const (
	// maxGroup bounds the memory of a group and how long its first member waits.
	maxGroup = 256
	// sweepBatch items take about as long as one large Write.
	sweepBatch = 100
)

// request is a Write (ops) or a batch of Sweep (no ops).
type request struct {
	ended   func() error // the context's Err: only asked when the turn has come
	ops     []table.Op
	sweepTo int64
	done    chan outcome // takes one value without blocking
}

// outcome is what a request has come to.
type outcome struct {
	new   *table.Item
	units float64
	swept int
	wrote bool  // there is something to sync
	err   error // the member's own; it has changed nothing
	// spoilt: err is bbolt's, and the transaction is not fit for use any more.
	spoilt bool
}

// commitLoop is the only writer of the file. It takes whoever waits, applies them
// one after another in one transaction, syncs, and answers all of them; meanwhile
// the next group gathers by itself.
func (s *Store) commitLoop() {
	defer close(s.closed)
	var broken error // set when the file could not be written; ends all writing
	for {
		group, ok := s.gather()
		if !ok {
			return
		}
		if broken != nil {
			answerAll(group, broken)
			continue
		}
		broken = s.commit(group)
	}
}

// gather waits for one request and takes those that are ready too. The writers that
// the last commit has woken are about to come back: letting them run once costs
// microseconds and makes one group of them instead of two.
func (s *Store) gather() ([]*request, bool) {
	var first *request
	select {
	case first = <-s.in:
	case <-s.closing:
		return nil, false
	}
	group := []*request{first}
	runtime.Gosched()
	for len(group) < maxGroup {
		select {
		case r := <-s.in:
			group = append(group, r)
		default:
			return group, true
		}
	}
	return group, true
}

// commit returns an error when nothing may be written any more.
func (s *Store) commit(group []*request) error {
	for len(group) > 0 {
		tx, err := s.db.Begin(true)
		if err != nil {
			answerAll(group, fmt.Errorf("%w: %w", table.ErrClosed, err))
			return nil
		}
		outs := make([]outcome, len(group))
		bad, changed := -1, false
		for i, r := range group {
			if outs[i] = apply(tx, r); outs[i].spoilt {
				bad = i
				break
			}
			changed = changed || outs[i].wrote
		}
		if bad >= 0 {
			// That member gets the error, the others start again without it.
			_ = tx.Rollback()
			group[bad].done <- outs[bad]
			group = append(group[:bad:bad], group[bad+1:]...)
			continue
		}
		if !changed {
			_ = tx.Rollback() // only failed conditions and checks: nothing to sync
			answer(group, outs)
			return nil
		}
		if err := tx.Commit(); err != nil {
			return failed(group, err)
		}
		answer(group, outs)
		return nil
	}
	return nil
}

// failed answers a group whose commit failed. A full disk fails before the commit
// point and may get room again; after any other failure of a sync the state of the
// file is unknown until it is opened again, so writing ends.
func failed(group []*request, err error) error {
	err = fmt.Errorf("%w: commit: %w", table.ErrUnknown, err)
	answerAll(group, err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return fmt.Errorf("%w: an earlier commit failed: %w", table.ErrClosed, err)
}

func answer(group []*request, outs []outcome) {
	for i, r := range group {
		r.done <- outs[i]
	}
}

func answerAll(group []*request, err error) {
	for _, r := range group {
		r.done <- outcome{err: err}
	}
}

// apply does one member.
func apply(tx *bbolt.Tx, r *request) outcome {
	if err := r.ended(); err != nil {
		return outcome{err: err}
	}
	if r.ops == nil {
		return sweep(tx, r.sweepTo)
	}
	changes, err := plan(tx, r.ops)
	out := outcome{err: err}
	for _, c := range changes {
		out.units += table.WriteUnits(c.before, c.after, len(r.ops) > 1)
	}
	if err != nil {
		return out
	}
	for _, c := range changes {
		if c.before == c.after {
			continue
		}
		out.wrote = true
		if err := put(tx, c); err != nil {
			return spoilt(err)
		}
	}
	if r.ops[0].ReturnNew {
		out.new = changes[0].after
	}
	return out
}

func spoilt(err error) outcome {
	return outcome{err: fmt.Errorf("bolt: write: %w", err), spoilt: true}
}

// plan reads every item, evaluates every condition, and works out every item that
// results, before anything is changed. With an error it still gives what was read,
// because a failed Write is billed too.
func plan(tx *bbolt.Tx, ops []table.Op) ([]change, error) {
	changes := make([]change, len(ops))
	for i := range ops {
		k := ops[i].Key
		it, err := load(tx, k)
		if err != nil {
			return changes[:i], err
		}
		changes[i] = change{key: k, before: it, after: it}
	}
	for i := range ops {
		if !table.Eval(ops[i].If, changes[i].before) {
			return changes, &table.ConditionError{Op: i, Found: changes[i].before}
		}
	}
	total := 0
	afters := make([]*table.Item, len(ops))
	for i := range ops {
		after, err := table.Apply(&ops[i], changes[i].before)
		if err != nil {
			return changes, fmt.Errorf("%w (op %d)", err, i)
		}
		afters[i] = after
		total += max(changes[i].before.Size(), after.Size())
	}
	if len(ops) > 1 && total > table.MaxWrite {
		return changes, fmt.Errorf("%w: items of %d bytes in a write, at most %d", table.ErrTooLarge, total, table.MaxWrite)
	}
	for i := range changes {
		changes[i].after = afters[i]
	}
	return changes, nil
}
