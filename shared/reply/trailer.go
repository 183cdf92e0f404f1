package reply

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// trailer finds where the part of a text's end begins that is not to be shown.
// Of a final text that is the tokens that it ends with, and the blanks before
// them. Of a text that goes on it is everything that could still become such an
// end: also the beginning of a token, a blank, or an asterisk. before is the byte
// that was shown in front of the text, 0 if there is none.
func trailer(text string, before byte, final bool) int {
	at := len(text)
	for end := len(text); ; {
		wordEnd := len(strings.TrimRightFunc(text[:end], unicode.IsSpace))
		if !final {
			at = wordEnd
		}
		if wordEnd == 0 {
			return at
		}
		start := 0
		if i := strings.LastIndexFunc(text[:wordEnd], unicode.IsSpace); i >= 0 {
			_, size := utf8.DecodeRuneInString(text[i:])
			start = i + size
		}
		w := endWord{text: text[start:wordEnd], open: !final && wordEnd == len(text)}
		if start == 0 {
			w.before = before
		}
		switch kind, tokenAt := w.match(); kind {
		case endNone:
			return at
		case endGlued:
			return start + tokenAt
		case endWhole:
			at = len(strings.TrimRightFunc(text[:start], unicode.IsSpace))
			end = at
		}
	}
}

// endWord is the last word of a text.
type endWord struct {
	text   string
	before byte // the byte of the same word that was shown already, 0 if none
	open   bool // more may be added to the word
}

type endKind int

const (
	endNone  endKind = iota
	endWhole         // the word is a token, with asterisks around it at most
	endGlued         // the word ends in asterisks and a token: the token goes, the rest stays
)

// match says whether the word is or ends in a token or, if it is open, could come
// to. tokenAt is where the token begins.
func (w endWord) match() (kind endKind, tokenAt int) {
	tokenAt = w.token()
	if tokenAt < 0 {
		return endNone, 0
	}
	lead := w.text[:tokenAt]
	switch {
	case w.before == 0 && strings.Trim(lead, "*") == "":
		return endWhole, tokenAt
	case strings.HasSuffix(lead, "*"), lead == "" && w.before == '*':
		return endGlued, tokenAt
	}
	return endNone, 0
}

// token is where the token, or what could become one, begins in the word; -1 if
// there is none. The letters of the token are all different, so that at most one
// beginning of it can stand at the end of a word.
func (w endWord) token() int {
	body := strings.TrimRight(w.text, "*")
	if strings.HasSuffix(body, Silent) {
		return len(body) - len(Silent)
	}
	if !w.open {
		return -1
	}
	if body == "" { // asterisks alone: a token may follow
		if w.before != 0 {
			return -1
		}
		return len(w.text)
	}
	if len(body) < len(w.text) {
		return -1
	}
	for n := len(Silent) - 1; n > 0; n-- {
		if strings.HasSuffix(body, Silent[:n]) {
			return len(body) - n
		}
	}
	return -1
}
