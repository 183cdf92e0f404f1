package blob

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxKey is the longest key, in bytes.
	MaxKey = 512
	// MaxSize is the largest value in bytes that is put or got: a value is held
	// in memory as a whole, so every adapter refuses more with ErrTooLarge.
	MaxSize = 256 << 20
)

// ValidKey says whether every adapter takes a key: one or more parts between
// slashes, none of them empty, "." or "..", of UTF-8 without control characters.
// Else the error is ErrInvalid. Case counts.
func ValidKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: empty", ErrInvalid)
	}
	if err := validText(key); err != nil {
		return err
	}
	for part := range strings.SplitSeq(key, "/") {
		switch part {
		case "", ".", "..":
			return fmt.Errorf("%w: it has the part %q", ErrInvalid, part)
		}
	}
	return nil
}

// ValidList says whether the arguments of List can be used: prefix and after
// need be no whole keys, but must be able to begin one; limit is at least 1.
func ValidList(prefix, after string, limit int) error {
	if limit < 1 {
		return fmt.Errorf("%w: limit %d", ErrInvalid, limit)
	}
	if err := validText(prefix); err != nil {
		return err
	}
	return validText(after)
}

func validText(s string) error {
	if len(s) > MaxKey {
		return fmt.Errorf("%w: %d bytes", ErrInvalid, len(s))
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: not UTF-8", ErrInvalid)
	}
	for _, r := range s {
		// The last two can't stand in the XML that S3 lists keys in.
		if unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF {
			return fmt.Errorf("%w: it has the character %U", ErrInvalid, r)
		}
	}
	return nil
}
