// Package id makes and checks identifiers.
//
// Guarantees: a Source never gives the same id twice in practice (122 random
// bits); Hash is stable over versions and machines, because stored keys, queue
// groups and deduplication ids are made with it.
package id

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Source gives fresh ids; tests inject a counting one.
type Source func() string

// UUID is a random version 4 UUID.
func UUID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // documented never to happen
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Hash is a hex digest of the parts, each closed by a zero byte, so that no two
// lists of parts run into each other. 32 characters: 128 bits.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// MaxBytes bounds the ids that callers choose: run, request and session ids.
const MaxBytes = 512

// Valid says whether a caller's id can be used: valid UTF-8 of 1 to MaxBytes
// bytes without control characters.
func Valid(s string) bool {
	if s == "" || len(s) > MaxBytes || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
