package notify

import (
	"context"

	"golang.org/x/sync/errgroup"

	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/run"
)

// Receipts tells what became of messages of one session, as their records say, to
// their senders and to those who listen to the session. It is a hint: who misses it is
// told by agent.wait and sessions.explain, which read the tables.
func (s *Service) Receipts(ctx context.Context, tenant, sessionKey string, list []run.Status) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	listeners, err := s.Connections.Subscribers(ctx, tenant, sessionKey)
	if err != nil {
		s.Log.Warn("listeners of a receipt not read", "err", err)
	}
	var g errgroup.Group
	g.SetLimit(tellers)
	for to, frames := range receipts(list, listeners) {
		g.Go(func() error {
			for _, f := range frames {
				if err := s.post(ctx, run.Waiter{ConnectionID: to.ConnectionID, Callback: to.Callback}, f); err != nil {
					s.Log.Debug("receipt not posted", "connection", to.ConnectionID, "err", err)
					return nil
				}
			}
			return nil
		})
	}
	_ = g.Wait()
}

// receipts sorts the frames by who gets them, each once.
func receipts(list []run.Status, listeners []connection.Subscriber) map[push.Target][][]byte {
	out := make(map[push.Target][][]byte)
	for i := range list {
		frame, err := list[i].AppendDisposition(nil)
		if err != nil || frame == nil {
			continue
		}
		sender := ""
		if o := list[i].Origin; o != nil {
			sender = o.ConnectionID
			out[target(*o)] = append(out[target(*o)], frame)
		}
		for _, l := range listeners {
			if l.ID != sender {
				out[l.Target()] = append(out[l.Target()], frame)
			}
		}
	}
	return out
}
