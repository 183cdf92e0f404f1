package protocol

import (
	"errors"
	"math/bits"
	"unicode/utf8"
)

// Frame sizes in bytes.
const (
	// MaxFrameOut is what a frame that we send may measure. API Gateway takes 128 KB;
	// the rest is room for what it adds.
	MaxFrameOut = 120 << 10
	// MaxMessageIn and MaxFirstMessage are the stock gateway's limits after and
	// before hello.
	MaxMessageIn    = 25 << 20
	MaxFirstMessage = 64 << 10
	// MaxMessageInAPIGateway is API Gateway's limit of one frame; clients send a
	// message as one.
	MaxMessageInAPIGateway = 32 << 10
)

// ErrTooLarge says that a frame is over the limit even without its text.
var ErrTooLarge = errors.New("protocol: frame too large")

// escapedLen is what a rune of n bytes takes in a JSON string.
func escapedLen(r rune, n int) int {
	switch {
	case r == '"' || r == '\\':
		return 2
	case r < ' ':
		switch r {
		case '\b', '\f', '\n', '\r', '\t':
			return 2
		}
		return 6
	case r == '\u2028' || r == '\u2029', r == utf8.RuneError && n == 1:
		return 6
	}
	return n
}

// EncodedLen is the size in bytes of s in a frame, without the quotes. A byte that
// is not UTF-8 counts as the six bytes of its replacement.
func EncodedLen(s string) int {
	total := 0
	for len(s) > 0 {
		if s[0] < utf8.RuneSelf {
			if n := plainLen(s); n > 0 {
				total += n
				s = s[n:]
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(s)
		total += escapedLen(r, n)
		s = s[n:]
	}
	return total
}

// plainLen is how many bytes at the start of s are ASCII characters that stand for
// themselves in a JSON string. It looks at eight at once: all text that is streamed,
// stored or sent to a model goes through here.
func plainLen(s string) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		w := s[i : i+8]
		v := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		// The high bit of each byte: is it a control character, a quote, a backslash, or
		// not ASCII? A borrow can mark a byte wrongly, but only behind a right one.
		quote, slash := v^(ones*'"'), v^(ones*'\\')
		special := ((v-ones*' ')&^v | (quote-ones)&^quote | (slash-ones)&^slash | v) & high
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// TrimText gives the longest start of s, cut between runes, whose encoded size is
// at most limit, and whether anything was cut.
func TrimText(s string, limit int) (kept string, cut bool) {
	total := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if total += escapedLen(r, n); total > limit {
			return s[:i], true
		}
		i += n
	}
	return s, false
}

// FitFrame encodes a frame around text, and encodes it once more with less text if
// it came out larger than limit. encode gets what is kept of the text (its start)
// and whether it was cut, so that it can say so; more text must not make a smaller
// frame. ErrTooLarge if the frame does not fit even without text.
func FitFrame(limit int, text string, encode func(text string, cut bool) ([]byte, error)) ([]byte, error) {
	frame, err := encode(text, false)
	if err != nil || len(frame) <= limit {
		return frame, err
	}
	// The notice of the cut may itself take room, so a second round may be needed;
	// each takes off at least what was over.
	kept := text
	for kept != "" {
		kept, _ = TrimText(kept, max(0, EncodedLen(kept)-(len(frame)-limit)))
		if frame, err = encode(kept, true); err != nil || len(frame) <= limit {
			return frame, err
		}
	}
	return nil, ErrTooLarge
}
