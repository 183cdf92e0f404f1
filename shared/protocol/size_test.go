package protocol

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// randomText mixes runes of all lengths and characters that need escapes.
func randomText(r *rand.Rand, runes int) string {
	alphabet := []rune("ab <&\"\\\n\t\x00\x1f\u2028éß\u65e5\u672c𝔘👧\ufffd")
	out := make([]rune, runes)
	for i := range out {
		out[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(out)
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func TestF30f_TextIsCutBetweenRunesByEncodedSize(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	for range 300 {
		s := randomText(r, r.IntN(200))
		limit := 6 + r.IntN(300)
		head, cut := TrimText(s, limit)
		if !strings.HasPrefix(s, head) || cut != (head != s) || EncodedLen(head) > limit || !utf8.ValidString(head) {
			t.Fatalf("TrimText(%q, %d) = %q, %v", s, limit, head, cut)
		}
		if cut {
			next, n := utf8.DecodeRuneInString(s[len(head):])
			if EncodedLen(head)+escapedLen(next, n) <= limit {
				t.Fatalf("TrimText(%q, %d) = %q is not the longest", s, limit, head)
			}
		}
	}
}

func TestF30f_FramesFitWhateverTheTextIs(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	for range 40 {
		s := randomText(r, r.IntN(3000))
		limit := 400 + r.IntN(2000)
		var last string
		frame, err := FitFrame(limit, s, func(text string, cut bool) ([]byte, error) {
			last = text
			notice := ""
			if cut {
				notice = " (cut; the history has it whole)"
			}
			return AppendEvent(nil, EventChat, ChatDelta{
				Chat: Chat{RunID: "run", SessionKey: "agent:main:x", Seq: 3, State: ChatStateDelta},
				// The text is there twice, as in a first delta.
				DeltaText: text, Message: AssistantMessage(text+notice, 1),
			})
		})
		if err != nil || len(frame) > limit || !strings.HasPrefix(s, last) {
			t.Fatalf("limit %d: %d bytes, %v", limit, len(frame), err)
		}
		mustBeFrame(t, frame)
	}
}

func TestFitFrame_SaysWhenNothingHelps(t *testing.T) {
	t.Parallel()
	encode := func(text string, _ bool) ([]byte, error) { return []byte(strings.Repeat("x", 50) + text), nil }
	if _, err := FitFrame(40, "abc", encode); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if _, err := FitFrame(40, "", encode); !errors.Is(err, ErrTooLarge) {
		t.Errorf("without text: got %v", err)
	}
	broken := errors.New("broken")
	if _, err := FitFrame(40, "abc", func(string, bool) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if b, err := FitFrame(53, "abc", encode); err != nil || len(b) != 53 {
		t.Errorf("exact fit: %d, %v", len(b), err)
	}
}

// The fast way over plain text stops exactly where a byte needs a closer look, wherever
// in a word it is.
func TestPlainLen_StopsAtTheFirstSpecialByte(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		special := c < ' ' || c == '"' || c == '\\' || c >= 0x80
		for at := range 20 {
			for _, behind := range []string{"", "\x00", "\xff", "\"", "plain and more"} {
				s := strings.Repeat("a", at) + string([]byte{byte(c)}) + behind
				want := at
				switch {
				case special:
				case strings.HasPrefix(behind, "plain"):
					want = len(s)
				default:
					want = at + 1
				}
				if got := plainLen(s); got != want {
					t.Fatalf("byte %#x at %d before %q: %d, want %d", c, at, behind, got, want)
				}
			}
		}
	}
}
