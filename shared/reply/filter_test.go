package reply_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"laneway/shared/reply"
)

// stream pushes the deltas and returns the visible pieces.
func stream(deltas ...string) (pieces []string, silent bool) {
	var f reply.Filter
	for _, d := range deltas {
		if v := f.Push(d); v != "" {
			pieces = append(pieces, v)
		}
	}
	rest, silent := f.Flush()
	if rest != "" {
		pieces = append(pieces, rest)
	}
	return pieces, silent
}

func TestF19_NoPieceOfASilentTokenIsShown(t *testing.T) {
	t.Parallel()
	for _, deltas := range [][]string{
		{"N", "O", "_REPLY"},
		{"NO", "_RE", "PLY\n"},
		{"NO_REPLY"},
		{"N", "O", "_", "R", "E", "P", "L", "Y"},
		{" ", "NO_REPLY", " NO_", "REPLY"},
		{"**", "NO_REPLY", "**"},
		{"`NO_", "REPLY`."},
		{"no_", "reply"},
		{"{\"action\"", ": \"NO_", "REPLY\"}"},
		{"\"NO_REPLY\""},
		{"ANNOUNCE_", "SKIP"},
		{"REPLY", "_SKIP\n"},
		{"───\n", "═══"},
	} {
		if pieces, silent := stream(deltas...); len(pieces) > 0 || !silent {
			t.Errorf("%q: shown %q, silent %v", deltas, pieces, silent)
		}
	}
}

func TestF19_OrdinaryTextStreamsWhole(t *testing.T) {
	t.Parallel()
	for _, deltas := range [][]string{
		{"No", ", I cannot"},
		{"N", "ew York"},
		{"NO_REPLYING", " is a word"},
		{"NO_REPLY", "ING is a word"},
		{"NO_REPLYI", "NG is a word"},
		{"NO WAY"},
		{"NO_REPLY hello"},
		{"N"},
		{"NO_REPL"},
		{"say NO_REPLY to", " it"},
		{"a NO_REPLY."},
		{"Re", "ally"},
		{"..."},
		{"{\"action\":\"NO_REPLY\",\"x\":1}"},
		{"ANNOUNCE_SKIP it"},
		{"some **bold**", " text**"},
		{"NO_REPLY_NOW is set"},
	} {
		pieces, silent := stream(deltas...)
		if got := strings.Join(pieces, ""); got != strings.Join(deltas, "") || silent {
			t.Errorf("%q: shown %q, silent %v", deltas, pieces, silent)
		}
	}
}

// The hold is as short as the doubt: as soon as a text differs from a token, all of it is out.
func TestF19_TextIsOutAsSoonAsItDiffers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"New York", "No, I cannot", "NO_REPLYING", "Nothing", "Announce it", "Really", "Hello", "NO WAY"} {
		var f reply.Filter
		shown, longest := 0, 0
		for i := range len(text) {
			shown += len(f.Push(text[i : i+1]))
			if held := i + 1 - shown; held > longest {
				longest = held
			}
			if shown > 0 && shown < i && !strings.Contains(text[shown:i+1], " ") {
				t.Errorf("%q: %q is held back in mid-text", text, text[shown:i+1])
			}
		}
		if longest > len(reply.Silent)+1 {
			t.Errorf("%q: %d characters were held back", text, longest)
		}
	}
}

func TestStripTakesTokensFromTheEndsOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"NO_REPLYHello":                  "Hello",
		"NO_REPLYhello":                  "hello",
		"NO_REPLY2 apples":               "2 apples",
		"NO_REPLYI think":                "I think",
		"NO_REPLY\nHello":                "Hello",
		"NO_REPLY \r\n\n Hello":          "Hello",
		"**NO_REPLY**\nHello":            "Hello",
		"NO_REPLY\n" + "NO_REPLY\nHello": "Hello",
		"NO_REPLY Hello":                 "NO_REPLY Hello",
		"NO_REPLYING":                    "NO_REPLYING",
		"Hello NO_REPLY":                 "Hello",
		"Hello\n\nNO_REPLY\n":            "Hello",
		"Hello **NO_REPLY**":             "Hello",
		"Hello NO_REPLY" + " NO_REPLY":   "Hello",
		"**Hello** NO_REPLY":             "**Hello**",
		"**Hello**NO_REPLY":              "**Hello**",
		"HelloNO_REPLY":                  "HelloNO_REPLY",
		"Hello no_reply":                 "Hello no_reply",
		"Hello NO_REPLY you":             "Hello NO_REPLY you",
		"NO_REPLY\nHello\nNO_REPLY":      "Hello",
		"  Hello\n":                      "  Hello\n",
		"":                               "",
		"NO_REPLY":                       "",
		" \"NO_REPLY\" ":                 "",
		"No_Reply!":                      "",
		"** NO_REPLY **":                 "",
		"{ \"action\":\"NO_REPLY\" }":    "",
		"announce_skip":                  "announce_skip",
	} {
		if got := reply.Strip(text); got != want {
			t.Errorf("Strip(%q) = %q, want %q", text, got, want)
		}
		if reply.IsSilent(text) != (want == "" && text != "") {
			t.Errorf("IsSilent(%q) = %v", text, reply.IsSilent(text))
		}
	}
}

// texts are made of what is near a token, so that every edge is met often.
var texts = rapid.Custom(func(t *rapid.T) string {
	piece := rapid.SampledFrom([]string{
		"NO_REPLY", "NO_REPLY", "NO", "N", "_", "REPLY", "no_reply", "O_", " ", "\n", "*", "**", ".", "I", "ING", "hello", "é", "😀",
		"ANNOUNCE_SKIP", "REPLY_SKIP", "A", "─", "{\"action\":\"", "\"}", "`", "\u00a0", "7",
	})
	return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
})

func TestF19_ShownPiecesMakeUpTheStrippedTextForAnySplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		var f reply.Filter
		var shown strings.Builder
		want := reply.Strip(text)
		for rest := []rune(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			shown.WriteString(f.Push(string(rest[:n])))
			rest = rest[n:]
			if !strings.HasPrefix(want, shown.String()) {
				t.Fatalf("%q: %q was shown, but the text is %q", text, shown.String(), want)
			}
		}
		rest, silent := f.Flush()
		shown.WriteString(rest)
		if shown.String() != want || silent != reply.IsSilent(text) {
			t.Fatalf("%q: shown %q, want %q; silent %v", text, shown.String(), want, silent)
		}
	})
}

func TestStrippingAgainChangesOnlyWhatTheFirstTimeLaidBare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		if once := reply.Strip(text); !strings.Contains(text, once) {
			t.Fatalf("%q became %q", text, once)
		}
	})
}

func FuzzFilter(f *testing.F) {
	f.Add("NO_REPLY", 3)
	f.Add("a **NO_REPLY**", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		text = strings.ToValidUTF8(text, "?")
		runes := []rune(text)
		size = max(1, size%16)
		var filter reply.Filter
		var shown strings.Builder
		for i := 0; i < len(runes); i += size {
			shown.WriteString(filter.Push(string(runes[i:min(i+size, len(runes))])))
		}
		rest, _ := filter.Flush()
		if got := shown.String() + rest; got != reply.Strip(text) {
			t.Errorf("%q: shown %q, want %q", text, got, reply.Strip(text))
		}
	})
}
