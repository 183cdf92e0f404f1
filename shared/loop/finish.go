package loop

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/notify"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// finishOK ends the run with the model's answer. It gives false where the mailbox
// got a message meanwhile: then the answer stands in the conversation and the loop
// goes on (L3).
func (a *attempt) finishOK(ctx context.Context, ans answer) (bool, error) {
	a.count(ans)
	row := a.row(ans)
	row.Key = a.st.RunID + ":assistant"
	a.add(row)
	out := a.outcome(run.OK, "stop")
	if !ans.silent {
		text := ans.visible
		if ans.stop == "length" {
			text += "\n\n" + textTruncated
		}
		out.Payloads = []run.Payload{{Text: text}}
		out.Text = text
	}
	last, cancel := a.r.last(ctx)
	defer cancel()
	err := a.terminal(last, out)
	var refused *claim.RefusedError
	if errors.As(err, &refused) {
		a.itemOn = false
		return false, a.deliver(ctx, refused.Meta)
	}
	return err == nil, err
}

// outcome is an end with what the run knows about itself.
func (a *attempt) outcome(kind run.OutcomeKind, stop string) *run.Outcome {
	now := a.r.Clock.Now().UnixMilli()
	o := &run.Outcome{
		Kind: kind, StopReason: stop, Provider: a.sel.Name, Model: a.sel.Model,
		Steps: a.chk.Step, ToolCalls: a.chk.ToolCalls, DurationMs: now - a.st.StartedAt, ProviderStarted: a.chk.Asked,
	}
	if u := a.chk.Usage; u != (model.Usage{}) {
		o.Usage = &u
	}
	return o
}

// finishStopped ends the run as aborted: what was shown is kept, once, and says so.
func (a *attempt) finishStopped(ctx context.Context, why string) error {
	a.keepPartial(why)
	return a.terminal(ctx, a.outcome(run.Aborted, why))
}

// finishTimeout ends the run whose budget is over: never as ok, whatever was said.
func (a *attempt) finishTimeout(ctx context.Context) error {
	a.keepPartial("timeout")
	o := a.outcome(run.Timeout, "timeout")
	o.TimeoutPhase, o.Error, o.ErrorKind = "provider", textTimedOut, "timeout"
	if !a.chk.Asked {
		o.TimeoutPhase = "preflight"
	}
	o.Payloads = []run.Payload{{Text: textTimedOut, IsError: true}}
	return a.terminal(ctx, o)
}

// finishFailed ends the run with an error that a user may read.
func (a *attempt) finishFailed(ctx context.Context, err error) error {
	a.closeCalls()
	o := a.outcome(run.Failed, "error")
	o.Error, o.ErrorKind = describe(err)
	return a.terminal(ctx, o)
}

// keepPartial makes a row of the text that was shown of an unfinished message, and
// closes calls that are open.
func (a *attempt) keepPartial(why string) {
	a.closeCalls()
	text := a.shown.String()
	if !a.itemOn || strings.TrimSpace(text) == "" {
		return
	}
	a.add(transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.r.Clock.Now().UnixMilli(),
		Key: a.st.RunID + ":assistant", Role: model.Assistant, StopReason: "stop",
		Content:  []model.Block{{Type: model.Text, Text: text}},
		Provider: "laneway", Model: "gateway-injected", Usage: &model.Usage{},
		Abort: &transcript.Abort{Aborted: true, Origin: why, RunID: a.st.RunID},
	})
}

// closeCalls gives every open call a result: its own where it has one, else that it
// was stopped. So the stored conversation is valid for a provider (F23).
func (a *attempt) closeCalls() {
	for _, b := range transcript.OpenCalls(a.rows) {
		k := &call{block: b}
		for _, c := range a.doing {
			if c.block.ID == b.ID && c.result != nil {
				k = c
			}
		}
		if k.result == nil {
			r := tool.ErrorResult(tool.TextAborted)
			k.result = &r
		}
		a.add(a.resultRow(k))
	}
}

// terminal is the one end of the run: rows, outcome, counters, unsettled, and the
// release of the claim in one transaction (L3); then its end is told (L5). It runs
// on a context of its own.
func (a *attempt) terminal(ctx context.Context, o *run.Outcome) error {
	now := a.r.Clock.Now()
	a.st.EndedAt, a.st.Outcome, a.st.State = now.UnixMilli(), o, run.Ended
	batch := a.out.Prepare(notify.EndEvents(&a.st, a.shownText(o))...)
	a.st.TermEvent = batch.First()
	batch.Expire(now.Add(run.Keep))
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	c := change{events: []*stream.Batch{batch}, drop: []table.Path{table.P(run.AttrCheckpoint)}}
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
	if o.Kind != run.OK {
		if err := a.moveBack(ctx, &c); err != nil {
			return err
		}
	}
	c.tx.If = mailIs(a.moved)
	c.status = []table.SetOp{
		{Path: table.P(run.AttrState), Value: string(run.Ended)},
		{Path: table.P(run.AttrOutcome), Value: body},
		{Path: table.P(run.AttrEnded), Value: a.st.EndedAt},
		{Path: table.P(run.AttrTermEvent), Value: a.st.TermEvent},
		// The answer is in the record and its holder tells it: nobody else before this.
		{Path: table.P(run.AttrOriginLease), Value: now.Add(a.r.Claims.Times.Answer).UnixMilli()},
		{Path: table.P(table.TTLAttr), Value: now.Add(run.Keep).Unix()},
	}
	if a.first != nil && !a.userWaits() {
		c.events = append([]*stream.Batch{a.first}, c.events...)
	}
	if err := a.commit(ctx, c); err != nil {
		batch.Drop()
		a.st.EndedAt, a.st.Outcome, a.st.State = 0, nil, run.Started
		var refused *claim.RefusedError
		if o.Kind != run.OK && errors.As(err, &refused) && ctx.Err() == nil {
			return a.terminal(ctx, o) // the mailbox changed between its reading and the commit
		}
		return err
	}
	a.ended.Store(true)
	batch.Publish()
	return nil
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

// shownText is the text that the chat's last event carries.
func (a *attempt) shownText(o *run.Outcome) string {
	if o.Kind == run.OK {
		return o.Text
	}
	if a.itemOn {
		return a.shown.String()
	}
	return ""
}

// settle tells the end: the reply and the waiters, whatever is left for the lane,
// and only then takes the run off the unsettled ones (L5).
func (a *attempt) settle(ctx context.Context) error {
	if frame := a.r.Ends.Final(a.st); frame != nil && a.st.Origin != nil {
		a.out.Reply(*a.st.Origin, frame)
	}
	held, err := a.r.Ends.Waiters(ctx, a.st)
	if err != nil {
		a.out.Stop()
		return err
	}
	unsent := a.out.Close(ctx)
	if len(unsent) > 0 {
		if err := a.r.Ends.Late(ctx, unsent); err != nil {
			return err
		}
	}
	done := []string{a.st.Ref.Run}
	for _, short := range a.chk.Took {
		st, err := run.Load(ctx, a.r.Store, run.Ref{Tenant: a.ref.Tenant, Run: short})
		if errors.Is(err, run.ErrUnknown) {
			done = append(done, short)
			continue
		}
		if err != nil {
			return err
		}
		if h, err := a.r.Ends.Finish(ctx, st); err != nil {
			return err
		} else if !h {
			done = append(done, short)
		}
	}
	if held {
		if err := a.r.Lanes.NudgeLater(ctx, a.h.Meta(), a.r.Claims.Times.Answer, "held"); err != nil {
			return err
		}
		done = done[1:]
	}
	return a.r.Lanes.Settled(ctx, a.ref, done, a.h.Owner())
}
