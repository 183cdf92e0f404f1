package table

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// Cursors are the place of the last item of a page: lengths and strings, in base64
// that survives a URL. They mean the same on every adapter.

// CursorAt is the cursor of a Query page that ended with the sort key sk.
func CursorAt(sk string) string { return encodeCursor(sk) }

// IndexCursorAt is the cursor of a KeyPage that ended with k.
func IndexCursorAt(k IndexKey) string { return encodeCursor(k.SK, k.Key.PK, k.Key.SK) }

func encodeCursor(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeCursor(s string, n int) ([]string, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%w: malformed cursor", ErrInvalid)
	}
	parts := make([]string, 0, n)
	for len(b) > 0 {
		size, w := binary.Uvarint(b)
		if w <= 0 || size > uint64(len(b)-w) {
			return nil, fmt.Errorf("%w: malformed cursor", ErrInvalid)
		}
		parts = append(parts, string(b[w:w+int(size)]))
		b = b[w+int(size):]
	}
	if len(parts) != n {
		return nil, fmt.Errorf("%w: malformed cursor", ErrInvalid)
	}
	return parts, nil
}
