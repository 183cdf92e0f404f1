package stream

import (
	"bytes"
	"strconv"

	"laneway/shared/protocol"
)

// separator stands between two messages in the chat text: a blank line, escaped.
const separator = `\n\n`

// maxRunText bounds the text of a run that chat deltas repeat; a run that said more
// begins a new chat text with its next message.
const maxRunText = 512 << 10

// text is everything that a run has said, as it stands in JSON strings: positions
// are counted in encoded bytes, so a delta is a copy and its size is known.
type text struct {
	buf  []byte
	base int // where the current message begins, its separator included
	from int // where its text begins
	item int // number of the message
	id   string
	// gen grows when what was said is taken back: positions of an older generation
	// mean nothing beyond base.
	gen      int
	numbered int  // up to here entries have been made
	replaced bool // the message was replaced and no entry says so yet
}

func (t *text) begin(idPrefix string) {
	t.item++
	t.base, t.from = len(t.buf), len(t.buf)
	t.numbered, t.replaced = len(t.buf), false
	t.id = idPrefix + strconv.Itoa(t.item)
}

func (t *text) append(s string) {
	if t.base > 0 && t.from == t.base {
		t.buf = append(t.buf, separator...)
		t.from = len(t.buf)
	}
	t.buf = appendEscaped(t.buf, s)
}

func (t *text) replace(s string) {
	t.gen++
	t.buf = t.buf[:t.base]
	t.from, t.numbered, t.replaced = t.base, t.base, true
	if s != "" {
		t.append(s)
	}
}

func (t *text) empty() bool   { return len(t.buf) == t.from }
func (t *text) pending() bool { return t.numbered < len(t.buf) || t.replaced }

// reset forgets what earlier messages said.
func (t *text) reset() {
	t.gen++
	t.buf, t.base, t.from, t.numbered = nil, 0, 0, 0
}

// appendEscaped appends s as it stands between the quotes of a JSON string.
func appendEscaped(dst []byte, s string) []byte {
	n := len(dst)
	dst = protocol.AppendString(dst, s)
	copy(dst[n:], dst[n+1:]) // over the opening quote
	return dst[:len(dst)-2]
}

// safeCut is the last position up to at where an encoded text may be cut: between
// runes, and not inside an escape.
func safeCut(b []byte, at int) int {
	if at >= len(b) {
		return len(b)
	}
	for at > 0 && b[at]&0xc0 == 0x80 {
		at--
	}
	const longest = 6 // \uXXXX
	i := bytes.LastIndexByte(b[max(0, at-longest+1):at], '\\')
	if i < 0 {
		return at
	}
	i += max(0, at-longest+1)
	first := i
	for first > 0 && b[first-1] == '\\' {
		first--
	}
	if (i-first)%2 == 1 {
		return at // the second half of an escaped backslash
	}
	size := 2
	if b[i+1] == 'u' {
		size = longest
	}
	if i+size > at {
		return i
	}
	return at
}
