package queueing

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"laneway/shared/session"
	"laneway/shared/setting"
)

// Words is what /queue, or a setting, says; an empty or nil field says nothing.
type Words struct {
	Mode, Drop string
	Debounce   *int64 // ms
	Cap        *int64
	Reset      bool // back to what holds without
	Any        bool // it says something at all
}

// What is understood, with other spellings.
var (
	modes = map[string]string{
		"steer": Steer, "steering": Steer,
		"followup": Followup, "follow-up": Followup, "follow-ups": Followup, "followups": Followup,
		"collect": Collect, "coalesce": Collect,
		"interrupt": Interrupt, "interrupts": Interrupt, "abort": Interrupt,
	}
	drops = map[string]string{
		"old": DropOld, "oldest": DropOld, "new": DropNew, "newest": DropNew,
		"summarize": DropSummarize, "summary": DropSummarize,
	}
	// Modes that older versions stored.
	legacy = map[string]string{
		"queue": Steer, "queued": Steer,
		"steer+backlog": Followup, "steer-backlog": Followup, "steer_backlog": Followup,
	}
)

const (
	// Options says what /queue takes.
	Options = options + "; default to reset"
	options = "modes: steer, followup, collect, interrupt; options: debounce:<duration>, cap:<n>, drop:old|new|summarize"
)

// MaxDebounce bounds how long a message waits for others.
const MaxDebounce = 24 * time.Hour

// Take reads one word; used is false for a word that is not one. An error is a text for
// a person.
func (w *Words) Take(word string) (used bool, err error) {
	low := strings.ToLower(word)
	i := strings.IndexAny(low, ":=")
	if i < 0 {
		switch mode, ok := modes[low]; {
		case low == "default" || low == "reset" || low == "clear":
			w.Reset = true
		case ok && w.Mode == "":
			w.Mode = mode
		default:
			return false, nil
		}
		w.Any = true
		return true, nil
	}
	name, value := low[:i], low[i+1:]
	switch name {
	case "debounce":
		ms, ok := Milliseconds(value)
		if !ok {
			return true, fmt.Errorf("Invalid debounce %q. Use a duration such as debounce:500ms, debounce:2s or debounce:0.5s.", setting.Clip(value)) //nolint:staticcheck,revive // a text for a person
		}
		w.Debounce = &ms
	case "cap":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > session.MaxPending {
			return true, fmt.Errorf("Invalid cap %q. Use a whole number from 1 to %d, such as cap:20.", setting.Clip(value), session.MaxPending) //nolint:staticcheck,revive // a text for a person
		}
		w.Cap = &n
	case "drop":
		drop, ok := drops[value]
		if !ok {
			return true, fmt.Errorf("Invalid drop policy %q. Use drop:old, drop:new or drop:summarize.", setting.Clip(value)) //nolint:staticcheck,revive // a text for a person
		}
		w.Drop = drop
	default:
		return false, nil
	}
	w.Any = true
	return true, nil
}

// Over is what holds where the words say nothing.
func (w *Words) Over(r Rules) Rules {
	r.Mode, r.Drop = cmp.Or(w.Mode, r.Mode), cmp.Or(w.Drop, r.Drop)
	if w.Debounce != nil {
		r.Debounce = *w.Debounce
	}
	if w.Cap != nil {
		r.Cap = int(*w.Cap)
	}
	return r
}

// Milliseconds reads a duration as users write it: a bare number is milliseconds. It is
// false for what is none, or is longer than MaxDebounce.
func Milliseconds(s string) (int64, bool) {
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
	if err != nil || math.IsNaN(n) || n < 0 || n*unit > float64(MaxDebounce.Milliseconds()) {
		return 0, false
	}
	return int64(n * unit), true
}

// StoredMode is a mode as sessions have stored it, also by older versions; empty for
// one that nobody knows any more.
func StoredMode(stored string) string {
	low := strings.ToLower(stored)
	return cmp.Or(legacy[low], modes[low])
}

// StoredDrop is the same of a policy.
func StoredDrop(stored string) string { return drops[strings.ToLower(stored)] }
