package transcript

import (
	"context"
	"fmt"

	"laneway/shared/session"
	"laneway/shared/table"
)

// removeBatch is how many rows go in one write.
const removeBatch = 25

// Remove deletes the rows of a transcript that no session names any more, with
// their bodies in the blob store. It may be called again after it was cut short.
func (l *Log) Remove(ctx context.Context, ref session.Ref, sessionID string) error {
	if sessionID == "" {
		return nil
	}
	pk := ref.TranscriptPK(sessionID)
	q := table.Query{Table: table.Sessions, PK: pk, Limit: removeBatch}
	for {
		page, err := l.Store.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("read transcript: %w", err)
		}
		var ops []table.Op
		for i := range page.Items {
			it := &page.Items[i]
			if key := it.Attrs.Str(attrBlob); key != "" && l.Blobs != nil {
				// The body first: a row that is left names it, so a second try finds it.
				if err := l.Blobs.Delete(ctx, key); err != nil {
					return fmt.Errorf("remove transcript row: %w", err)
				}
			}
			ops = append(ops, table.Op{Kind: table.Delete, Key: it.Key})
		}
		if len(ops) > 0 {
			if _, err := l.Store.Write(ctx, ops...); err != nil {
				return fmt.Errorf("remove transcript rows: %w", err)
			}
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	l.Cache.forget(pk)
	return nil
}
