package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestArchiveHoldsOneProgram(t *testing.T) {
	t.Parallel()
	program := bytes.Repeat([]byte("machine code "), 1000)
	var a bytes.Buffer
	n, err := pack(&a, bytes.NewReader(program))
	if err != nil || n != int64(a.Len()) {
		t.Fatalf("%d bytes, wrote %d, %v", n, a.Len(), err)
	}
	z, err := zip.NewReader(bytes.NewReader(a.Bytes()), int64(a.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode() != 0o755 {
		t.Fatalf("entries: %+v", z.File)
	}
	f, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, program) {
		t.Errorf("the program came back as %d bytes, %v", len(got), err)
	}
}

func TestFailureLeavesNoArchive(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "f.zip")
	if err := run(out, []string{t.TempDir()}); err == nil { // a directory cannot be read
		t.Fatal("a directory was packed")
	}
	if left, err := filepath.Glob(out + "*"); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Two builds of one function, from two directories, are the same to the last byte.
func TestBuildsAreReproducible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a function twice")
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for _, part := range []string{"functions", "shared", "scripts"} {
		if err := os.CopyFS(filepath.Join(elsewhere, part), os.DirFS(filepath.Join(here, part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(here, part))
		if err == nil {
			err = os.WriteFile(filepath.Join(elsewhere, part), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := build(t, here), build(t, elsewhere)
	if !bytes.Equal(a, b) {
		t.Errorf("two archives of %d and %d bytes differ", len(a), len(b))
	}
}

func build(t *testing.T, repository string) []byte {
	t.Helper()
	const function = "watchdog"
	dist := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "scripts", "build.sh"), "functions", "arm64", function)
	cmd.Env = append(os.Environ(), "DIST="+dist)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(dist, "arm64", function+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	return archive
}
