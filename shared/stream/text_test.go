package stream

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// seeded gives a source and prints its seed when the test fails.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// anyText is text of all the kinds that JSON treats differently.
func anyText(r *rand.Rand, n int) string {
	kinds := []string{"a", "word ", "\\", `"`, "\n", "\x01", "é", "\u8a9e", "👩‍👩‍👧‍👦", "\u2028", "<b>", "\\\\\\", `\u0041`, "\t"}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(kinds[r.IntN(len(kinds))])
	}
	return b.String()
}

func unquote(t *testing.T, b []byte) string {
	t.Helper()
	var s string
	if err := json.Unmarshal([]byte(`"`+string(b)+`"`), &s); err != nil {
		t.Fatalf("%q is no text: %v", b, err)
	}
	return s
}

func TestF30f_TextIsCutBetweenRunesOnly(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	for range 200 {
		s := anyText(r, 1+r.IntN(120))
		b := appendEscaped(nil, s)
		if got := unquote(t, b); got != s {
			t.Fatalf("escaped %q became %q", s, got)
		}
		for at := 0; at <= len(b); at++ {
			cut := safeCut(b, at)
			if cut > at || at-cut > 6 {
				t.Fatalf("cut of %q at %d is at %d", b, at, cut)
			}
			if got := unquote(t, b[:cut]) + unquote(t, b[cut:]); got != s {
				t.Fatalf("halves of %q at %d are %q", s, cut, got)
			}
		}
	}
}
