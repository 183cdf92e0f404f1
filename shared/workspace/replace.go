package workspace

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replace writes a file beside its place and moves it there. A symbolic link is
// written through instead, not replaced by a file: that write can be seen half
// done.
func (d *Dir) replace(local string, content []byte, perm fs.FileMode) (err error) {
	if info, err := d.root.Lstat(local); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return d.write(local, os.O_TRUNC, content, perm)
	}
	temp := filepath.Join(filepath.Dir(local), ".laneway-"+rand.Text()+".tmp")
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(d.root.Remove(temp)))
		}
	}()
	if err := d.write(temp, os.O_CREATE|os.O_EXCL, content, perm); err != nil {
		return err
	}
	return d.root.Rename(temp, local)
}

func (d *Dir) write(local string, flag int, content []byte, perm fs.FileMode) error {
	f, err := d.root.OpenFile(local, os.O_WRONLY|flag, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
