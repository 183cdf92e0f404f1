// Package dir is the blob port over a directory.
//
// Guarantees, beside those of the port: a value appears whole or not at all,
// whenever the process or the machine dies, and is on disk when Put returns; no
// key reaches a file outside of the directory, by links neither, because every
// access goes through one os.Root; keys that differ only in case, or where one
// is a folder of the other, are different values on every file system. One
// process at a time owns the directory. PutNew needs a file system with hard
// links.
package dir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"

	"laneway/shared/blob"
	"laneway/shared/id"
	"laneway/shared/meter"
)

// folderTemp holds values that are being written; no key is encoded like that.
const folderTemp = "%tmp"

// Config is what Open takes.
type Config struct {
	Path string    // made if absent, for its owner only
	IDs  id.Source // names of temporary files; zero: id.UUID
	// MaxSize is the largest value in bytes; zero: blob.MaxSize.
	MaxSize int
}

// Store implements blob.Store.
type Store struct {
	root *os.Root
	ids  id.Source
	max  int
}

var _ blob.Store = (*Store)(nil)

// Open opens the directory and removes what an earlier process left half-written.
func Open(c Config) (*Store, error) {
	if c.Path == "" || c.MaxSize < 0 {
		return nil, errors.New("blob/dir: no path, or a negative size")
	}
	if err := os.MkdirAll(c.Path, 0o700); err != nil {
		return nil, fmt.Errorf("blob/dir: %w", err)
	}
	root, err := os.OpenRoot(c.Path)
	if err != nil {
		return nil, fmt.Errorf("blob/dir: %w", err)
	}
	s := &Store{root: root, ids: c.IDs, max: cmp.Or(c.MaxSize, blob.MaxSize)}
	if s.ids == nil {
		s.ids = id.UUID
	}
	err = root.RemoveAll(folderTemp)
	if err == nil {
		err = root.Mkdir(folderTemp, 0o700)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("blob/dir: %w", err), root.Close())
	}
	return s, nil
}

// Close lets go of the directory.
func (s *Store) Close() error { return s.root.Close() }

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.put(ctx, key, data, s.root.Rename)
}

// PutNew implements blob.Store: a link, unlike a rename, replaces nothing.
func (s *Store) PutNew(ctx context.Context, key string, data []byte) error {
	err := s.put(ctx, key, data, s.root.Link)
	if errors.Is(err, fs.ErrExist) {
		return blob.ErrExists
	}
	return err
}

// put writes a temporary file and lets publish give it its name.
func (s *Store) put(ctx context.Context, key string, data []byte, publish func(from, to string) error) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	if len(data) > s.max {
		return fmt.Errorf("%w: %d bytes", blob.ErrTooLarge, len(data))
	}
	meter.From(ctx).Add(meter.BlobPuts, 1)
	temp := path.Join(folderTemp, s.ids())
	if err := s.writeTemp(temp, data); err != nil {
		return fmt.Errorf("blob/dir: put: %w", err)
	}
	name := fileOf(key)
	err := s.publish(temp, name, publish)
	// After a rename the temporary file is not there any more.
	if rerr := s.root.Remove(temp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) && err == nil {
		err = rerr
	}
	if err != nil {
		return fmt.Errorf("blob/dir: put: %w", err)
	}
	return s.syncFolders(path.Dir(name))
}

func (s *Store) writeTemp(name string, data []byte) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, s.root.Remove(name))
	}
	return nil
}

// publish makes the folders of a name and gives it to a temporary file.
func (s *Store) publish(temp, name string, publish func(from, to string) error) error {
	// A Delete may remove an empty folder at any moment of this; that many in a
	// row means that something else is wrong.
	for range 100 {
		switch err := s.root.MkdirAll(path.Dir(name), 0o700); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist):
			// The latter means: there when it was made, gone when it was opened.
			// It is no answer to PutNew.
			continue
		case err != nil:
			return err
		}
		if err := publish(temp, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.New("its folder does not stay")
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.check(ctx, key); err != nil {
		return nil, err
	}
	meter.From(ctx).Add(meter.BlobGets, 1)
	f, err := s.root.Open(fileOf(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("blob/dir: get: %w", err)
	}
	data, err := readAll(f, s.max)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("blob/dir: get: %w", err)
	}
	return data, nil
}

func readAll(f *os.File, most int) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(most) {
		return nil, fmt.Errorf("%w: %d bytes", blob.ErrTooLarge, info.Size())
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(f, data)
	return data, err
}

// Delete implements blob.Store. Folders that are empty then go too.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	name := fileOf(key)
	if err := s.root.Remove(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("blob/dir: delete: %w", err)
	}
	folder := path.Dir(name)
	for ; folder != "."; folder = path.Dir(folder) {
		if s.root.Remove(folder) != nil {
			break // not empty, or gone already
		}
	}
	return s.syncFolders(folder)
}

// syncFolders puts a folder and those above it on disk. One that was not changed
// costs next to nothing; one that another Put has just made must not be missed.
func (s *Store) syncFolders(folder string) error {
	for runtime.GOOS != "windows" { // which has no such call, and needs none
		if err := s.syncFolder(folder); err != nil {
			return fmt.Errorf("blob/dir: sync folder: %w", err)
		}
		if folder == "." {
			return nil
		}
		folder = path.Dir(folder)
	}
	return nil
}

func (s *Store) syncFolder(folder string) error {
	d, err := s.root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a Delete took the value and it
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *Store) check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return blob.ValidKey(key)
}
