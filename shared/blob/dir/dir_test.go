package dir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"laneway/shared/blob"
	"laneway/shared/blob/blobtest"
)

func open(t *testing.T, path string, most int) *Store {
	t.Helper()
	s, err := Open(Config{Path: path, MaxSize: most})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSuite(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T, most int) blob.Store {
		t.Helper()
		return open(t, t.TempDir(), most)
	})
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s := open(t, path, 0)
	ctx := t.Context()
	for _, err := range []error{
		s.Put(ctx, "a/b/c", []byte("x")), s.PutNew(ctx, "a/d", []byte("x")),
		s.Delete(ctx, "a/b/c"), s.Delete(ctx, "a/d"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PutNew(ctx, "k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.PutNew(ctx, "k", []byte("y")); !errors.Is(err, blob.ErrExists) {
		t.Fatal(err)
	}
	var found []string
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		found = append(found, strings.TrimPrefix(p, path))
		return err
	})
	if got, want := strings.Join(found, " "), strings.ReplaceAll(" /%tmp /k%", "/", string(filepath.Separator)); got != want || err != nil {
		t.Errorf("on disk: %q, %v, want %q", got, err, want)
	}
}

func TestHalfWrittenValuesAreRemovedAtTheStart(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s := open(t, path, 0)
	if err := s.writeTemp(folderTemp+"/left", []byte("half")); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, 0)
	if keys, err := again.List(t.Context(), "", "", 10); len(keys) != 0 || err != nil {
		t.Errorf("listed %q, %v", keys, err)
	}
	if left, err := os.ReadDir(filepath.Join(path, folderTemp)); len(left) != 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestALinkLeadsNowhere(t *testing.T) {
	t.Parallel()
	path, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret%"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, 0)
	if err := os.Symlink(outside, filepath.Join(path, "out")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	ctx := t.Context()
	if v, err := s.Get(ctx, "out/secret"); err == nil {
		t.Errorf("Get went outside: %q", v)
	}
	if err := s.Put(ctx, "out/new", nil); err == nil {
		t.Error("Put went outside")
	}
	if err := s.Delete(ctx, "out/secret"); err == nil {
		t.Error("Delete went outside")
	}
	if keys, err := s.List(ctx, "", "", 10); len(keys) != 0 || err != nil {
		t.Errorf("List: %q, %v", keys, err)
	}
	if left, err := os.ReadDir(outside); len(left) != 1 || err != nil {
		t.Errorf("outside: %v, %v", left, err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{{}, {Path: file}, {Path: t.TempDir(), MaxSize: -1}} {
		if s, err := Open(c); err == nil {
			t.Errorf("%+v: accepted", c)
			_ = s.Close()
		}
	}
}

// Folders come and go under those that put into them: none of it is an error, and
// a PutNew of a key that nobody else has is never "taken".
func TestFoldersThatComeAndGo(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 0)
	ctx := t.Context()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			key := "a/b/c/" + strconv.Itoa(w)
			for range 40 {
				if err := s.PutNew(ctx, key, []byte("x")); err != nil {
					t.Errorf("PutNew: %v", err)
				}
				if err := s.Delete(ctx, key); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzNames: what is decoded is what was encoded, and a name is fit for a disk.
func FuzzNames(f *testing.F) {
	for _, k := range []string{"a", "a/b", "A.", "%", "con/x", "a/nul.txt", "..a./b", strings.Repeat("é", 200)} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if blob.ValidKey(key) != nil {
			t.Skip()
		}
		names := strings.Split(fileOf(key), "/")
		var got strings.Builder
		for i, n := range names {
			if len(n) > 255 || n == "." || n == ".." || n == folderTemp || strings.ToLower(n) != n || isDevice(n) || strings.HasSuffix(n, ".") {
				t.Errorf("%q is stored under %q", key, n)
			}
			text, ok := decodeName(n, i < len(names)-1)
			if !ok {
				t.Fatalf("%q: %q is not decoded", key, n)
			}
			got.WriteString(text)
		}
		if got.String() != key {
			t.Errorf("%q became %q", key, got.String())
		}
	})
}
