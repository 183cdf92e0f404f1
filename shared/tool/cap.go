package tool

import (
	"fmt"
	"strings"

	"laneway/shared/chars"
	"laneway/shared/model"
)

// Caps of a result in the transcript, in chars.
const (
	capSmall  = 16_000 // windows under 100,000 tokens, and unknown ones
	capMiddle = 32_000 // from 100,000
	capLarge  = 64_000 // from 200,000
	capLeast  = 2000   // however small the window
)

// TranscriptCap is how many chars of one result the model is given, by its context
// window in tokens (0: unknown): a fixed step, but never more than 30 % of the
// window at four chars a token.
func TranscriptCap(contextWindow int) int {
	limit := capSmall
	switch {
	case contextWindow >= 200_000:
		limit = capLarge
	case contextWindow >= 100_000:
		limit = capMiddle
	}
	if contextWindow > 0 {
		limit = min(limit, contextWindow*4*30/100)
	}
	return max(limit, capLeast)
}

// CapResult cuts the text of a result to at most limit chars in all, the notice
// about the rest included, and makes it valid UTF-8. Images are not counted. The
// result that was given is not changed.
func CapResult(r Result, limit int) Result {
	total := 0
	clean := make([]model.Block, len(r.Content))
	for i, b := range r.Content {
		if b.Type == model.Text {
			b.Text = strings.ToValidUTF8(b.Text, "\uFFFD")
			total += chars.Count(b.Text)
		}
		clean[i] = b
	}
	r.Content = clean
	if total <= limit {
		return r
	}
	notice := func(more int) string {
		return fmt.Sprintf("\n[... %d more characters truncated; rerun with narrower args if needed]", more)
	}
	room := max(limit-chars.Count(notice(total)), 0) // no smaller number is longer
	left := room
	kept := make([]model.Block, 0, len(clean))
	last := -1 // the last block with text
	for _, b := range clean {
		if b.Type == model.Text {
			b.Text = chars.Head(b.Text, left)
			if b.Text == "" && last >= 0 {
				continue
			}
			left -= chars.Count(b.Text)
			last = len(kept)
		}
		kept = append(kept, b)
	}
	kept[last].Text += notice(total - (room - left))
	r.Content = kept
	return r
}
