package chars_test

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"laneway/shared/chars"
)

func TestCountIsTheUTF16Length(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, want := chars.Count(s), len(utf16.Encode([]rune(s))); got != want {
			t.Fatalf("Count(%q) = %d, want %d", s, got, want)
		}
	})
}

func TestCutsAreTheLongestWholeOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Repeat(rapid.String().Draw(t, "s"), 3)
		n := rapid.IntRange(0, 40).Draw(t, "n")
		head, tail := chars.Head(s, n), chars.Tail(s, n)
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) {
			t.Fatalf("%q, %q are no ends of %q", head, tail, s)
		}
		for _, cut := range []string{head, tail} {
			if chars.Count(cut) > n || !utf8.ValidString(cut) {
				t.Fatalf("cut %q of %q to %d", cut, s, n)
			}
			// At most one unit is given away: half of a pair.
			if len(cut) < len(s) && chars.Count(cut) < n-1 {
				t.Fatalf("cut %q of %q to %d is too short", cut, s, n)
			}
		}
		if chars.Fits(s, n) != (chars.Count(s) <= n) {
			t.Fatalf("Fits(%q, %d)", s, n)
		}
	})
}

func TestHeadNeverSplitsASurrogatePair(t *testing.T) {
	t.Parallel()
	if got := chars.Head("a😀b", 2); got != "a" {
		t.Errorf("Head = %q", got)
	}
	if got := chars.Tail("a😀b", 2); got != "b" {
		t.Errorf("Tail = %q", got)
	}
	if got := chars.Head("a😀b", 3); got != "a😀" {
		t.Errorf("Head = %q", got)
	}
}
