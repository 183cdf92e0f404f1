package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// counts is what is kept of a suite.
type counts struct {
	Packages int           `json:"packages"`
	Passed   int           `json:"passed"`
	Failed   int           `json:"failed"`
	Skipped  int           `json:"skipped"`
	Elapsed  time.Duration `json:"elapsed"` // nanoseconds
}

func (c counts) String() string {
	return fmt.Sprintf("%d tests passed, %d failed, %d skipped in %d packages, %s",
		c.Passed, c.Failed, c.Skipped, c.Packages, c.Elapsed.Round(time.Second))
}

// runSuite runs go test with args in a directory and returns its exit code.
func runSuite(w io.Writer, name, results, dir string, args []string) (int, error) {
	started := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	s := newSuite(w)
	if err := s.read(out); err != nil {
		return 0, err
	}
	code := 0
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return 0, err
		}
		code = max(exit.ExitCode(), 1)
	}
	s.sum.Elapsed = time.Since(started)
	s.printSkipped()
	verdict := "ok"
	if code != 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s %s: %s\n", verdict, name, s.sum)
	return code, save(results, name, s.sum)
}

// event is one line of `go test -json`.
type event struct {
	Action  string  `json:"Action"`
	Package string  `json:"Package"`
	Test    string  `json:"Test"`
	Output  string  `json:"Output"`
	Elapsed float64 `json:"Elapsed"` // seconds
}

type testKey struct{ pkg, test string }

// suite gathers the events of one go test.
type suite struct {
	w       io.Writer
	sum     counts
	output  map[testKey][]string // of what has not ended yet
	skipped []string
}

func newSuite(w io.Writer) *suite {
	return &suite{w: w, output: map[testKey][]string{}}
}

func (s *suite) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64*1024), 16*1024*1024) // one test may print a long line
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(s.w, lines.Text()) // not an event: shown as it came
			continue
		}
		s.event(e)
	}
	return lines.Err()
}

func (s *suite) event(e event) {
	k := testKey{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.w, e.Output)
	case "output":
		s.output[k] = append(s.output[k], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(k, e.Action)
		}
	}
}

func (s *suite) endTest(k testKey, action string) {
	switch action {
	case "pass":
		s.sum.Passed++
	case "fail":
		s.sum.Failed++
		fmt.Fprint(s.w, strings.Join(s.output[k], ""))
	case "skip":
		s.sum.Skipped++
		s.skipped = append(s.skipped, k.pkg+" "+k.test+": "+reason(s.output[k]))
	}
	delete(s.output, k)
}

func (s *suite) endPackage(e event) {
	k := testKey{pkg: e.Package}
	switch e.Action {
	case "pass":
		s.sum.Packages++
		fmt.Fprintf(s.w, "ok   %-44s %6.1f s\n", e.Package, e.Elapsed)
	case "fail":
		s.sum.Packages++
		// Tests that never ended (a panic, a timeout) still hold the output that
		// tells why.
		for open, out := range s.output {
			if open.pkg == e.Package && open.test != "" {
				s.sum.Failed++
				fmt.Fprint(s.w, strings.Join(out, ""))
				delete(s.output, open)
			}
		}
		fmt.Fprint(s.w, strings.Join(s.output[k], ""))
		fmt.Fprintf(s.w, "FAIL %-44s %6.1f s\n", e.Package, e.Elapsed)
	}
	delete(s.output, k)
}

// reason is what a skipped test said, without go test's own lines.
func reason(out []string) string {
	var said []string
	for _, line := range out {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, text, ok := strings.Cut(line, ".go:"); ok { // file.go:12: text
			if _, after, ok := strings.Cut(text, ": "); ok {
				line = after
			}
		}
		said = append(said, line)
	}
	return strings.Join(said, " ")
}

func (s *suite) printSkipped() {
	sort.Strings(s.skipped)
	for _, line := range s.skipped {
		fmt.Fprintln(s.w, "skip", line)
	}
}

func save(dir, name string, c counts) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), b, 0o644)
}

// printTotal adds the suites up; 1 if any test failed or no suite ran.
func printTotal(w io.Writer, dir string) int {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		fmt.Fprintln(w, "no suite has run")
		return 1
	}
	sort.Strings(files)
	var sum counts
	for _, f := range files {
		b, err := os.ReadFile(f)
		var c counts
		if err == nil {
			err = json.Unmarshal(b, &c)
		}
		if err != nil {
			fmt.Fprintln(w, "testsum:", err)
			return 1
		}
		fmt.Fprintf(w, "%-14s %s\n", strings.TrimSuffix(filepath.Base(f), ".json"), c)
		sum.Packages += c.Packages
		sum.Passed += c.Passed
		sum.Failed += c.Failed
		sum.Skipped += c.Skipped
		sum.Elapsed += c.Elapsed
	}
	verdict := "ok"
	if sum.Failed > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s all: %s\n", verdict, sum)
	if sum.Failed > 0 {
		return 1
	}
	return 0
}
