package loop

import (
	"context"
	"errors"

	"laneway/shared/lane"
	"laneway/shared/run"
	"laneway/shared/session"
)

// tell says what became of messages that this run took: to their senders and to
// everybody who listens to the session. It is a hint, the record says it too.
func (a *attempt) tell(list []run.Status, d run.Disposition) {
	for i := range list {
		list[i].Disposition = d
		a.receipt(&list[i])
	}
}

func (a *attempt) receipt(st *run.Status) {
	frame, err := st.AppendDisposition(nil)
	if err != nil {
		a.r.Logger.Error("receipt not encoded", "run", st.Ref.Run, "err", err)
		return
	}
	a.out.Tell(st.Origin, frame)
}

// begins says that the run has begun, if its sender was told otherwise. The record has
// it with the run's end; until then the run's state says it.
func (a *attempt) begins() {
	if a.st.Disposition.Kind == lane.IsStarted {
		return
	}
	a.st.Disposition = run.Disposition{Kind: lane.IsStarted}
	a.receipt(&a.st)
}

// superseded notes which run's message ended this one.
func (a *attempt) superseded(ctx context.Context, by string) {
	id, err := lane.WholeID(ctx, a.r.Store, a.ref.Tenant, by)
	if err != nil {
		id = by
	}
	a.st.Disposition = run.Disposition{Kind: lane.IsSuperseded, RunID: id}
}

// tellEnd says what the terminal made of messages.
func (a *attempt) tellEnd() {
	if a.st.Disposition.Kind == lane.IsSuperseded {
		a.receipt(&a.st)
	}
	for i := range a.returned {
		a.receipt(&a.returned[i])
	}
}

// tellQueue tells those who wait that they moved up, when a run begins. It goes beside
// the turn, which does not wait for it.
func (a *attempt) tellQueue(ctx context.Context) {
	m := a.h.Meta()
	if !a.fresh || len(m.Pending) == 0 {
		return
	}
	a.fresh = false
	a.beside.Go(func() {
		now, err := session.LoadMeta(ctx, a.r.Store, a.ref)
		if err != nil {
			return
		}
		for _, p := range now.Pending {
			n := now.Position(p.Run)
			if n == 0 {
				continue // it was stopped
			}
			st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: p.Run})
			if err != nil && !errors.Is(err, run.ErrUnknown) {
				return
			}
			if err != nil || st.State != run.Pending {
				continue
			}
			st.Disposition = lane.Now(st, now)
			a.receipt(&st)
		}
	})
}
