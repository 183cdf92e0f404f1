package transcript

import (
	"context"
	"errors"
	"fmt"

	"laneway/shared/session"
	"laneway/shared/table"
)

// ErrTorn is a transcript whose rows stay incomplete below the head that META
// names: it is damaged, or the store does not keep its promise.
var ErrTorn = errors.New("transcript: rows are missing below the head")

// rereads bounds how often a reader looks again for rows below the head: a page
// of a query is no snapshot, a second look at the latest shows them.
const rereads = 5

// Context loads the rows that the model sees: from the session's base on, up to
// its head.
func (l *Log) Context(ctx context.Context, m session.Meta) ([]Entry, error) {
	from := max(m.Base, 1)
	return l.Range(ctx, m.Ref, m.SessionID, from, m.Head)
}

// Range loads the rows from..to, both inclusive. Rows are immutable, so what is
// in the cache is as good as a read.
func (l *Log) Range(ctx context.Context, ref session.Ref, sessionID string, from, to int64) ([]Entry, error) {
	if to < from || sessionID == "" {
		return nil, nil
	}
	pk := ref.TranscriptPK(sessionID)
	got := l.Cache.get(pk, from, to)
	for try := 0; int64(len(got)) < to-from+1; try++ {
		if try == rereads {
			return nil, fmt.Errorf("%w: have up to %d of %d", ErrTorn, from+int64(len(got))-1, to)
		}
		more, err := l.read(ctx, pk, from+int64(len(got)), to)
		if err != nil {
			return nil, err
		}
		got = append(got, more...)
	}
	l.Cache.put(pk, got)
	return got, nil
}

// read returns the contiguous rows that a query finds from a sequence on.
func (l *Log) read(ctx context.Context, pk string, from, to int64) ([]Entry, error) {
	var out []Entry
	q := table.Query{Table: table.Sessions, PK: pk, From: RowSK(from), To: RowSK(to + 1)}
	for {
		page, err := l.Store.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read transcript: %w", err)
		}
		for _, it := range page.Items {
			e, err := l.decode(ctx, it)
			if err != nil {
				return nil, err
			}
			if e.Seq != from+int64(len(out)) {
				return out, nil
			}
			out = append(out, e)
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}
