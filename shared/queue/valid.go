package queue

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// maxID is the longest group or deduplication id, in bytes.
const maxID = 128

// Check says whether every adapter takes a message: ErrInvalid, with the field
// and the reason but never the content, where one would refuse it. The rules are
// those of SQS, so that what works on one machine works when it is deployed.
func Check(group, dedup string, body []byte) error {
	if err := checkID("group", group); err != nil {
		return err
	}
	if err := checkID("dedup", dedup); err != nil {
		return err
	}
	return CheckBody(body)
}

// CheckBody says whether a body can be carried: 1 to MaxBody bytes of UTF-8
// without the control characters that SQS refuses.
func CheckBody(body []byte) error {
	if len(body) == 0 || len(body) > MaxBody {
		return fmt.Errorf("%w: body has %d bytes, not 1 to %d", ErrInvalid, len(body), MaxBody)
	}
	for rest := body; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			return fmt.Errorf("%w: body is not UTF-8", ErrInvalid)
		}
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return fmt.Errorf("%w: body has the character %U", ErrInvalid, r)
		}
		rest = rest[n:]
	}
	return nil
}

// CheckDelay says whether a timer may have this delay: 0 to MaxDelay.
func CheckDelay(d time.Duration) error {
	if d < 0 || d > MaxDelay {
		return fmt.Errorf("%w: delay %v is not in 0 to %v", ErrInvalid, d, MaxDelay)
	}
	return nil
}

func checkID(field, s string) error {
	if s == "" || len(s) > maxID {
		return fmt.Errorf("%w: %s has %d characters, not 1 to %d", ErrInvalid, field, len(s), maxID)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return fmt.Errorf("%w: %s has a character that is no letter, digit or punctuation", ErrInvalid, field)
		}
	}
	return nil
}
