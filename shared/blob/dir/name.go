package dir

import (
	"encoding/hex"
	"slices"
	"strings"
)

// How a key lies on disk: each part of it is a folder and the last a file. Small
// letters, digits, "_", "-" and "." stand for themselves, other bytes are "%" and
// two hex digits: capitals too, for file systems that ignore case. "%" followed
// by something else is ours:
//
//	name%    the file of a value, so that "a" and "a/b" may both be keys
//	piece%+  a folder that holds the rest of a part too long for one name
//	%tmp     half-written values
const (
	suffixFile  = "%"
	suffixPiece = "%+"
	// maxPiece leaves room for a suffix in the 255 bytes of a name.
	maxPiece = 200
)

// fileOf is the slash-separated path of a valid key's value.
func fileOf(key string) string {
	var b strings.Builder
	parts := strings.Split(key, "/")
	for i, part := range parts {
		rest := encodePart(part)
		for len(rest) > maxPiece {
			n := maxPiece
			// An escape stays whole.
			if p := strings.LastIndexByte(rest[:n], '%'); p > n-3 {
				n = p
			}
			b.WriteString(rest[:n] + suffixPiece + "/")
			rest = rest[n:]
		}
		b.WriteString(rest)
		if i < len(parts)-1 {
			b.WriteByte('/')
		}
	}
	b.WriteString(suffixFile)
	return b.String()
}

func encodePart(part string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(part) {
		c := part[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
		// Windows drops a dot at the end, and has devices in every folder.
		if c == '.' && i == len(part)-1 || i == 0 && isDevice(part) {
			plain = false
		}
		if plain {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

func isDevice(part string) bool {
	stem, _, _ := strings.Cut(part, ".")
	if len(stem) == 4 && stem[3] >= '0' && stem[3] <= '9' {
		stem = stem[:3] + "#"
	}
	return slices.Contains([]string{"con", "prn", "aux", "nul", "com#", "lpt#"}, stem)
}

// decodeName is what a file's or folder's name adds to the key that its folder
// stands for; file is true for a value's. ok is false for what is not ours.
func decodeName(name string, folder bool) (text string, ok bool) {
	end := ""
	if folder {
		if n, piece := strings.CutSuffix(name, suffixPiece); piece {
			name = n
		} else {
			end = "/"
		}
	} else if name, ok = strings.CutSuffix(name, suffixFile); !ok {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		c, err := hex.DecodeString(name[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.WriteByte(c[0])
		i += 2
	}
	return b.String() + end, true
}
