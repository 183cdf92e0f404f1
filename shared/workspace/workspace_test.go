package workspace_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"laneway/shared/workspace"
)

// setup gives an open workspace with a secret file beside it.
func setup(t *testing.T) (d *workspace.Dir, dir, secret string) {
	t.Helper()
	parent := t.TempDir()
	dir = filepath.Join(parent, "ws")
	secret = filepath.Join(parent, "secret.txt")
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	must(t, os.WriteFile(secret, []byte("top secret"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("inside"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "b.txt"), []byte("below"), 0o600))
	d, err := workspace.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d, dir, secret
}

func TestAPathInsideIsRead(t *testing.T) {
	t.Parallel()
	d, dir, _ := setup(t)
	must(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	for name, want := range map[string]string{
		"a.txt":                            "inside",
		"./sub/../a.txt":                   "inside",
		"sub/b.txt":                        "below",
		filepath.Join(dir, "sub", "b.txt"): "below",
		"link":                             "inside",
	} {
		if got := read(t, d, name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

func TestNoPathLeadsOut(t *testing.T) {
	t.Parallel()
	d, dir, secret := setup(t)
	must(t, os.Symlink(secret, filepath.Join(dir, "absolute-link")))
	must(t, os.Symlink("../secret.txt", filepath.Join(dir, "relative-link")))
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	must(t, os.Symlink("relative-link", filepath.Join(dir, "chain")))
	for _, name := range []string{
		secret, "../secret.txt", "sub/../../secret.txt", "/etc/passwd", "..", dir + "/../secret.txt", dir + "-other/x",
		"absolute-link", "relative-link", "up/secret.txt", "chain",
	} {
		f, err := d.Open(name)
		if f != nil {
			f.Close()
		}
		if !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("open %s: %v, want ErrOutside", name, err)
		}
		if err != nil && !strings.HasPrefix(name, filepath.Dir(dir)) && strings.Contains(err.Error(), filepath.Dir(dir)) {
			t.Errorf("the error tells a path of the host: %v", err)
		}
		if _, err := d.Write(name, []byte("overwritten")); !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("write %s: %v, want ErrOutside", name, err)
		}
	}
	if _, err := d.ReadDir("up"); !errors.Is(err, workspace.ErrOutside) {
		t.Errorf("list: %v, want ErrOutside", err)
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != "top secret" {
		t.Fatalf("the file outside was changed: %q, %v", got, err)
	}
}

func TestAnyPathEitherStaysInsideOrIsRefused(t *testing.T) {
	t.Parallel()
	d, dir, secret := setup(t)
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	part := rapid.SampledFrom([]string{"..", ".", "", "up", "sub", "secret.txt", "a.txt", dir, secret, "ws", "\x00", "~"})
	rapid.Check(t, func(rt *rapid.T) {
		name := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(rt, "parts"), "/")
		f, err := d.Open(name)
		if err != nil {
			return
		}
		defer f.Close()
		content, err := io.ReadAll(f)
		if err != nil || strings.Contains(string(content), "secret") {
			rt.Fatalf("%q gave %q, %v", name, content, err)
		}
	})
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	d, _, _ := setup(t)
	if _, err := d.Open("none.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := d.Open("sub"); !errors.Is(err, workspace.ErrNotRegular) || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	if _, err := workspace.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no workspace: %v", err)
	}
}

func TestWriteMakesDirectoriesAndReplacesWholeFiles(t *testing.T) {
	t.Parallel()
	d, dir, _ := setup(t)
	created, err := d.Write("new/deep/file.txt", []byte("one"))
	must(t, err)
	if !created || read(t, d, "new/deep/file.txt") != "one" {
		t.Errorf("created %v", created)
	}
	must(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o700))
	created, err = d.Write("a.txt", []byte("two"))
	must(t, err)
	info, err := d.Stat("a.txt")
	must(t, err)
	if created || read(t, d, "a.txt") != "two" || info.Mode().Perm() != 0o700 {
		t.Errorf("created %v, mode %v", created, info.Mode())
	}
	if _, err := d.Write("sub", nil); !errors.Is(err, workspace.ErrNotRegular) {
		t.Errorf("write to a directory: %v", err)
	}
	entries, err := d.ReadDir(".")
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestWriteGoesThroughALink(t *testing.T) {
	t.Parallel()
	d, dir, _ := setup(t)
	must(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	_, err := d.Write("link", []byte("through"))
	must(t, err)
	if got := read(t, d, "a.txt"); got != "through" {
		t.Errorf("the target holds %q", got)
	}
}

func read(t *testing.T, d *workspace.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	must(t, err)
	defer f.Close()
	content, err := io.ReadAll(f)
	must(t, err)
	return string(content)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
