package loop

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"laneway/shared/claim"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/transcript"
)

// Bounds of one transaction (L1): the port takes 100 ops and 4 MB. Of maxOps are rows,
// the ledger, messages and events; the rest is for the session and the record.
const (
	maxOps       = 84
	maxRows      = 60
	maxRowsBytes = 3 << 20
)

// change is what a commit writes beside the rows that wait.
type change struct {
	tx     claim.Tx        // changes of META; Ops: ledger rows
	status []table.SetOp   // of the run's record
	drop   []table.Path    // likewise
	events []*stream.Batch // in order; logged with this commit
	expire time.Time       // of events, with the terminal; zero: never, the run lives
}

// commitWith is commit with events that it makes true: they are pushed after it, or
// dropped with it.
func (a *attempt) commitWith(ctx context.Context, c change, events ...stream.Event) error {
	batch := a.out.Prepare(events...)
	c.events = append(c.events, batch)
	if err := a.commit(ctx, c); err != nil {
		batch.Drop()
		return err
	}
	batch.Publish()
	return nil
}

// commit writes the waiting rows and a change in one transaction, or in several
// where they do not fit, in order and the change last (C2, L1). After it the rows
// are everybody's. Batches are published by the caller, after success only.
func (a *attempt) commit(ctx context.Context, c change) error {
	last := min(maxRows, maxOps-len(c.tx.Ops)-len(c.events))
	for len(a.unsaved) > 0 {
		n, err := fit(a.unsaved, last)
		if err != nil {
			return err
		}
		if n == len(a.unsaved) {
			break
		}
		if n, err = fit(a.unsaved, maxRows); err != nil {
			return err
		}
		if err := a.write(ctx, a.unsaved[:n], change{}); err != nil {
			return err
		}
	}
	return a.write(ctx, a.unsaved, c)
}

// fit says how many of the rows go into one transaction that has room for most.
func fit(rows []transcript.Entry, most int) (int, error) {
	size := 0
	for i := range rows {
		b, err := json.Marshal(&rows[i])
		if err != nil {
			return 0, err
		}
		if size += min(len(b), transcript.MaxRow); i >= most || i > 0 && size > maxRowsBytes {
			return i, nil
		}
	}
	return len(rows), nil
}

// write is one transaction. It runs on a context of its own: an abort or the end of
// the invocation must not leave it open whether what a step did is stored.
func (a *attempt) write(ctx context.Context, rows []transcript.Entry, c change) error {
	ctx, cancel := a.r.last(ctx)
	defer cancel()
	tx := c.tx
	tx.Ops = slices.Clip(tx.Ops) // what is added here is this try's alone
	tx.Set, tx.Remove = slices.Clip(tx.Set), slices.Clip(tx.Remove)
	for i := range rows {
		op, err := a.r.Log.Put(ctx, a.ref, a.sid, rows[i])
		if err != nil {
			return err
		}
		tx.Ops = append(tx.Ops, op)
	}
	status := slices.Clip(c.status)
	userSeq := int64(0)
	for i := range rows {
		if rows[i].Key == a.st.RunID+":user" {
			userSeq = rows[i].Seq
		}
	}
	if userSeq > 0 {
		// The message is in the transcript from here on (A4).
		in := a.st.Input
		in.Message = ""
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		status = append(status,
			table.SetOp{Path: table.P(run.AttrUserSeq), Value: userSeq},
			table.SetOp{Path: table.P(run.AttrInput), Value: b},
			table.SetOp{Path: table.P(run.AttrSessionID), Value: a.sid},
			table.SetOp{Path: table.P(run.AttrStarted), Value: a.st.StartedAt})
		if a.rotate {
			tx.Set = append(tx.Set, table.SetOp{Path: table.P(session.AttrSessionID), Value: a.sid})
			tx.Set = append(tx.Set, table.SetOp{Path: table.P(session.AttrBegan), Value: a.since})
			tx.Remove = append(tx.Remove, table.P(session.AttrBase))
			if a.st.Input.ResetReason != "" {
				tx.Set = append(tx.Set, table.SetOp{Path: table.P(session.AttrPrevID), Value: a.h.Meta().SessionID})
			}
			tx.Ops = append(tx.Ops, session.PutID(a.ref, a.sid))
		}
	}
	events := c.events
	if userSeq > 0 && a.first != nil {
		events = append([]*stream.Batch{a.first}, events...)
	}
	for _, b := range events {
		if b.Empty() {
			continue
		}
		op := b.Op()
		if !c.expire.IsZero() {
			op.Item = maps.Clone(op.Item) // this try may fail, and the run go on
			op.Item[table.TTLAttr] = c.expire.Unix()
		}
		tx.Ops = append(tx.Ops, op)
	}
	if len(rows) > 0 {
		tx.Head = rows[len(rows)-1].Seq
		if !tx.Release {
			tx.Set = append(tx.Set, table.SetOp{Path: table.P(session.AttrStalled), Value: int64(0)})
		}
	}
	status, err := a.record(status, c)
	if err != nil {
		return err
	}
	tx.Ops = append(tx.Ops, table.Op{Kind: table.Update, Key: a.st.StatusKey(), If: table.Exists(), Set: status, Remove: c.drop})
	if err := a.h.Commit(ctx, tx); err != nil {
		return err
	}
	if userSeq > 0 {
		a.st.UserSeq, a.first = userSeq, nil
	}
	a.commits++
	a.moved = true
	a.head += int64(len(rows))
	a.unsaved = a.unsaved[len(rows):]
	a.r.Log.Keep(a.ref.TranscriptPK(a.sid), rows)
	return nil
}

// record adds what every commit says in the run's record: who wrote last, which
// event numbers are used, and the checkpoint (not with the terminal, which drops it).
func (a *attempt) record(status []table.SetOp, c change) ([]table.SetOp, error) {
	status = append(status,
		table.SetOp{Path: table.P(run.AttrAttempt), Value: a.h.Meta().Attempt},
		table.SetOp{Path: table.P(run.AttrNextEvent), Value: a.out.NextSeq()})
	for _, p := range c.drop {
		if p.Attr == run.AttrCheckpoint {
			return status, nil
		}
	}
	state := run.Started
	a.chk.Retry = a.retry.State()
	b, err := json.Marshal(a.chk)
	if err != nil {
		return nil, err
	}
	return append(status,
		table.SetOp{Path: table.P(run.AttrState), Value: string(state)},
		table.SetOp{Path: table.P(run.AttrCheckpoint), Value: b}), nil
}
