package rpc

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"laneway/shared/lane"
	"laneway/shared/queueing"
	"laneway/shared/session"
	"laneway/shared/setting"
)

// queueDirective reads a /queue command at the start of a message. rest is what
// follows it; an error is a text for the user.
func queueDirective(message string) (d queueing.Words, rest string, found bool, err error) {
	message = strings.TrimSpace(message)
	word, after := cutWord(message)
	if name, _, colon := strings.Cut(word, ":"); colon { // "/queue:collect", as of any directive
		word, after = name, strings.TrimSpace(message[len(name)+1:])
	}
	if strings.ToLower(word) != "/queue" {
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
		return d, "", true, fmt.Errorf("Unrecognized queue mode %q. Valid %s.", setting.Clip(word), queueing.Options) //nolint:staticcheck,revive // a text for a person
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

// queueText answers /queue as a message of its own with the settings that hold.
func (g *Gateway) queueText(ref session.Ref, e session.Entry, changed bool) string {
	head := "Current queue settings: "
	if changed {
		head = "⚙️ Queue settings: "
	}
	r := g.entryRules(ref, e)
	return fmt.Sprintf("%smode=%s, debounce=%dms, cap=%d, drop=%s. Valid %s.", head, r.Mode, r.Debounce, r.Cap, r.Drop, queueing.Options)
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
