package reply

import (
	"strings"
	"unicode"

	"laneway/shared/chars"
)

const (
	duplicateLeast = 10  // chars after normalising; shorter texts are never duplicates
	sentHistory    = 200 // texts that are remembered
)

// Target is where a message went or a run came from. Empty fields are not known.
type Target struct {
	Channel string `json:"channel,omitempty"`
	Account string `json:"account,omitempty"`
	To      string `json:"to,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

// Sent is a message that a tool has delivered; a failed one must not be recorded.
// A nil Target means that the tool named none: the run's own conversation.
type Sent struct {
	Text   string  `json:"text"`
	Target *Target `json:"target,omitempty"`
}

// Duplicate says whether a reply only repeats what a messaging tool has already
// sent to the place that the run came from.
func Duplicate(text string, origin Target, sent []Sent) bool {
	norm := normalise(text)
	if !longEnough(norm) {
		return false
	}
	for _, s := range recent(sent) {
		if s.Target != nil && *s.Target != origin {
			continue
		}
		if other := normalise(s.Text); longEnough(other) && alike(norm, other) {
			return true
		}
	}
	return false
}

// DuplicatePrefix says whether a reply that still streams could become a repetition
// of what was sent: such a piece is not shown yet.
func DuplicatePrefix(partial string, origin Target, sent []Sent) bool {
	norm := normalise(partial)
	for _, s := range recent(sent) {
		if s.Target != nil && *s.Target != origin {
			continue
		}
		if other := normalise(s.Text); longEnough(other) && strings.HasPrefix(other, norm) {
			return true
		}
	}
	return false
}

// Hold keeps a reply that streams back for as long as it may only repeat what was
// sent. Without anything sent it holds nothing.
type Hold struct {
	Sent   []Sent
	Origin Target

	held string
	open bool // it says something else: everything passes
}

// Push takes the next piece of the reply and returns what may be shown.
func (h *Hold) Push(piece string) (visible string) {
	if len(h.Sent) == 0 || h.open {
		return piece
	}
	h.held += piece
	if DuplicatePrefix(h.held, h.Origin, h.Sent) {
		return ""
	}
	h.open = true
	return h.held
}

// Flush ends the reply: what was held back is shown, unless it is a repetition.
func (h *Hold) Flush() (rest string, repeats bool) {
	if h.open || h.held == "" {
		return "", false
	}
	if Duplicate(h.held, h.Origin, h.Sent) {
		return "", true
	}
	return h.held, false
}

func recent(sent []Sent) []Sent { return sent[max(0, len(sent)-sentHistory):] }

func longEnough(norm string) bool { return chars.Count(norm) >= duplicateLeast }

// alike: equal, or one within the other and at least half as long.
func alike(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.Contains(b, a) && 2*chars.Count(a) >= chars.Count(b)
}

// normalise lowers the case, removes pictographs and joins blanks.
func normalise(text string) string {
	text = strings.Map(func(r rune) rune {
		if isEmoji(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

func isEmoji(r rune) bool {
	switch {
	case r >= 0x1F000 && r <= 0x1FAFF, r >= 0x2600 && r <= 0x27BF, r >= 0x2B00 && r <= 0x2BFF:
		return true
	case r == 0x200D, r == 0xFE0F, r == 0x20E3: // what joins and shapes them
		return true
	}
	return false
}
