package reply

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Silent is the reply that shows nothing.
const Silent = "NO_REPLY"

// controls are replies that only mean something to the gateway. They are silent as
// a whole text, in just this spelling.
var controls = []string{"ANNOUNCE_SKIP", "REPLY_SKIP"}

// silentJSON is the token as some models wrap it, without its blanks.
const silentJSON = `{"action":"` + Silent + `"}`

// IsSilent says whether a whole text means that nothing is to be shown: the token
// in any case, alone or repeated between blanks, with punctuation around it; its
// JSON forms; a control token; or nothing but box-drawing lines.
func IsSilent(text string) bool {
	match, complete := silent(text)
	return match && complete
}

// couldBecomeSilent says whether a text is a beginning of a silent one.
func couldBecomeSilent(text string) bool {
	match, _ := silent(text)
	return match
}

// silent compares a text with all silent ones at once. match: the text is a
// beginning of one; complete: it is one.
func silent(text string) (match, complete bool) {
	if wrapped := strings.Join(strings.Fields(text), ""); strings.HasPrefix(silentJSON, wrapped) && strings.HasPrefix(wrapped, "{") {
		return true, wrapped == silentJSON
	}
	var seen [wordKinds]int
	for rest := text; ; {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		if rest == "" {
			break
		}
		word := rest
		open := true // the text may go on with the same word
		if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
			word, open = rest[:i], false
		}
		rest = rest[len(word):]
		kind := matchWord(word, open)
		if kind == wordOther {
			return false, false
		}
		seen[kind]++
	}
	onlyBoxes := seen[wordBoxes] > 0 && seen[wordWrapper] == 0
	return true, seen[wordBegun] == 0 && (seen[wordToken] > 0 || onlyBoxes)
}

type wordKind int

const (
	wordOther   wordKind = iota
	wordToken            // a silent token, whole
	wordBoxes            // box drawing
	wordWrapper          // punctuation alone
	wordBegun            // the beginning of a token, at the end of the text
	wordKinds
)

func matchWord(word string, open bool) wordKind {
	if strings.TrimFunc(word, isBox) == "" {
		return wordBoxes
	}
	core := strings.TrimLeftFunc(word, isWrapper)
	if core == "" {
		return wordWrapper
	}
	for _, token := range append([]string{Silent}, controls...) {
		whole := core
		if len(whole) > len(token) {
			whole = whole[:len(token)]
		}
		same := whole == token[:len(whole)] || token == Silent && strings.EqualFold(whole, token[:len(whole)])
		if !same {
			continue
		}
		if len(whole) < len(token) {
			if open {
				return wordBegun
			}
			continue
		}
		if strings.TrimLeftFunc(core[len(token):], isWrapper) == "" {
			return wordToken
		}
	}
	return wordOther
}

// isWrapper says whether a character may stand around a token: punctuation, and
// the backtick, which Unicode counts as a symbol.
func isWrapper(r rune) bool { return unicode.IsPunct(r) || r == '`' }

func isBox(r rune) bool { return r >= 0x2500 && r <= 0x257F }

// Strip removes silent tokens from the two ends of a text and leaves the rest as it
// is. A silent text gives nothing. At the start a token goes if a letter, a digit or
// a line break follows it ("NO_REPLYHello"), unless it is the start of a longer
// upper-case word ("NO_REPLYING"); at the end if blanks or asterisks stand before
// it. A token inside the text, and one at the start with more on the same line, are
// words like others.
func Strip(text string) string {
	if IsSilent(text) {
		return ""
	}
	text, _ = stripLead(text, true)
	return text[:trailer(text, 0, true)]
}

// stripLead removes the tokens that the text starts with. Without final more text
// may follow, and decided says whether that could change the outcome.
func stripLead(text string, final bool) (rest string, decided bool) {
	for {
		n, decided := lead(text, final)
		if !decided {
			return text, false
		}
		if n == 0 {
			return text, true
		}
		text = text[n:]
	}
}

// lead is the length of one token to remove at the start of a text.
func lead(text string, final bool) (n int, decided bool) {
	start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	stars := start + countStars(text[start:])
	if len(text)-stars < len(Silent) {
		return 0, final || !strings.HasPrefix(Silent, text[stars:])
	}
	if !strings.HasPrefix(text[stars:], Silent) {
		return 0, true
	}
	end := stars + len(Silent)
	closing := end + countStars(text[end:])
	after := text[closing:]
	if after == "" {
		return 0, final
	}
	if closing == end {
		if glued, decided := gluedWord(after, final); !decided || glued {
			return end, decided
		}
	}
	blanks := after[:len(after)-len(strings.TrimLeftFunc(after, unicode.IsSpace))]
	if len(blanks) == len(after) && !final {
		return 0, false
	}
	if strings.ContainsAny(blanks, "\n\r") {
		return closing + len(blanks), true
	}
	return 0, true
}

// gluedWord says whether what follows a token directly is a word of its own, which
// the model forgot to separate. A second upper-case character makes token and
// follower one longer word.
func gluedWord(after string, final bool) (glued, decided bool) {
	first, size := utf8.DecodeRuneInString(after)
	if !unicode.IsLetter(first) && !unicode.IsDigit(first) {
		return false, true
	}
	if !unicode.IsUpper(first) {
		return true, true
	}
	if len(after) == size {
		return true, final
	}
	second, _ := utf8.DecodeRuneInString(after[size:])
	return !unicode.IsUpper(second) && second != '_', true
}

func countStars(s string) int { return len(s) - len(strings.TrimLeft(s, "*")) }
