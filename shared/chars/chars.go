// Package chars counts and cuts text in UTF-16 code units, the unit in which
// every cap of the agent protocol is written ("chars").
//
// Guarantees: a cut never leaves half a character behind, whether half of a
// surrogate pair or part of a UTF-8 sequence; Head and Tail never return more
// units than they were asked for; nothing is allocated but the result.
package chars

import "unicode/utf8"

// Count is the length of s in UTF-16 code units. A byte that is no UTF-8 counts
// as one unit, the replacement character it becomes on the wire.
func Count(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		n += units(r)
	}
	return n
}

// Head is the longest beginning of s with at most n units.
func Head(s string, n int) string {
	if n <= 0 {
		return ""
	}
	if len(s) <= n { // a unit is never shorter than a byte
		return s
	}
	left := n
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		left -= units(r)
		if left < 0 {
			return s[:i]
		}
		i += size
	}
	return s
}

// Tail is the longest end of s with at most n units.
func Tail(s string, n int) string {
	if n <= 0 {
		return ""
	}
	if len(s) <= n {
		return s
	}
	left := n
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		left -= units(r)
		if left < 0 {
			return s[i:]
		}
		i -= size
	}
	return s
}

// Fits says whether s has at most n units, without counting a long text to its end.
func Fits(s string, n int) bool {
	return len(s) <= n || len(Head(s, n)) == len(s)
}

func units(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}
