package reply

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"laneway/shared/chars"
)

const (
	heartbeatOK = "HEARTBEAT_OK"
	// HeartbeatAckMax is how much may stand beside the token in a heartbeat run's
	// reply that is still only an acknowledgement, in chars.
	HeartbeatAckMax = 300
	// heartbeatTail is how many signs may follow the token at the end of a text.
	heartbeatTail = 4
)

var htmlTag = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)

// Heartbeat removes the acknowledgement of a heartbeat from a reply. heartbeatRun
// says whether the run was one: its reply is dropped when not more than
// HeartbeatAckMax chars stand beside the token; another run's only when nothing
// does. A token inside the text is left alone.
func Heartbeat(text string, heartbeatRun bool) (rest string, drop bool) {
	rest, found := withoutHeartbeat(text)
	if !found {
		return text, false
	}
	if rest == "" || heartbeatRun && chars.Fits(rest, HeartbeatAckMax) {
		return "", true
	}
	return rest, false
}

func withoutHeartbeat(text string) (rest string, found bool) {
	rest = strings.TrimSpace(text)
	for {
		next, cut := cutHeartbeat(rest)
		if !cut {
			// Markdown or HTML around the token hides it from the ends of the text.
			if plain := unwrapped(rest); plain != rest {
				if next, cut = cutHeartbeat(plain); cut {
					rest, found = next, true
					continue
				}
			}
			return rest, found
		}
		rest, found = next, true
	}
}

// cutHeartbeat removes one token from the start or the end.
func cutHeartbeat(text string) (rest string, cut bool) {
	if after, ok := strings.CutPrefix(text, heartbeatOK); ok && !startsWord(after) {
		return strings.TrimSpace(strings.TrimLeft(after, ".,:;!-–— \t\r\n*_`")), true
	}
	body := strings.TrimRightFunc(text, isSign)
	if chars.Count(strings.TrimSpace(text[len(body):])) <= heartbeatTail {
		if before, ok := strings.CutSuffix(body, heartbeatOK); ok && !endsWord(before) {
			return strings.TrimRight(before, " \t\r\n*_`"), true
		}
	}
	return text, false
}

func unwrapped(text string) string {
	return strings.TrimSpace(strings.Trim(htmlTag.ReplaceAllString(text, ""), "*_`~ \t\r\n"))
}

func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && isWordRune(r)
}

func endsWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && isWordRune(r)
}
