package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, lines ...string) (*suite, string) {
	t.Helper()
	var out bytes.Buffer
	s := newSuite(&out)
	if err := s.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	s.printSkipped()
	return s, out.String()
}

func TestSumOfASuite(t *testing.T) {
	t.Parallel()
	s, out := read(
		t,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN TestA\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: it broke\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN TestC\n"}`,
		`{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: no docker: here\n"}`,
		`{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestC"}`,
		`{"Action":"fail","Package":"p","Elapsed":1.5}`,
		`{"Action":"skip","Package":"empty"}`,
	)
	if s.sum.Passed != 1 || s.sum.Failed != 1 || s.sum.Skipped != 1 || s.sum.Packages != 1 {
		t.Errorf("sum %+v", s.sum)
	}
	for _, want := range []string{"it broke", "FAIL p", "skip p: no docker: here [TestC]\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "TestA") {
		t.Errorf("what passed is printed:\n%s", out)
	}
}

// What a panic or a timeout cut off must be seen, and count.
func TestTestsThatNeverEnded(t *testing.T) {
	t.Parallel()
	s, out := read(
		t,
		`{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: boom\n"}`,
		`{"Action":"fail","Package":"p"}`,
		`not an event`,
		`{"Action":"build-output","ImportPath":"q","Output":"q.go:1: undefined: x\n"}`,
		`{"Action":"fail","Package":"q","FailedBuild":"q"}`,
	)
	if s.sum.Failed != 1 || s.sum.Broken != 1 {
		t.Errorf("sum %+v", s.sum)
	}
	for _, want := range []string{"panic: boom", "not an event", "undefined: x"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestTotal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	if printTotal(&out, dir, "") == 0 {
		t.Error("no suite is a success")
	}
	if err := save(dir, "one", counts{Packages: 1, Passed: 2}); err != nil {
		t.Fatal(err)
	}
	if err := save(dir, "two", counts{Packages: 1, Passed: 3, Skipped: 1}); err != nil {
		t.Fatal(err)
	}
	if code := printTotal(&out, dir, ""); code != 0 || !strings.Contains(out.String(), "ok all: 5 tests passed, 0 failed, 1 skipped in 2 packages") {
		t.Errorf("code %d\n%s", code, out.String())
	}
	if printTotal(&out, dir, "lint") == 0 || !strings.HasSuffix(out.String(), "; failed: lint\n") {
		t.Errorf("a failed step is a success\n%s", out.String())
	}
	for name, c := range map[string]counts{"a failed test": {Failed: 1}, "a broken package": {Broken: 1}} {
		if err := save(dir, "three", c); err != nil {
			t.Fatal(err)
		}
		if printTotal(&out, dir, "") == 0 {
			t.Errorf("%s is a success", name)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "four.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if printTotal(&out, dir, "") == 0 {
		t.Error("an unreadable result is a success")
	}
}

// A suite that is run for real keeps the exit code of go test.
func TestRunKeepsTheExitCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\nfunc TestBad(t *testing.T) { t.Error(\"bad\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]int{"TestGood": 0, "TestBad": 1} {
		var out bytes.Buffer
		code, err := runSuite(&out, pattern, filepath.Join(dir, "results"), dir, []string{"-run", pattern, "."})
		if err != nil || code != want {
			t.Errorf("%s: code %d, %v\n%s", pattern, code, err, out.String())
		}
	}
}
