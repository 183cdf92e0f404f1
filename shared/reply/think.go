package reply

import (
	"strings"
	"unicode"
)

// thinkTags are the names of the tags in which models without a thinking channel
// of their own write what they think, in any case.
var thinkTags = []string{"think", "thinking", "thought", "antthinking"}

// ThinkSplitter takes the thinking out of an answer's text as it streams. It knows
// a tag only where such models put it, at the start of the message or right behind
// another such block: the same tag later in the text is what the answer talks
// about, in code for instance. The zero value is ready. Deltas must be whole
// characters.
type ThinkSplitter struct {
	held  string
	state thinkState
	tag   string // the open tag, while inside
	block strings.Builder
	some  bool // a block was closed
}

// Unclosed is what stands behind the one tag of a message that was never closed: nobody
// else is to say what such a message says. It is asked for behind Flush, and is empty
// where a block was closed.
func (s *ThinkSplitter) Unclosed() string {
	if s.state != thinkInside || s.some {
		return ""
	}
	return strings.TrimLeftFunc(s.block.String(), unicode.IsSpace)
}

type thinkState int

const (
	thinkStart  thinkState = iota // nothing but blanks so far: a tag may come
	thinkInside                   // between the tags
	thinkText                     // the answer: everything passes
)

// Push takes the next piece and returns what of it is answer and what is thinking.
// A piece of a tag is held back until it is clear that it is one.
func (s *ThinkSplitter) Push(delta string) (text, thinking string) {
	s.held += delta
	return s.run(false)
}

// Flush ends the message: what was held back is told.
func (s *ThinkSplitter) Flush() (text, thinking string) { return s.run(true) }

func (s *ThinkSplitter) run(final bool) (text, thinking string) {
	var thought strings.Builder
	for {
		switch s.state {
		case thinkText:
			text, s.held = s.held, ""
			return text, thought.String()
		case thinkInside:
			piece, closed := s.inside(final)
			thought.WriteString(piece)
			if !closed {
				s.block.WriteString(piece)
				return "", thought.String()
			}
			s.state, s.some = thinkStart, true
			s.block.Reset()
		case thinkStart:
			if !s.start(final) {
				return "", thought.String()
			}
		}
	}
}

// start looks for an opening tag. It says whether the state was decided.
func (s *ThinkSplitter) start(final bool) bool {
	body := strings.TrimLeftFunc(s.held, unicode.IsSpace)
	for _, tag := range thinkTags {
		open := "<" + tag + ">"
		switch {
		case len(body) >= len(open) && lower(body[:len(open)]) == open:
			s.state, s.tag, s.held = thinkInside, tag, body[len(open):]
			return true
		case len(body) < len(open) && strings.HasPrefix(open, lower(body)) && !final:
			return false
		}
	}
	if s.tag != "" { // the blanks between thinking and answer belong to neither
		s.held = body
	}
	s.state = thinkText
	return true
}

// inside returns the thinking up to the closing tag or to what may be its start.
func (s *ThinkSplitter) inside(final bool) (thinking string, closed bool) {
	end := "</" + s.tag + ">"
	low := lower(s.held)
	if i := strings.Index(low, end); i >= 0 {
		thinking, s.held = s.held[:i], s.held[i+len(end):]
		return thinking, true
	}
	keep := 0
	if !final {
		keep = partial(low, end)
	}
	thinking, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
	return thinking, false
}

// lower is a text with its ASCII letters lower-cased, of the same length.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// partial is the length of the longest end of s that is a beginning of tag.
func partial(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
