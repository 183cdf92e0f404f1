package local

import (
	"context"
	"errors"
	"time"

	"laneway/shared/table"
)

// cleanEvery is how often what has expired is removed.
const cleanEvery = 10 * time.Minute

// tick does on one machine what schedules do on AWS: the look at sessions with work
// left (A2), and the cleaning of what has expired.
func (s *Server) tick(ctx context.Context) {
	sweep, clean := s.cfg.Clock.After(s.cfg.Times.Orphan), s.cfg.Clock.After(cleanEvery)
	armed := s.wall()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep:
			if err := s.sweep(ctx, s.wall().Sub(armed)-s.cfg.Times.Orphan); err != nil && ctx.Err() == nil {
				s.cfg.Log.Error("sweep failed", "err", err)
			}
			armed = s.wall()
			sweep = s.cfg.Clock.After(s.cfg.Times.Orphan)
		case <-clean:
			if s.stores.Clean != nil {
				if err := s.stores.Clean(ctx); err != nil && ctx.Err() == nil {
					s.cfg.Log.Error("cleaning failed", "err", err)
				}
			}
			clean = s.cfg.Clock.After(cleanEvery)
		}
	}
}

// wall is the time without its monotonic reading, which stands still while the
// machine sleeps.
func (s *Server) wall() time.Time { return s.cfg.Clock.Now().Round(0) }

// sweep looks at sessions with work left, unless another process has just done so.
// late is how much later than planned it comes: a machine that was asleep must not
// take its own absence for that of the runs.
func (s *Server) sweep(ctx context.Context, late time.Duration) error {
	if s.stores.Shared {
		// A little less than the interval, so that a process alone sweeps at each of
		// its own ticks.
		mine, err := takeTurn(ctx, s.stores.Table, "sweep", s.cfg.Clock.Now(), s.cfg.Times.Orphan*9/10)
		if err != nil || !mine {
			return err
		}
	}
	_, err := s.watch.Sweep(ctx, late)
	return err
}

const attrTurnUntil = "until" // ms

// takeTurn says whether a job that several processes have is this one's to do now:
// the first to ask has it, and nobody has it again before the lease is over. A
// process that dies in its turn costs the others one lease.
func takeTurn(ctx context.Context, store table.Store, job string, now time.Time, lease time.Duration) (bool, error) {
	key := table.Key{Table: table.Config, PK: "TURN#" + job, SK: "META"}
	_, err := store.Write(ctx, table.Op{
		Kind: table.Put, Key: key, Item: table.Attrs{attrTurnUntil: now.Add(lease).UnixMilli()},
		If: table.Any(table.NotExists(), table.Less(table.P(attrTurnUntil), now.UnixMilli()+1)),
	})
	switch {
	case errors.Is(err, table.ErrCondition), errors.Is(err, table.ErrConflict):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}
