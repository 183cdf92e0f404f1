package cron

import (
	"context"
	"errors"
	"fmt"

	"laneway/shared/claim"
	"laneway/shared/table"
)

// Get reads a job; ErrUnknown where there is none.
func (s *Service) Get(ctx context.Context, tenant, jobID string) (*Job, error) {
	if jobID == "" || len(jobID) > maxJobID {
		return nil, ErrUnknown
	}
	it, err := s.Store.Get(ctx, jobKey(tenant, jobID))
	if errors.Is(err, table.ErrNotFound) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	return decodeJob(tenant, it)
}

// maxJobID bounds what is looked for, in bytes.
const maxJobID = 256

// outcome says what a change makes of a job.
type outcome int

const (
	keep   outcome = iota // nothing is written
	write                 // the job as it was changed
	remove                // it is no more
)

// changes is how often a change is made again on a job that others change meanwhile.
const changes = 16

// edit makes a change of a job: read, change, write on the condition that it is still
// as it was read, again where it is not. So change may be called several times, for
// one write. entries are written to the history with it. The job that is returned is
// the job after the change.
func (s *Service) edit(ctx context.Context, tenant, jobID string, change func(*Job) (outcome, []entry, error)) (*Job, error) {
	mine := s.NewID()
	for range changes {
		j, err := s.Get(ctx, tenant, jobID)
		if err != nil {
			return nil, err
		}
		due := j.due
		what, entries, err := change(j)
		if err != nil || what == keep {
			return j, err
		}
		full := j.grow(len(entries))
		j.Write = mine
		ops, err := s.ops(j, what, entries)
		if err != nil {
			return nil, err
		}
		err = s.write(ctx, ops...)
		if ce, refused := table.Failed(err); refused {
			if !ce.Ambiguous || !written(ce.Found, what, mine) {
				continue
			}
			err = nil
		}
		if err != nil {
			return nil, err
		}
		s.arm(ctx, j, due)
		if full {
			s.trim(ctx, j)
		}
		return j, nil
	}
	return nil, fmt.Errorf("%w: job changes too fast", ErrUnavailable)
}

// written says whether an item is as it is because of a write of ours whose answer was
// lost (C5).
func written(found *table.Item, what outcome, mine string) bool {
	if what == remove || found == nil {
		return what == remove && found == nil
	}
	j, err := decodeJob("", *found)
	return err == nil && j.Write == mine
}

// ops is the transaction that writes a job that was read and changed: the item, its
// place among the due ones, entries of its history.
func (s *Service) ops(j *Job, what outcome, entries []entry) ([]table.Op, error) {
	old, was := j.due, table.Equal(table.P(attrVer), j.ver)
	j.ver++
	j.due = 0
	if what == write {
		j.due = j.dueAt()
	}
	var ops []table.Op
	if what == remove {
		ops = []table.Op{{Kind: table.Delete, Key: jobKey(j.Tenant, j.ID), If: was}, {Kind: table.Delete, Key: listKey(j.Tenant, j.ID)}}
	} else {
		item, err := j.item()
		if err != nil {
			return nil, err
		}
		ops = []table.Op{{Kind: table.Put, Key: jobKey(j.Tenant, j.ID), Item: item, If: was}}
	}
	if old != j.due {
		ops = append(ops, s.move(j, old)...)
	}
	for _, e := range entries {
		op, err := e.op(j)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// move takes a job from its old place among the due ones to its new one.
func (s *Service) move(j *Job, old int64) (ops []table.Op) {
	if old != 0 {
		ops = append(ops, table.Op{Kind: table.Delete, Key: dueKey(j.Tenant, j.ID, old)})
	}
	if j.due != 0 {
		ops = append(ops, table.Op{Kind: table.Put, Key: dueKey(j.Tenant, j.ID, j.due), Item: table.Attrs{}})
	}
	return ops
}

// write retries conflicts for as long as a gateway may.
func (s *Service) write(ctx context.Context, ops ...table.Op) error {
	_, err := claim.Write(ctx, s.Store, s.Clock, s.Times.Retry, ops...)
	if claim.Retrying(err) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
