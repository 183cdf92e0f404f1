// Package queueing is the settings that say what becomes of a message which comes while
// its session is at work, and how they are written (spec: runtime 2.2).
//
// Guarantees: settings that Parse accepted give rules that hold for every channel; the
// package reads nothing, so that whoever only checks settings brings nothing along.
package queueing

import (
	"cmp"
	"strings"
)

// The queue modes: what becomes of a message that comes while a run is at work.
const (
	Steer     = "steer"     // into the running turn, at its next boundary
	Followup  = "followup"  // a turn of its own, later
	Collect   = "collect"   // with others that wait, one turn
	Interrupt = "interrupt" // ends what runs and waits
)

// The policies for a message that finds the queue full.
const (
	DropNew       = "new"       // it is refused
	DropOld       = "old"       // the oldest go
	DropSummarize = "summarize" // the oldest become lines of a summary, which is a turn
)

// Rules are the settings that hold for a message.
type Rules struct {
	Mode     string
	Debounce int64 // ms
	Cap      int   // messages that wait
	Drop     string
}

// Default holds where nobody says otherwise.
var Default = Rules{Mode: Steer, Debounce: 500, Cap: 20, Drop: DropSummarize}

// Settings are those of a gateway, by channel. The zero value is Default everywhere.
type Settings struct {
	Base      Rules             // zero: Default
	Modes     map[string]string // by channel, lower-cased
	Debounces map[string]int64  // ms, likewise
}

// For are the rules of a channel. Limits of the queue are the same in all channels.
func (s Settings) For(channel string) Rules {
	r := cmp.Or(s.Base, Default)
	channel = strings.ToLower(channel)
	if mode, ok := s.Modes[channel]; ok {
		r.Mode = mode
	}
	if ms, ok := s.Debounces[channel]; ok {
		r.Debounce = ms
	}
	return r
}
