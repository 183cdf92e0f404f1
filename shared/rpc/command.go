package rpc

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/queueing"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// What a session says when it was started over.
var resetNotices = map[string]string{
	reasonNew:   "✅ New session started.",
	reasonReset: "✅ Session reset.",
}

// Reasons of a reset, as commands and sessions.reset name them.
const (
	reasonNew   = "new"
	reasonReset = "reset"
)

// stopStop is the stop reason of runs that a chat command stopped.
const stopStop = "stop"

// inlined is what a message says beside its text.
type inlined struct {
	queue  queueing.Words
	levels levels
	over   bool // the session was started over with it
}

// command does what a message asks for that is a command. done says that it is
// answered; otherwise the message goes on, without the command that it began with,
// and inline has what it said of queueing and of how it is to be answered.
func (g *Gateway) command(ctx context.Context, r *Request, ref session.Ref, hash string, p *protocol.ChatSendParams, inline *inlined) (done bool, err error) {
	if strings.Contains(p.Message, "/") {
		// What was done once is not done again, least of all after another choice.
		if _, err := run.Load(ctx, g.Store, run.RefOf(ref.Tenant, p.IdempotencyKey)); !errors.Is(err, run.ErrUnknown) {
			return false, err
		}
		l, rest, text, err := g.directed(ctx, r, ref, p.Message, len(p.Attachments) > 0)
		switch {
		case err != nil:
			return true, err
		case text != "":
			return true, g.notice(ctx, r, ref, hash, p.IdempotencyKey, text)
		}
		p.Message, inline.levels = rest, l
	}
	if len(p.Attachments) > 0 {
		return false, nil
	}
	if isStop(p.Message) {
		ids, _, err := g.stop(ctx, r, ref, "", stopStop)
		if err != nil {
			return true, err
		}
		return true, r.Reply(protocol.NewChatAborted(ids...))
	}
	if d, rest, found, problem := queueDirective(p.Message); found {
		switch {
		case problem != nil:
			return true, g.notice(ctx, r, ref, hash, p.IdempotencyKey, problem.Error())
		case rest != "":
			p.Message, inline.queue = rest, d
			return false, nil
		}
		text, err := g.queueCommand(ctx, ref, d)
		if err != nil {
			return true, err
		}
		return true, g.notice(ctx, r, ref, hash, p.IdempotencyKey, text)
	}
	reason, rest := resetCommand(p.Message)
	if reason == "" {
		return false, nil
	}
	if !r.Admin() {
		return true, protocol.MissingScope(protocol.ScopeAdmin)
	}
	p.Message = rest
	st, again, err := g.startOver(ctx, ref, over{methodChat, p.IdempotencyKey, hash, reason, rest})
	switch {
	case err != nil:
		return true, err
	case rest != "":
		inline.over = true
		return false, nil
	case again:
		return true, g.afterSend(ctx, r, lane.Accepted{Status: st, Repeat: true}, conflict(st, hash))
	}
	return true, g.tellNotice(r, ref, st)
}

// resetFirst starts the session over for an agent call that begins with a command.
// Where that was all of it, the call has ended and is answered at once; its record
// is kept like that of any run (A3).
func (g *Gateway) resetFirst(ctx context.Context, r *Request, ref session.Ref, runID, hash, reason, text string) (done bool, err error) {
	st, again, err := g.startOver(ctx, ref, over{r.Method, runID, hash, reason, text})
	switch {
	case err != nil:
		return true, err
	case text != "":
		return false, nil
	case again:
		return true, g.afterAccept(ctx, r, lane.Accepted{Status: st, Repeat: true}, conflict(st, hash))
	}
	return true, g.replyFinal(r, st)
}

// conflict is the error of a key that is known for another request.
func conflict(st run.Status, hash string) error {
	if st.RequestHash != hash {
		return &lane.ConflictError{Method: st.Method}
	}
	return nil
}

// over is a call that starts a session over.
type over struct {
	method, runID, hash string
	reason              string
	text                string // what is to run afterwards; empty: nothing
}

// startOver stops what the session does and begins it anew, once for a key: again
// says that the key was known, and st is its record. Without a text to run, the
// record of the call is written with the reset, in one transaction.
func (g *Gateway) startOver(ctx context.Context, ref session.Ref, o over) (st run.Status, again bool, err error) {
	st, err = run.Load(ctx, g.Store, run.RefOf(ref.Tenant, o.runID))
	if err == nil {
		return st, true, nil
	}
	if !errors.Is(err, run.ErrUnknown) {
		return st, false, err
	}
	var more []table.Op
	if o.text == "" {
		if st, more, err = g.noticed(ref, o); err != nil {
			return st, false, err
		}
	}
	err = g.stopAndReset(ctx, ref, o.reason, stopStop, o.runID, more...)
	if errors.Is(err, table.ErrCondition) || errors.Is(err, lane.ErrKnown) || errors.Is(err, claim.ErrBusy) {
		// A call with the same key may have been faster: what it began goes on.
		st, known := run.Load(ctx, g.Store, run.RefOf(ref.Tenant, o.runID))
		if !errors.Is(known, run.ErrUnknown) {
			return st, true, known
		}
	}
	if err == nil {
		g.announce(ctx, ref, o.reason)
	}
	return st, false, err
}

// noticed is the record of a call that only started a session over, ended with a
// notice, and the op that writes it.
func (g *Gateway) noticed(ref session.Ref, o over) (run.Status, []table.Op, error) {
	now := g.Clock.Now()
	text := o.text
	if o.reason != "" {
		text = resetNotices[o.reason]
	}
	st := run.Status{
		Ref: run.RefOf(ref.Tenant, o.runID), RunID: o.runID, SessionKey: ref.Key, AgentID: session.AgentOf(ref.Key), Method: o.method,
		RequestHash: o.hash, WriteID: g.NewID(), State: run.Ended, AcceptedAt: now.UnixMilli(), StartedAt: now.UnixMilli(), EndedAt: now.UnixMilli(),
		ExpiresAt: now.Add(run.Keep).Unix(), Disposition: run.Disposition{Kind: "started"},
		Outcome: &run.Outcome{Kind: run.OK, StopReason: protocol.StopDone, Payloads: []run.Payload{{Text: text, Notice: true}}, Text: text},
	}
	item, err := st.Item()
	if err != nil {
		return st, nil, err
	}
	return st, []table.Op{{Kind: table.Put, Key: st.StatusKey(), Item: item, If: table.NotExists()}}, nil
}

// resetCommand splits a message that begins with /new or /reset. The reason is empty
// where it does not.
func resetCommand(message string) (reason, rest string) {
	message = strings.TrimSpace(message)
	word := message
	if i := strings.IndexFunc(message, unicode.IsSpace); i >= 0 {
		word, rest = message[:i], strings.TrimSpace(message[i:])
	}
	switch strings.ToLower(word) {
	case "/new":
		return reasonNew, rest
	case "/reset":
		return reasonReset, rest
	}
	return "", ""
}

// stopWords stop what a session does when they are the whole message.
var stopWords = map[string]bool{
	"/stop": true, "stop": true, "esc": true, "abort": true, "exit": true, "interrupt": true, "halt": true,
	"please stop": true, "stop please": true, "stop run": true,
	"stopp": true, "anhalten": true, "abbrechen": true, // German
	"arrête": true, "arrete": true, // French
	"detente": true, "detén": true, "deten": true, // Spanish
	"pare": true, "parar": true, // Portuguese
	"fermati": true,                                                  // Italian
	"стоп":    true,                                                  // Russian
	"停止":      true, "停": true, "停下": true, "やめて": true, "止めて": true, //nolint:gosmopolitan // Chinese, Japanese: what users type
	"중지": true, "멈춰": true, // Korean
	"توقف": true, // Arabic
	"रुको": true, // Hindi
}

// isStop says whether a message is nothing but a stop word.
func isStop(message string) bool {
	word := strings.TrimRightFunc(strings.TrimSpace(message), func(c rune) bool { return unicode.IsPunct(c) || unicode.IsSpace(c) })
	return stopWords[strings.ToLower(word)]
}

// lastWrite bounds writes that are still made when their call's context has ended.
const lastWrite = 5 * time.Second
