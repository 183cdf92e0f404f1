// Package blob is the port for values that are too large for a table.
//
// Guarantees: a Put that returned is there for every Get after it; keys are
// slash-separated paths without "." or ".." parts, at most 512 bytes; nothing
// outside the store can be named. The adapters are s3 and dir; blobtest is the
// judge.
package blob

import (
	"context"
	"errors"
)

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("blob: no such key")
	ErrInvalid  = errors.New("blob: invalid key")
	ErrTooLarge = errors.New("blob: too large")
	ErrExists   = errors.New("blob: key exists")
)

// Store keeps whole values.
type Store interface {
	Put(ctx context.Context, key string, data []byte) error
	// PutNew fails with ErrExists where the key is taken.
	PutNew(ctx context.Context, key string, data []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Delete(ctx context.Context, key string) error // of an absent key: no error
	// List gives up to limit keys with the prefix, in order, after the key after.
	List(ctx context.Context, prefix, after string, limit int) ([]string, error)
}
