package modeltest

import (
	"math/rand/v2"
	"strings"
)

// Damage takes one of the streams and breaks it in a few places: pieces are cut
// out, doubled, swapped with those of another stream, or replaced.
func Damage(rnd *rand.Rand, streams []string) string {
	s := streams[rnd.IntN(len(streams))]
	for range 1 + rnd.IntN(4) {
		if s == "" {
			return s
		}
		from := rnd.IntN(len(s))
		to := from + rnd.IntN(len(s)-from+1)
		other := streams[rnd.IntN(len(streams))]
		switch rnd.IntN(5) {
		case 0: // cut
			s = s[:from]
		case 1: // a piece is missing
			s = s[:from] + s[to:]
		case 2: // a piece comes twice
			s = s[:to] + s[from:]
		case 3: // goes on as another stream
			s = s[:from] + other[rnd.IntN(len(other)):]
		case 4: // a value of another type
			values := []string{"null", "0", "[]", "{}", `""`, "true", "1e999", "\n", "\n\n"}
			if i := strings.IndexAny(s[from:], `"{[0123456789`); i >= 0 {
				s = s[:from+i] + values[rnd.IntN(len(values))] + s[from+i+1:]
			}
		}
	}
	return s
}
