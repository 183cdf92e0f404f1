// Package reply shapes what an agent says: which of its text is shown while it
// streams, and which payloads a run ends with.
//
// Guarantees: no event ever shows a piece of a silent token that turns out to be
// one, not even a single letter; what was shown is never taken back: the shown
// pieces of a text, put together, are exactly Strip of the whole, however the text
// is split; text that turns out to be ordinary is held back no longer than it can
// still become a token. All functions are pure; a Filter belongs to one message
// and one goroutine.
package reply

// Filter lets through the visible part of one assistant message as it streams. The
// zero Filter is ready. Deltas must be whole characters.
type Filter struct {
	held    string // what is neither shown nor dropped yet
	before  byte   // the last byte that was shown, 0 if none
	spoke   bool   // the text cannot become silent as a whole any more
	started bool   // the tokens at its start are dealt with
}

// Push takes the next piece of the message and returns what can be shown now.
func (f *Filter) Push(delta string) (visible string) {
	f.held += delta
	if !f.spoke && couldBecomeSilent(f.held) {
		return ""
	}
	f.spoke = true
	if !f.started {
		f.held, f.started = stripLead(f.held, false)
		if !f.started {
			return ""
		}
	}
	return f.show(trailer(f.held, f.before, false))
}

// Flush ends the message. It returns what was held back and is to be shown, and
// whether the whole message was silent. An empty message is not silent: the model
// said nothing, which is another matter.
func (f *Filter) Flush() (rest string, silent bool) {
	if !f.spoke && IsSilent(f.held) {
		f.held = ""
		return "", true
	}
	if !f.started {
		f.held, f.started = stripLead(f.held, true)
	}
	rest = f.show(trailer(f.held, f.before, true))
	f.held = ""
	return rest, false
}

func (f *Filter) show(n int) string {
	visible := f.held[:n]
	f.held = f.held[n:]
	if n > 0 {
		f.before = visible[n-1]
	}
	return visible
}
