package loop

import (
	"context"
	"errors"
	"strings"

	"laneway/shared/claim"
	"laneway/shared/cost"
	"laneway/shared/meter"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// finishOK ends the run with the model's answer. It gives false where the mailbox
// got a message meanwhile: then the answer stands in the conversation and the loop
// goes on (L3). A mark to stop that came before it wins, as its sender was told.
func (a *attempt) finishOK(ctx context.Context, ans answer) (bool, error) {
	before := a.chk
	a.count(ans)
	row := a.row(ans)
	row.Key = a.st.RunID + ":assistant"
	a.add(row)
	out := a.outcome(run.OK, "stop")
	a.reply(ctx, out, &ans)
	for {
		err := a.terminal(ctx, out)
		if err == nil {
			return true, nil
		}
		var refused *claim.RefusedError
		if !errors.As(err, &refused) || refused.Meta.Marked() {
			a.takeOff(row.ID)
			a.chk = before
			if refused != nil {
				err = stopped(refused.Meta)
			}
			return false, err
		}
		a.rename(row.ID, "") // the key is that of the run's last answer
		n, err := a.deliver(ctx, refused.Meta)
		if err != nil || n > 0 {
			return false, err
		}
		a.rename(row.ID, row.Key) // it was withdrawn: this is the last answer after all
	}
}

// takeOff takes a row that is not stored off the conversation again.
func (a *attempt) takeOff(id string) {
	if n := len(a.unsaved) - 1; n >= 0 && a.unsaved[n].ID == id {
		a.unsaved, a.rows = a.unsaved[:n], a.rows[:len(a.rows)-1]
	}
}

// rename gives a row that is not stored another key.
func (a *attempt) rename(id, key string) {
	if n := len(a.unsaved) - 1; n >= 0 && a.unsaved[n].ID == id {
		a.unsaved[n].Key, a.rows[len(a.rows)-1].Key = key, key
	}
}

// Bounds of what the run's record has of the reply and of the reasoning beside it, in
// bytes as encoded: an item has room for 400 KB, and summaries of tools take some
// (maxSummaries). A frame's limit is lower where it matters, and the transcript has it whole.
const (
	maxOutcome   = 200 << 10
	maxReasoning = 64 << 10
)

// outcome is an end with what the run knows about itself.
func (a *attempt) outcome(kind run.OutcomeKind, stop string) *run.Outcome {
	now := a.r.Clock.Now().UnixMilli()
	o := &run.Outcome{
		Kind: kind, StopReason: stop, Provider: a.sel.Name, Model: a.sel.Model,
		Steps: a.chk.Step, ToolCalls: a.chk.ToolCalls, DurationMs: now - a.st.StartedAt, ProviderStarted: a.chk.Asked,
		TokenPrice: a.sel.Price,
	}
	if u := a.chk.Usage; u != (model.Usage{}) {
		o.Usage = &u
	}
	o.Used = cost.Sum(a.used(), cost.Accept)
	return o
}

// used is what the run has used so far, this attempt included. What its end itself
// uses, about one transaction and the posts behind it, comes too late to be in it.
func (a *attempt) used() map[meter.Name]float64 {
	own := map[meter.Name]float64{}
	if a.r.MemoryMB > 0 {
		own[meter.FunctionCalls] = 1
		own[meter.GBSeconds] = float64(a.r.MemoryMB) / 1024 * a.r.Clock.Now().Sub(a.began).Seconds()
	}
	return cost.Sum(a.chk.Used, a.meter.Counts(), own)
}

// finishStopped ends the run as aborted: what was shown is kept, once, and says so.
func (a *attempt) finishStopped(ctx context.Context, stop *stopError) error {
	why := stop.why
	a.keepPartial(why)
	if why == run.StopSuperseded {
		a.superseded(ctx, stop.by)
	}
	o := a.outcome(run.Aborted, why)
	if why == run.StopStuck {
		o.Payloads = []run.Payload{{Text: textStuck, IsError: true, Notice: true}}
	}
	return a.terminal(ctx, o)
}

// finishTimeout ends the run whose time is over, and says so: never as ok, whatever was
// said.
func (a *attempt) finishTimeout(ctx context.Context, text string) error {
	a.keepPartial("timeout")
	o := a.outcome(run.Timeout, "timeout")
	o.TimeoutPhase, o.Error, o.ErrorKind = "provider", text, "timeout"
	if !a.chk.Asked {
		o.TimeoutPhase = "preflight"
	}
	o.Payloads = []run.Payload{{Text: text, IsError: true}}
	return a.terminal(ctx, o)
}

// finishFailed ends the run with an error that a user may read.
func (a *attempt) finishFailed(ctx context.Context, err error) error {
	a.closeCalls()
	o := a.outcome(run.Failed, "error")
	o.Error, o.ErrorKind = describe(err)
	if me, ok := errors.AsType[*model.Error](err); ok {
		o.ErrorStatus = me.HTTPStatus()
	}
	if o.ErrorKind == string(model.EmptyResponse) {
		a.reply(ctx, o, &answer{})
		if n := len(o.Payloads) - 1; n >= 0 && !o.Payloads[n].Summary {
			o.Error = o.Payloads[n].Text // what its tools did is what there is to say
		} else {
			said := o.Payloads
			o = a.outcome(run.OK, "stop") // a tool has said it
			o.Payloads = said
		}
	}
	if o.ErrorKind == "unknown" {
		a.r.Logger.Error("run failed", "session", a.ref.Hash(), "run", a.st.Ref.Run, "err", err)
	}
	if o.Kind == run.Failed {
		a.keepError(o.Error)
	}
	return a.terminal(ctx, o)
}

// keepError makes a row of the failure that ended the run, with what was shown of the
// message that it cut off. The next model reads only that a reply was not finished.
func (a *attempt) keepError(text string) {
	e := transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.r.Clock.Now().UnixMilli(),
		Key: a.st.RunID + ":assistant", Role: model.Assistant, StopReason: "error", Error: text,
		Provider: a.sel.Name, Model: a.sel.Model, Usage: &model.Usage{},
	}
	if shown := a.shown.String()[len(a.said0):]; strings.TrimSpace(shown) != "" {
		e.Content = []model.Block{{Type: model.Text, Text: shown}}
	}
	a.add(e)
}

// keepPartial makes a row of the text that was shown of an unfinished message, and
// closes calls that are open.
func (a *attempt) keepPartial(why string) {
	a.closeCalls()
	text := a.shown.String()[len(a.said0):]
	if strings.TrimSpace(text) == "" {
		return
	}
	a.add(transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.r.Clock.Now().UnixMilli(),
		Key: a.st.RunID + ":assistant", Role: model.Assistant, StopReason: "stop",
		Content:  []model.Block{{Type: model.Text, Text: text}},
		Provider: transcript.GatewayProvider, Model: transcript.GatewayModel, Usage: &model.Usage{},
		Abort: &transcript.Abort{Aborted: true, Origin: abortOrigin(why), RunID: a.st.RunID},
	})
}

// abortOrigin is what stopped a run, as clients know it from the mark of its row: the
// stop reason, but for a stop that was said in a message.
func abortOrigin(why string) string {
	if why == run.StopStop {
		return "stop-command"
	}
	return why
}

// closeCalls gives every open call a result: its own where it has one, else that it
// was stopped. So the stored conversation is valid for a provider (F23). Clients that
// saw a call begin are told its result with the end.
func (a *attempt) closeCalls() {
	var untold []*call
	for _, b := range transcript.OpenCalls(a.rows) {
		k := &call{block: b, begun: a.r.Clock.Now().UnixMilli()}
		for _, c := range a.doing {
			if c.block.ID == b.ID {
				k = c
			}
		}
		if k.result == nil {
			r := tool.ErrorResult(tool.TextAborted)
			k.result = &r
		}
		if !k.told {
			untold = append(untold, k)
		}
		a.add(a.resultRow(k))
	}
	a.ending = append(a.ending, a.resultEvents(untold)...)
	a.doing = nil
}

// shownText is the text that the chat's last event carries.
func (a *attempt) shownText(o *run.Outcome) string {
	if o.Kind == run.OK {
		return o.Text
	}
	return a.shown.String()
}
