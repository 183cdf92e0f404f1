package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/queueing"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/setting"
	"laneway/shared/table"
)

// queueDirective reads a /queue command at the start of a message. rest is what
// follows it; an error is a text for the user.
func queueDirective(message string) (d queueing.Words, rest string, found bool, err error) {
	word, after := cutWord(strings.TrimSpace(message))
	if strings.ToLower(strings.TrimSuffix(word, ":")) != "/queue" {
		return d, "", false, nil
	}
	rest = after
	for rest != "" {
		word, after := cutWord(rest)
		used, err := d.Take(word)
		if err != nil {
			return d, "", true, err
		}
		if !used {
			break
		}
		rest = after
	}
	if !d.Any && rest != "" {
		word, _ := cutWord(rest)
		return d, "", true, fmt.Errorf("Unrecognized queue mode %q. Valid %s.", clipWord(word), queueing.Options) //nolint:staticcheck,revive // a text for a person
	}
	return d, rest, true, nil
}

func cutWord(s string) (word, rest string) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

func clipWord(s string) string { return setting.Clip(s) }

// rules are the settings that hold for a message: what it says itself, then the
// session's, then the gateway's.
func (g *Gateway) rules(ctx context.Context, ref session.Ref, mode string, d queueing.Words) (lane.Rules, error) {
	e, err := session.LoadEntry(ctx, g.Store, ref)
	if err != nil {
		return lane.Rules{}, err
	}
	r := d.Over(g.entryRules(ref, e))
	r.Mode = orElse(mode, r.Mode)
	return r, nil
}

// entryRules are the settings of a session over those of the gateway for its channel. A
// stored value that nobody knows any more does not hold.
func (g *Gateway) entryRules(ref session.Ref, e session.Entry) lane.Rules {
	r := g.Queue.For(session.PlaceOf(ref.Key).Channel)
	r.Mode = orElse(queueing.StoredMode(e.QueueMode), r.Mode)
	r.Drop = orElse(queueing.StoredDrop(e.QueueDrop), r.Drop)
	if e.QueueDebounce != nil && *e.QueueDebounce >= 0 {
		r.Debounce = *e.QueueDebounce
	}
	if e.QueueCap != nil && *e.QueueCap >= 1 {
		r.Cap = int(min(*e.QueueCap, session.MaxPending))
	}
	return r
}

// queueCommand serves /queue as a message of its own: it shows, changes or resets
// the session's settings, and gives the answer.
func (g *Gateway) queueCommand(ctx context.Context, ref session.Ref, d queueing.Words) (string, error) {
	e, err := session.LoadEntry(ctx, g.Store, ref)
	if err != nil {
		return "", err
	}
	head := "Current queue settings: "
	if d.Any {
		head = "⚙️ Queue settings: "
		e, err = session.UpdateEntry(ctx, g.Store, ref, func(e *session.Entry) error {
			keepQueue(e, &d)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	r := g.entryRules(ref, e)
	return fmt.Sprintf("%smode=%s, debounce=%dms, cap=%d, drop=%s. Valid %s.", head, r.Mode, r.Debounce, r.Cap, r.Drop, queueing.Options), nil
}

// keepQueue writes what a /queue command says into a session's preferences.
func keepQueue(e *session.Entry, d *queueing.Words) {
	if d.Reset {
		e.QueueMode, e.QueueDrop, e.QueueDebounce, e.QueueCap = "", "", nil, nil
	}
	e.QueueMode, e.QueueDrop = orElse(d.Mode, e.QueueMode), orElse(d.Drop, e.QueueDrop)
	if d.Debounce != nil {
		e.QueueDebounce = d.Debounce
	}
	if d.Cap != nil {
		e.QueueCap = d.Cap
	}
}

// notice answers a chat message that was a command with a text: as a run that has
// ended, so that a repeat of its key is answered the same.
func (g *Gateway) notice(ctx context.Context, r *Request, ref session.Ref, hash, runID, text string) error {
	st, ops, err := g.noticed(ref, over{method: methodChat, runID: runID, hash: hash, text: text})
	if err != nil {
		return err
	}
	_, err = g.Store.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		if st, err = run.Load(ctx, g.Store, run.RefOf(ref.Tenant, runID)); err != nil {
			return err
		}
		return g.afterSend(ctx, r, lane.Accepted{Status: st, Repeat: true}, conflict(st, hash))
	}
	if err != nil {
		return err
	}
	return g.tellNotice(r, ref, st)
}

// tellNotice answers chat.send and sends the one event of its run.
func (g *Gateway) tellNotice(r *Request, ref session.Ref, st run.Status) error {
	if err := r.Reply(protocol.ChatSent{RunID: st.RunID, Status: protocol.StatusStarted}); err != nil {
		return err
	}
	b, err := protocol.AppendEvent(nil, protocol.EventChat, protocol.ChatFinal{
		Chat:    protocol.Chat{RunID: st.RunID, SessionKey: ref.Key, AgentID: st.AgentID, Seq: 1, State: protocol.ChatStateFinal},
		Message: protocol.AssistantMessage(st.Outcome.Text, st.EndedAt),
	})
	if err != nil {
		return err
	}
	r.frame.Send(b)
	return nil
}
