package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/table"
)

// expireAtOnce bounds the rows of a run that are written side by side.
const expireAtOnce = 8

// Expire lets the events and the tool ledger of an ended run be cleaned up at a time.
// It may be called again after it was cut short. Rows of a live run never expire.
func Expire(ctx context.Context, t table.Store, r Ref, at time.Time) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(expireAtOnce)
	q := table.Query{Table: table.Runs, PK: r.PK(), From: "C#", To: "E$"} // C# and E#, nothing else
	var failed error
	for {
		page, err := t.Query(gctx, q)
		if err != nil {
			failed = err
			break
		}
		for _, it := range page.Items {
			if it.Attrs.Int(table.TTLAttr) != 0 {
				continue
			}
			g.Go(func() error {
				_, err := t.Write(gctx, table.Op{
					Kind: table.Update, Key: it.Key, If: table.All(table.Exists(), table.Lacks(table.P(table.TTLAttr))),
					Set: []table.SetOp{{Path: table.P(table.TTLAttr), Value: at.Unix()}},
				})
				if errors.Is(err, table.ErrCondition) {
					return nil // another settler was faster
				}
				return err
			})
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	if err := errors.Join(failed, g.Wait()); err != nil {
		return fmt.Errorf("expire rows of a run: %w", err)
	}
	return nil
}
