package loop

import (
	"context"
	"encoding/json"

	"laneway/shared/claim"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/transcript"
)

// Bounds of one transaction (L1): the port takes 100 ops and 4 MB, the rest is for
// the session, the record, events and the ledger.
const (
	maxRows      = 60
	maxRowsBytes = 3 << 20
)

// change is what a commit writes beside the rows that wait.
type change struct {
	tx     claim.Tx        // changes of META; Ops: ledger rows
	status []table.SetOp   // of the run's record
	drop   []table.Path    // likewise
	events []*stream.Batch // in order; logged with this commit
}

// commit writes the waiting rows and a change in one transaction, or in several
// where they do not fit, in order and the change last (C2, L1). After it the rows
// are everybody's. Batches are published by the caller, after success only.
func (a *attempt) commit(ctx context.Context, c change) error {
	rows := a.unsaved
	for {
		n, err := a.fit(rows)
		if err != nil {
			return err
		}
		if n == len(rows) {
			break
		}
		if err := a.write(ctx, rows[:n], change{}); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return a.write(ctx, rows, c)
}

// fit says how many of the rows go into one transaction.
func (a *attempt) fit(rows []transcript.Entry) (int, error) {
	size := 0
	for i := range rows {
		b, err := json.Marshal(&rows[i])
		if err != nil {
			return 0, err
		}
		size += min(len(b), transcript.MaxRow)
		if i > 0 && (i >= maxRows || size > maxRowsBytes) {
			return i, nil
		}
	}
	return len(rows), nil
}

func (a *attempt) write(ctx context.Context, rows []transcript.Entry, c change) error {
	tx := c.tx
	for i := range rows {
		op, err := a.r.Log.Put(ctx, a.ref, a.sid, rows[i])
		if err != nil {
			return err
		}
		tx.Ops = append(tx.Ops, op)
	}
	status := c.status
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
			table.SetOp{Path: table.P("in"), Value: b},
			table.SetOp{Path: table.P(run.AttrSessionID), Value: a.sid},
			table.SetOp{Path: table.P(run.AttrStarted), Value: a.st.StartedAt})
		if a.rotate {
			tx.Set = append(tx.Set, table.SetOp{Path: table.P(session.AttrSessionID), Value: a.sid})
			tx.Remove = append(tx.Remove, table.P(session.AttrBase))
		}
	}
	events := c.events
	if userSeq > 0 && a.first != nil {
		events = append([]*stream.Batch{a.first}, events...)
	}
	for _, b := range events {
		if !b.Empty() {
			tx.Ops = append(tx.Ops, b.Op())
		}
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
