package transcript

import (
	"context"
	"fmt"

	"laneway/shared/session"
	"laneway/shared/table"
)

// Span is the part of a transcript that a reader may see: the rows after Floor up
// to Last.
type Span struct {
	SessionID   string
	Floor, Last int64
}

// Span is what clients may see of a session: the transcript of now behind its last
// reset, or, for another session id, all of that transcript. A compaction hides
// nothing from people: a reset that lies before one is found while reading.
func (l *Log) Span(ctx context.Context, m *session.Meta, sessionID string) (Span, error) {
	if sessionID != "" && sessionID != m.SessionID {
		last, err := l.last(ctx, m.Ref, sessionID)
		return Span{SessionID: sessionID, Last: last}, err
	}
	s := Span{SessionID: m.SessionID, Last: m.Head}
	if m.Base == 0 {
		return s, nil
	}
	rows, err := l.Range(ctx, m.Ref, m.SessionID, m.Base, m.Base)
	if err != nil {
		return s, err
	}
	if rows[0].Type == Reset {
		s.Floor = m.Base
	}
	return s, nil
}

// last is the sequence of a transcript's last row, 0 where it has none: for
// transcripts that are not the session's current one, whose head META tells.
func (l *Log) last(ctx context.Context, ref session.Ref, sessionID string) (int64, error) {
	page, err := l.Store.Query(ctx, table.Query{Table: table.Sessions, PK: ref.TranscriptPK(sessionID), Limit: 1, Desc: true})
	if err != nil {
		return 0, fmt.Errorf("read transcript: %w", err)
	}
	if len(page.Items) == 0 {
		return 0, nil
	}
	e, err := l.decode(ctx, page.Items[0])
	return e.Seq, err
}
