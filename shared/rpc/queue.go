package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// directive is what a /queue command says; a nil field says nothing.
type directive struct {
	mode, drop string
	debounce   *int64 // ms
	limit      *int64
	reset      bool // back to the defaults
	any        bool // it says something at all
}

// What /queue takes, with other spellings (spec: runtime 2.2).
var (
	queueModes = map[string]string{
		"steer": lane.Steer, "steering": lane.Steer,
		"followup": lane.Followup, "follow-up": lane.Followup, "follow-ups": lane.Followup, "followups": lane.Followup,
		"collect": lane.Collect, "coalesce": lane.Collect,
		"interrupt": lane.Interrupt, "interrupts": lane.Interrupt, "abort": lane.Interrupt,
	}
	queueDrops = map[string]string{
		"old": lane.DropOld, "oldest": lane.DropOld, "new": lane.DropNew, "newest": lane.DropNew,
		"summarize": lane.DropSummarize, "summary": lane.DropSummarize,
	}
	// Modes that older versions stored.
	legacyModes = map[string]string{
		"queue": lane.Steer, "queued": lane.Steer,
		"steer+backlog": lane.Followup, "steer-backlog": lane.Followup, "steer_backlog": lane.Followup,
	}
)

const (
	queueOptions = "modes: steer, followup, collect, interrupt; options: debounce:<duration>, cap:<n>, drop:old|new|summarize; default to reset"
	maxDebounce  = 24 * time.Hour
)

// queueDirective reads a /queue command at the start of a message. rest is what
// follows it; an error is a text for the user.
func queueDirective(message string) (d directive, rest string, found bool, err error) {
	word, after := cutWord(strings.TrimSpace(message))
	if strings.ToLower(strings.TrimSuffix(word, ":")) != "/queue" {
		return d, "", false, nil
	}
	rest = after
	for rest != "" {
		word, after := cutWord(rest)
		used, err := d.take(word)
		if err != nil {
			return d, "", true, err
		}
		if !used {
			break
		}
		rest = after
	}
	if !d.any && rest != "" {
		word, _ := cutWord(rest)
		return d, "", true, fmt.Errorf("Unrecognized queue mode %q. Valid %s.", clipWord(word), queueOptions) //nolint:staticcheck,revive // a text for a person
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

func clipWord(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// take reads one word of a directive; used is false for a word that is not one.
func (d *directive) take(word string) (used bool, err error) {
	low := strings.ToLower(word)
	i := strings.IndexAny(low, ":=")
	if i < 0 {
		switch mode, ok := queueModes[low]; {
		case low == "default" || low == "reset" || low == "clear":
			d.reset = true
		case ok && d.mode == "":
			d.mode = mode
		default:
			return false, nil
		}
		d.any = true
		return true, nil
	}
	name, value := low[:i], low[i+1:]
	switch name {
	case "debounce":
		ms, ok := durationMs(value)
		if !ok {
			return true, fmt.Errorf("Invalid debounce %q. Use a duration such as debounce:500ms, debounce:2s or debounce:0.5s.", clipWord(value)) //nolint:staticcheck,revive // a text for a person
		}
		d.debounce = &ms
	case "cap":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > session.MaxPending {
			return true, fmt.Errorf("Invalid cap %q. Use a whole number from 1 to %d, such as cap:20.", clipWord(value), session.MaxPending) //nolint:staticcheck,revive // a text for a person
		}
		d.limit = &n
	case "drop":
		drop, ok := queueDrops[value]
		if !ok {
			return true, fmt.Errorf("Invalid drop policy %q. Use drop:old, drop:new or drop:summarize.", clipWord(value)) //nolint:staticcheck,revive // a text for a person
		}
		d.drop = drop
	default:
		return false, nil
	}
	d.any = true
	return true, nil
}

// durationMs reads a duration as users write it: a bare number is milliseconds.
func durationMs(s string) (int64, bool) {
	unit := float64(1)
	for _, u := range []struct {
		suffix string
		ms     float64
	}{{"ms", 1}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}, {"d", 86_400_000}} {
		if n, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = n, u.ms
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*unit > float64(maxDebounce.Milliseconds()) {
		return 0, false
	}
	return int64(n * unit), true
}

// rules are the settings that hold for a message: what it says itself, then the
// session's, then the gateway's.
func (g *Gateway) rules(ctx context.Context, ref session.Ref, mode string, d directive) (lane.Rules, error) {
	e, err := session.LoadEntry(ctx, g.Store, ref)
	if err != nil {
		return lane.Rules{}, err
	}
	r := d.over(g.entryRules(e))
	r.Mode = orElse(mode, r.Mode)
	return r, nil
}

// entryRules are the settings of a session over those of the gateway. A stored value
// that nobody knows any more does not hold.
func (g *Gateway) entryRules(e session.Entry) lane.Rules {
	r := g.Queue
	stored := strings.ToLower(e.QueueMode)
	if m, ok := legacyModes[stored]; ok {
		r.Mode = m
	} else if m, ok := queueModes[stored]; ok {
		r.Mode = m
	}
	if d, ok := queueDrops[strings.ToLower(e.QueueDrop)]; ok {
		r.Drop = d
	}
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
func (g *Gateway) queueCommand(ctx context.Context, ref session.Ref, d directive) (string, error) {
	e, err := session.LoadEntry(ctx, g.Store, ref)
	if err != nil {
		return "", err
	}
	head := "Current queue settings: "
	if d.any {
		head = "⚙️ Queue settings: "
		e, err = session.UpdateEntry(ctx, g.Store, ref, func(e *session.Entry) error {
			d.keep(e)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	r := g.entryRules(e)
	return fmt.Sprintf("%smode=%s, debounce=%dms, cap=%d, drop=%s. Valid %s.", head, r.Mode, r.Debounce, r.Cap, r.Drop, queueOptions), nil
}

// keep writes what a /queue command says into a session's preferences.
func (d *directive) keep(e *session.Entry) {
	if d.reset {
		e.QueueMode, e.QueueDrop, e.QueueDebounce, e.QueueCap = "", "", nil, nil
	}
	e.QueueMode, e.QueueDrop = orElse(d.mode, e.QueueMode), orElse(d.drop, e.QueueDrop)
	if d.debounce != nil {
		e.QueueDebounce = d.debounce
	}
	if d.limit != nil {
		e.QueueCap = d.limit
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
