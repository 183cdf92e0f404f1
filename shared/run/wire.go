package run

import (
	"laneway/shared/cost"
	"laneway/shared/model"
	"laneway/shared/protocol"
)

// Snapshot is the answer of agent.wait about a run that has ended (spec: runtime
// 1.8, 1.9): a time-out is a timeout, an abort an error, and both times are always
// there.
func (s *Status) Snapshot() protocol.Wait {
	o := s.Outcome
	w := protocol.Wait{
		RunID: s.RunID, Status: protocol.StatusOK, StartedAt: s.began(), EndedAt: s.EndedAt,
		StopReason: o.StopReason, LivenessState: protocol.LivenessWorking,
	}
	switch o.Kind {
	case OK:
		w.TerminalReply = protocol.NewReply(s.withCards(o.Text))
	case Aborted:
		w.Status, w.Error, w.LivenessState = protocol.StatusError, "aborted", ""
		if o.StopReason == StopSuperseded {
			w.Error = "agent run superseded by a newer session writer"
		}
		if o.TimeoutPhase != "" {
			w.TimeoutPhase, w.ProviderStarted = o.TimeoutPhase, &o.ProviderStarted
		}
	case Timeout:
		w.Status, w.Error, w.LivenessState = protocol.StatusTimeout, o.Error, ""
		w.TimeoutPhase, w.ProviderStarted = o.TimeoutPhase, &o.ProviderStarted
	default:
		w.Status, w.Error, w.LivenessState, w.StopReason = protocol.StatusError, o.Error, protocol.LivenessBlocked, o.ErrorKind
	}
	w.Disposition = s.Disposition.Wire()
	return w
}

// began is when the run began, or when it was accepted if it ended before that.
func (s *Status) began() int64 {
	if s.StartedAt != 0 {
		return s.StartedAt
	}
	return s.AcceptedAt
}

// Wire is the disposition as clients see it; nil where there is none.
func (d Disposition) Wire() *protocol.Disposition {
	if d.Kind == "" {
		return nil
	}
	return &protocol.Disposition{Kind: d.Kind, Position: d.Position, RunID: d.RunID, Step: d.Step, Reason: d.Reason}
}

// AppendDisposition appends the event that says what became of the run's message.
func (s *Status) AppendDisposition(dst []byte) ([]byte, error) {
	d := s.Disposition.Wire()
	if d == nil {
		return dst, nil
	}
	return protocol.AppendEvent(dst, protocol.EventDisposition, protocol.DispositionEvent{
		RunID: s.RunID, SessionKey: s.SessionKey, Disposition: *d,
	})
}

// AppendFinal appends the second reply of agent for a run that has ended, under a
// request id (spec: runtime 1.6). limit bounds the frame in bytes: a longer reply
// text is cut on a rune and says so.
func (s *Status) AppendFinal(requestID string, limit int) ([]byte, error) {
	o := s.Outcome
	if o.Kind == Failed && len(o.Payloads) == 0 {
		e := protocol.Unavailable(o.Error)
		if o.ErrorKind != "" {
			e = e.With("reason", o.ErrorKind)
		}
		if o.ErrorStatus != 0 {
			e = e.With("status", o.ErrorStatus)
		}
		return protocol.AppendFailure(nil, requestID, protocol.FinalThrown(s.RunID, o.Error), e), nil
	}
	frame, err := protocol.AppendResult(nil, requestID, s.Final())
	if err != nil || len(frame) <= limit {
		return frame, err
	}
	return protocol.FitFrame(limit, s.withCards(o.joined()), func(text string, cut bool) ([]byte, error) {
		return protocol.AppendResult(nil, requestID, s.final(text, true, cut))
	})
}

// Final is the payload of that reply where the run did not break.
func (s *Status) Final() protocol.Final { return s.final("", false, false) }

// final is that payload whole, or lean: without what stands beside the reply, which is
// the first to go. cut says that text is all that there is room for.
func (s *Status) final(text string, lean, cut bool) protocol.Final {
	o := s.Outcome
	r := protocol.Result{Meta: protocol.ResultMeta{DurationMs: o.DurationMs, Truncated: lean || o.Cut, Cost: o.Price()}}
	if o.Model != "" {
		r.Meta.AgentMeta = &protocol.AgentMeta{SessionID: s.SessionID, Provider: o.Provider, Model: o.Model, Usage: usage(o.Usage)}
	}
	switch {
	case cut:
		r.Payloads = []protocol.Payload{{Text: text}}
	default:
		if s.Input.Cards != "" {
			r.Payloads = []protocol.Payload{{Text: s.Input.Cards, IsStatusNotice: true}}
		}
		for i := range o.Payloads {
			p := &o.Payloads[i]
			if lean && p.beside() {
				continue
			}
			r.Payloads = append(r.Payloads, protocol.Payload{Text: p.Text, MediaURL: p.MediaURL, IsError: p.IsError, IsStatusNotice: p.Notice, IsReasoning: p.Reasoning})
		}
	}
	f := s.finalOf(r)
	if s.Disposition.Kind != "started" { // what every other final says anyway
		f.Disposition = s.Disposition.Wire()
	}
	return f
}

func (s *Status) finalOf(r protocol.Result) protocol.Final {
	o := s.Outcome
	switch o.Kind {
	case OK:
		return protocol.FinalOK(s.RunID, r)
	case Failed:
		return protocol.FinalFailed(s.RunID, r)
	case Aborted, Timeout: // both are cut off to whoever holds the request
	}
	var res *protocol.Result
	if len(r.Payloads) > 0 {
		res = &r
	}
	return protocol.FinalAborted(s.RunID, o.StopReason, o.TimeoutPhase, o.ProviderStarted, res)
}

// withCards is a reply behind what the gateway itself has answered to the message.
func (s *Status) withCards(text string) string {
	if s.Input.Cards == "" || text == "" {
		return s.Input.Cards + text
	}
	return s.Input.Cards + "\n\n" + text
}

// Price is what the run cost, in short: what it is made of is asked for by itself.
func (o *Outcome) Price() map[string]any {
	if len(o.Used) == 0 {
		return nil
	}
	m := o.Cost()
	p := map[string]any{"usd": m.USD, "cloudUsd": m.Cloud, "prices": m.Prices}
	if len(m.Unpriced) > 0 {
		p["unpriced"] = m.Unpriced
	}
	return p
}

// Cost prices what the run has used.
func (o *Outcome) Cost() cost.Money {
	u := cost.Used{Counts: o.Used, Provider: o.Provider, Model: o.Model, Price: o.TokenPrice}
	if o.Usage != nil {
		u.Tokens = *o.Usage
	}
	return cost.Of(u)
}

func usage(u *model.Usage) *protocol.Usage {
	if u == nil {
		return nil
	}
	total := u.Total
	if total == 0 {
		total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	}
	return &protocol.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, TotalTokens: total}
}
