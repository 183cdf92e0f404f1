package provider

import "strconv"

// appendPiece appends the piece of number i: it begins with its number, so that lost
// or reordered text shows, and has size bytes.
func appendPiece(b []byte, i, size int) []byte {
	start := len(b)
	b = append(b, 'd')
	b = strconv.AppendInt(b, int64(i), 10)
	b = append(b, ' ')
	for len(b)-start < size-1 {
		b = append(b, 'x')
	}
	return append(b, ' ')
}

// Text is what n pieces of a size make together.
func Text(n, size int) string {
	var b []byte
	for i := range n {
		b = appendPiece(b, i, size)
	}
	return string(b)
}
