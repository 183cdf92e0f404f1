package protocol

import (
	"errors"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// errNUL is worded as a schema problem, after the name of the member.
var errNUL = errors.New("must not contain null bytes")

// CleanChatText is the form in which a chat message is kept: NFC, without control
// characters other than tab, line feed and carriage return. A NUL is refused,
// because it is never part of a text that somebody typed.
func CleanChatText(s string) (string, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return "", errNUL
	}
	unwanted := func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
	}
	if strings.ContainsFunc(s, unwanted) {
		s = strings.Map(func(r rune) rune {
			if unwanted(r) {
				return -1
			}
			return r
		}, s)
	}
	// After the removal: what a control character kept apart may compose now.
	return norm.NFC.String(s), nil
}
