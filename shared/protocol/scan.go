package protocol

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting, because reading is recursive and a frame of brackets
// must not exhaust the stack.
const maxDepth = 256

var (
	errSyntax = errors.New("not JSON")
	errDepth  = errors.New("nested deeper than " + strconv.Itoa(maxDepth) + " levels")
)

// scanner reads JSON text token by token. It accepts exactly what RFC 8259 does,
// up to maxDepth. It does not look at UTF-8: its callers check that once for the
// whole text.
type scanner struct {
	b     []byte
	i     int
	depth int
}

// peek skips white space and gives the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it is the next token.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// end says whether nothing but white space is left.
func (s *scanner) end() bool { return s.peek() == 0 && s.i == len(s.b) }

// value consumes one value of any kind and gives its bytes, which alias the input.
func (s *scanner) value() ([]byte, error) {
	c := s.peek()
	start := s.i
	var err error
	switch {
	case c == '"':
		_, _, err = s.str()
	case c == '{':
		err = s.skipObject()
	case c == '[':
		err = s.skipArray()
	case c == '-' || c >= '0' && c <= '9':
		err = s.number()
	case c == 't':
		err = s.word("true")
	case c == 'f':
		err = s.word("false")
	case c == 'n':
		err = s.word("null")
	default:
		err = errSyntax
	}
	if err != nil {
		return nil, err
	}
	return s.b[start:s.i:s.i], nil
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return errSyntax
	}
	s.i += len(w)
	return nil
}

func (s *scanner) number() error {
	digits := func() bool {
		n := s.i
		for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
			s.i++
		}
		return s.i > n
	}
	at := func(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }
	if at('-') {
		s.i++
	}
	if at('0') {
		s.i++
	} else if !digits() {
		return errSyntax
	}
	if at('.') {
		s.i++
		if !digits() {
			return errSyntax
		}
	}
	if at('e') || at('E') {
		s.i++
		if at('+') || at('-') {
			s.i++
		}
		if !digits() {
			return errSyntax
		}
	}
	return nil
}

// str consumes a string and gives what is between its quotes, still escaped, and
// whether there is an escape in it.
func (s *scanner) str() (body []byte, escaped bool, err error) {
	if !s.take('"') {
		return nil, false, errSyntax
	}
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], escaped, nil
		case c < ' ':
			return nil, false, errSyntax
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return nil, false, err
			}
		default:
			s.i++
		}
	}
	return nil, false, errSyntax
}

func (s *scanner) escape() error {
	s.i++
	if s.i >= len(s.b) {
		return errSyntax
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		if _, ok := hex4(s.b[s.i:]); ok {
			s.i += 4
			return nil
		}
	}
	return errSyntax
}

func (s *scanner) skipArray() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.i++
	if s.take(']') {
		return nil
	}
	for {
		if _, err := s.value(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
	}
}

func (s *scanner) skipObject() error {
	return s.object(func([]byte, bool) error {
		_, err := s.value()
		return err
	})
}

// object consumes an object; each is called with a member's name (as it is
// between the quotes) and must consume its value.
func (s *scanner) object(each func(name []byte, escaped bool) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if !s.take('{') {
		return errSyntax
	}
	if s.take('}') {
		return nil
	}
	for {
		name, escaped, err := s.str()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return errSyntax
		}
		if err := each(name, escaped); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
	}
}

func (s *scanner) enter() error {
	s.depth++
	if s.depth > maxDepth {
		return errDepth
	}
	return nil
}

func (s *scanner) leave() { s.depth-- }

// hex4 reads four hexadecimal digits.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unquote gives the text of a string that str has accepted. Half a surrogate pair
// has no UTF-8 form and becomes U+FFFD.
func unquote(body []byte, escaped bool) string {
	if !escaped {
		return string(body)
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i++ {
		c := body[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch c = body[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(body[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if i+6 < len(body) && body[i+1] == '\\' && body[i+2] == 'u' {
					low, ok = hex4(body[i+3:])
				}
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
