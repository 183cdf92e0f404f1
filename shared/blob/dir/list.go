package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"laneway/shared/blob"
	"laneway/shared/meter"
)

// List implements blob.Store. It reads the folders that can hold an answer.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if err := blob.ValidList(prefix, after, limit); err != nil {
		return nil, err
	}
	meter.From(ctx).Add(meter.BlobPuts, 1) // S3 bills a list like a put
	l := listing{store: s, prefix: prefix, after: after}
	if err := l.walk(ctx, ".", ""); err != nil {
		return nil, fmt.Errorf("blob/dir: list: %w", err)
	}
	slices.Sort(l.keys)
	return l.keys[:min(len(l.keys), limit)], nil
}

type listing struct {
	store         *Store
	prefix, after string
	keys          []string
}

// walk collects keys below a folder, all of which begin with base.
func (l *listing) walk(ctx context.Context, folder, base string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := l.store.entries(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, ok := decodeName(e.Name(), e.IsDir())
		if !ok {
			continue
		}
		switch key := base + text; {
		case !e.IsDir():
			if strings.HasPrefix(key, l.prefix) && key > l.after {
				l.keys = append(l.keys, key)
			}
		case l.canHold(key):
			if err := l.walk(ctx, path.Join(folder, e.Name()), key); err != nil {
				return err
			}
		}
	}
	return nil
}

// canHold says whether a key that begins with base can be an answer.
func (l *listing) canHold(base string) bool {
	return (strings.HasPrefix(base, l.prefix) || strings.HasPrefix(l.prefix, base)) &&
		(base > l.after || strings.HasPrefix(l.after, base))
}

func (s *Store) entries(folder string) ([]fs.DirEntry, error) {
	d, err := s.root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	return entries, errors.Join(err, d.Close())
}
