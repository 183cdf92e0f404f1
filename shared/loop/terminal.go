package loop

import (
	"context"
	"errors"
	"slices"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/notify"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
)

// terminal is the one end of the run: rows, outcome, counters, unsettled, and the
// release of the claim in one transaction (L3). An ok is refused where a message or a
// mark to stop has come in (*claim.RefusedError); every other end takes what is in
// the mailbox with it.
func (a *attempt) terminal(ctx context.Context, o *run.Outcome) error {
	a.h.Progress(session.ProgressEnded)
	for {
		err := a.tryTerminal(ctx, o)
		var refused *claim.RefusedError
		if !errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
		// Somebody subscribed since the last look: the end must reach them too (S5).
		late := a.subscribedTo(ctx, refused.Meta.SubRev)
		if o.Kind == run.OK && !late {
			return err
		}
		// Else the mailbox changed between its reading and the commit.
	}
}

// subscribedTo reads the recipients again where the session has seen more of them
// than the stream, and says whether it had.
func (a *attempt) subscribedTo(ctx context.Context, rev int64) bool {
	if a.subs.Load() == rev {
		return false
	}
	a.readSubscribers(ctx, rev)
	return true
}

func (a *attempt) readSubscribers(ctx context.Context, rev int64) {
	if err := a.out.Refresh(ctx); err != nil {
		a.r.Logger.Warn("subscribers not read", "session", a.ref.Hash(), "err", err)
	}
	a.subs.Store(rev)
}

// subscribersKnown is the condition that the stream knows everybody who listens.
func (a *attempt) subscribersKnown() table.Cond {
	rev, path := a.subs.Load(), table.P(session.AttrSubRev)
	if rev == 0 {
		return table.Any(table.Lacks(path), table.Equal(path, rev))
	}
	return table.Equal(path, rev)
}

func (a *attempt) tryTerminal(ctx context.Context, o *run.Outcome) (err error) {
	now := a.r.Clock.Now()
	body, err := protocol.Marshal(o) // markup is not blown up
	if err != nil {
		return err
	}
	disp, err := lane.SetDisposition(a.st.Disposition)
	if err != nil {
		return err
	}
	a.st.EndedAt, a.st.Outcome, a.st.State = now.UnixMilli(), o, run.Ended
	batch := a.out.Prepare(append(slices.Clip(a.ending), a.endEvents(o)...)...)
	defer func() {
		if err != nil {
			batch.Drop()
			a.st.EndedAt, a.st.Outcome, a.st.State = 0, nil, run.Started
		}
	}()
	a.st.TermEvent = batch.First()
	c := change{events: []*stream.Batch{batch}, drop: []table.Path{table.P(run.AttrCheckpoint)}, expire: now.Add(run.Keep)}
	c.tx = claim.Tx{
		Release: true,
		AddTo:   []table.MemberOp{{Attr: session.AttrUnsettled, Members: append(table.Set{a.st.Ref.Run}, a.chk.Took...)}},
		Set: []table.SetOp{
			{Path: table.P(session.AttrUpdated), Value: now.UnixMilli()},
			{Path: table.P(session.AttrRecentPK), Value: session.RecentPK(a.ref.Tenant)},
			{Path: table.P(session.AttrRecentSK), Value: session.RecentSK(now, a.ref.Key)},
			{Path: table.P(session.AttrLastRun), Value: a.st.Ref.Run},
			{Path: table.P(session.AttrLastEnd), Value: string(o.Kind)},
		},
		Add: []table.AddOp{
			{Path: table.P(session.AttrTokensIn), N: a.chk.Usage.Input},
			{Path: table.P(session.AttrTokensOut), N: a.chk.Usage.Output},
		},
		Remove: []table.Path{
			table.P(session.AttrActive), table.P(session.AttrActiveSeq), table.P(session.AttrActiveLn), table.P(session.AttrActiveAt),
			table.P(session.AttrAttempt), table.P(session.AttrStalled), table.P(session.AttrWake), table.P(session.AttrCancel), table.P(session.AttrCancelWhy),
		},
	}
	if o.Kind == run.OK {
		c.tx.If = table.All(mailIs(0), a.unmarked(), a.subscribersKnown())
	} else {
		if err := a.moveBack(ctx, &c); err != nil {
			return err
		}
		c.tx.If = table.All(mailIs(a.back), a.subscribersKnown())
	}
	c.status = []table.SetOp{
		{Path: table.P(run.AttrState), Value: string(run.Ended)},
		{Path: table.P(run.AttrOutcome), Value: []byte(body)},
		{Path: table.P(run.AttrEnded), Value: a.st.EndedAt},
		{Path: table.P(run.AttrTermEvent), Value: a.st.TermEvent},
		disp,
		// The answer is in the record and its holder tells it: nobody else before this.
		{Path: table.P(run.AttrOriginLease), Value: now.Add(a.r.Claims.Times.Answer).UnixMilli()},
		{Path: table.P(table.TTLAttr), Value: now.Add(run.Keep).Unix()},
	}
	if a.first != nil && !a.userWaits() {
		c.events = append([]*stream.Batch{a.first}, c.events...)
	}
	if err := a.commit(ctx, c); err != nil {
		return err
	}
	a.endedAt = now
	a.ended.Store(true)
	a.tellEnd()
	batch.Publish()
	if a.r.Measure != nil {
		a.r.Measure(a.st)
	}
	return nil
}

// endEvents tell the end. A heartbeat that has found nothing is no message of a chat.
func (a *attempt) endEvents(o *run.Outcome) []stream.Event {
	events := notify.EndEvents(&a.st, a.shownText(o))
	if a.heartbeat() && o.Kind == run.OK && o.Text == "" {
		events = slices.DeleteFunc(events, func(e stream.Event) bool { return e.Stream == stream.ChatStream })
	}
	return events
}

// userWaits says whether the user's row is still to be written: the first commit of
// it brings the start event along.
func (a *attempt) userWaits() bool {
	for i := range a.unsaved {
		if a.unsaved[i].Key == a.st.RunID+":user" {
			return true
		}
	}
	return false
}

// settle tells the end: the reply and the waiters, whatever is left for the lane,
// and only then takes the run off the unsettled ones (L5).
func (a *attempt) settle(ctx context.Context) error {
	if !a.leads() {
		a.out.Stop()
		return errLateSettler // another one tells the end, from the record and the log
	}
	if frame := a.r.Ends.Final(a.st); frame != nil {
		a.out.Reply(*a.st.Origin, frame)
	}
	err := a.r.Ends.Waiters(ctx, a.st)
	unsent := a.out.Close(ctx)
	if !a.leads() {
		return errLateSettler // what is unsent is others' to tell
	}
	if len(unsent) > 0 {
		err = errors.Join(err, a.r.Ends.Late(ctx, a.st, unsent))
	}
	if err != nil {
		return err
	}
	done := []string{a.st.Ref.Run}
	for _, short := range a.chk.Took {
		held, err := a.settleTaken(ctx, short)
		if err != nil {
			return err
		}
		if !held {
			done = append(done, short)
		}
	}
	// The rows of a run that was one commit say already when they may go.
	if a.commits > 1 {
		if err := run.Expire(ctx, claim.Sure(a.r.Store, a.r.Clock, a.r.Claims.Times.Retry), a.st.Ref, a.r.Clock.Now().Add(run.Keep)); err != nil {
			return err
		}
	}
	return a.r.Lanes.Settled(ctx, a.ref, done, a.h.Owner())
}

// settleTaken tells the end of a message that this run took. One that another settler
// is at is left to that one.
func (a *attempt) settleTaken(ctx context.Context, short string) (held bool, err error) {
	st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: short})
	if errors.Is(err, run.ErrUnknown) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return a.r.Ends.Finish(ctx, st)
}
