package loop

import (
	"context"
	"errors"
	"time"

	"laneway/shared/connection"
	"laneway/shared/lane"
	"laneway/shared/run"
	"laneway/shared/token"
)

// Tokens says of a token that was granted whether it still is, from an answer that is
// less than age old: token.ErrUnknown where it is not.
type Tokens interface {
	connection.Tokens
	// Gone is what is known of it without a look.
	Gone(id string) bool
}

// errRevoked is the end of a run whose token is gone.
func errRevoked() error { return &stopError{why: run.StopRevoked} }

// checkToken says of a run that begins or goes on whether the token that it came with is
// gone. Whoever let a run in that begins at once has seen its token: only one that had
// to wait, or that an earlier attempt began, is worth a look before anything is done.
func (a *attempt) checkToken(ctx context.Context) error {
	if a.r.Tokens == nil || a.st.Token == "" {
		return nil
	}
	m := a.h.Meta()
	if m.Attempt <= 1 && a.st.Disposition.Kind != lane.IsQueued && a.r.Clock.Now().Sub(time.UnixMilli(a.st.AcceptedAt)) < token.LookEvery {
		a.revoked = a.r.Tokens.Gone(a.st.Token)
		return nil
	}
	err := a.r.Tokens.Live(ctx, a.st.Token, token.LookAge)
	if a.revoked = errors.Is(err, token.ErrUnknown); a.revoked {
		return nil
	}
	return err
}

// watchToken ends the turn when the run's token is gone.
func (a *attempt) watchToken(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		select {
		case <-a.r.Clock.After(token.LookEvery):
		case <-ctx.Done():
			return
		}
		err := a.r.Tokens.Live(ctx, a.st.Token, token.LookAge)
		if errors.Is(err, token.ErrUnknown) {
			cancel(errRevoked())
			return
		}
		if err != nil && ctx.Err() == nil { // the next look may tell
			a.r.Logger.Warn("token not looked at", "session", a.ref.Hash(), "err", err)
		}
	}
}

// errWithdrawn says that a message was ended that was to become part of a turn: the
// session is to be read again.
var errWithdrawn = errors.New("a message was withdrawn")

// mayJoin is nil where a message may become part of this run's turn. One whose own token
// is gone is ended instead: errWithdrawn.
func (a *attempt) mayJoin(ctx context.Context, st *run.Status) error {
	if a.r.Tokens == nil {
		return nil
	}
	err := a.r.Tokens.Live(ctx, st.Token, token.LookAge)
	if !errors.Is(err, token.ErrUnknown) {
		return err
	}
	if _, err := a.r.Lanes.StopRun(ctx, lane.Stop{Ref: a.ref, RunID: st.RunID, Reason: run.StopRevoked}); err != nil {
		return err
	}
	return errWithdrawn
}
