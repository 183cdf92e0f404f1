// Package workspace is the directory that an agent works in.
//
// Guarantees: no path, whether absolute, with "..", or through a symbolic link,
// reaches a file outside the directory, even when the tree changes while it is
// used (os.Root checks every step in the kernel's terms, not by comparing
// strings); names are given and taken relative to the directory with slashes;
// only regular files are opened, so that a pipe or device cannot hold a reader. Errors answer errors.Is with
// ErrOutside, ErrNotRegular, fs.ErrNotExist and the other errors of package fs,
// and their texts hold the path as it was asked for, never a path of the host.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Errors that callers branch on.
var (
	ErrOutside    = errors.New("path is outside the workspace")
	ErrNotRegular = errors.New("not a regular file")
)

// Dir is an open workspace. It is safe for concurrent use. Close ends it.
type Dir struct {
	root *os.Root
	// bases are the absolute names of the directory: as it was given and with
	// links resolved. An absolute path below any of them is inside.
	bases []string
}

// Open opens an existing directory as a workspace.
func Open(dir string) (*Dir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	bases := []string{abs}
	if resolved, err := filepath.EvalSymlinks(abs); err == nil && resolved != abs {
		bases = append(bases, resolved)
	}
	return &Dir{root: root, bases: bases}, nil
}

// Close gives the directory back.
func (d *Dir) Close() error { return d.root.Close() }

// Path is the absolute name of the directory on this machine.
func (d *Dir) Path() string { return d.bases[0] }

// Rel gives the name of a path inside the workspace: relative, cleaned, with
// slashes, "." for the directory itself. A path that leads out by its text alone
// is ErrOutside; links are checked when the file is opened.
func (d *Dir) Rel(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", fail("resolve", name, fs.ErrInvalid)
	}
	local := filepath.FromSlash(name)
	if filepath.IsAbs(local) {
		rel, ok := d.below(local)
		if !ok {
			return "", fail("resolve", name, ErrOutside)
		}
		return rel, nil
	}
	rel := path.Clean(filepath.ToSlash(local))
	if name == "" {
		rel = "."
	}
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		return "", fail("resolve", name, ErrOutside)
	}
	return rel, nil
}

func (d *Dir) below(abs string) (string, bool) {
	for _, base := range d.bases {
		rel, err := filepath.Rel(base, abs)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// Open opens a regular file for reading.
func (d *Dir) Open(name string) (*os.File, error) {
	rel, err := d.Rel(name)
	if err != nil {
		return nil, err
	}
	// Asked before the open, because opening a pipe waits for its other end.
	info, err := d.root.Stat(filepath.FromSlash(rel))
	if err != nil {
		return nil, fail("open", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fail("open", name, notRegular(info))
	}
	f, err := d.root.Open(filepath.FromSlash(rel))
	if err != nil {
		return nil, fail("open", name, err)
	}
	return f, nil
}

// Stat describes a file or directory, following links that stay inside.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	rel, err := d.Rel(name)
	if err != nil {
		return nil, err
	}
	info, err := d.root.Stat(filepath.FromSlash(rel))
	if err != nil {
		return nil, fail("stat", name, err)
	}
	return info, nil
}

// ReadDir lists a directory, sorted by name.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	rel, err := d.Rel(name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(d.root.FS(), rel)
	if err != nil {
		return nil, fail("list", name, err)
	}
	return entries, nil
}

// Write replaces the content of a file, or makes it with its directories. It is
// all or nothing: a reader, or a crash, sees the old content or the new.
func (d *Dir) Write(name string, content []byte) (created bool, err error) {
	rel, err := d.Rel(name)
	if err != nil {
		return false, err
	}
	local := filepath.FromSlash(rel)
	perm := fs.FileMode(0o644)
	info, err := d.root.Stat(local)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return false, fail("write", name, notRegular(info))
	case err == nil:
		perm = info.Mode().Perm()
	case errors.Is(err, fs.ErrNotExist):
		created = true
		if err := d.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
			return false, fail("write", name, err)
		}
	default:
		return false, fail("write", name, err)
	}
	if err := d.replace(local, content, perm); err != nil {
		return false, fail("write", name, err)
	}
	return created, nil
}

// fail names the operation and the path as asked for, and hides the host's name
// for it. A refusal of os.Root has no exported error, only this text.
func fail(op, name string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	if err.Error() == "path escapes from parent" {
		err = ErrOutside
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func notRegular(info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("is a directory: %w", ErrNotRegular)
	}
	return ErrNotRegular
}
