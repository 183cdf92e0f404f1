package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Names of files in the data directory.
const (
	tokenFile  = "gateway.token"
	deviceFile = "device.key"
)

// dataDir is the data directory: the one that was named, else one under the user's
// own data directory.
func (a *app) dataDir(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if dir := a.env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "laneway"), nil
	}
	if runtime.GOOS == "windows" {
		if dir := a.env("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "laneway"), nil
		}
	}
	home := a.env("HOME")
	if home == "" {
		home = a.env("USERPROFILE")
	}
	switch {
	case home == "":
		return "", errors.New("no home directory: say where the data is, with --data")
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "laneway"), nil
	}
	return filepath.Join(home, ".local", "share", "laneway"), nil
}

// storedToken is the token kept in a file, "" if there is no file.
func storedToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("%s is empty: put a token in it, or remove it", path)
	}
	return token, nil
}

// makeToken makes a token of 192 random bits and keeps it in a file that only its
// owner can read.
func makeToken(path string) (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	token := hex.EncodeToString(b[:])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// O_EXCL: of two processes that start at once one makes the token, and both use it.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return storedToken(path)
	}
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(f, token); err != nil {
		return "", errors.Join(err, f.Close(), os.Remove(path))
	}
	return token, f.Close()
}
