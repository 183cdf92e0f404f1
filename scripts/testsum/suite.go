package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// counts is what is kept of a suite.
type counts struct {
	Packages int `json:"packages"`
	Passed   int `json:"passed"`
	Failed   int `json:"failed"`
	Skipped  int `json:"skipped"`
	// Broken packages failed without a failed test: they did not build, or their process
	// ended early.
	Broken int `json:"broken"`

	Elapsed time.Duration `json:"elapsed"` // nanoseconds
}

func (c counts) String() string {
	text := fmt.Sprintf("%d tests passed, %d failed, %d skipped in %d packages, %s",
		c.Passed, c.Failed, c.Skipped, c.Packages, c.Elapsed.Round(time.Second))
	if c.Broken > 0 {
		text += fmt.Sprintf("; %d packages broken", c.Broken)
	}
	return text
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
	if code != 0 {
		fmt.Fprintln(w, "failed:", strings.Join(s.failed, " "))
	}
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
	bad     map[string]int       // failed tests by package
	failed  []string             // packages
	skipped map[skip][]string    // names of tests
}

// skip is why tests of a package were skipped.
type skip struct{ pkg, reason string }

func newSuite(w io.Writer) *suite {
	return &suite{w: w, output: map[testKey][]string{}, bad: map[string]int{}, skipped: map[skip][]string{}}
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
		s.bad[k.pkg]++
		fmt.Fprint(s.w, strings.Join(s.output[k], ""))
	case "skip":
		s.sum.Skipped++
		why := skip{k.pkg, reason(s.output[k])}
		s.skipped[why] = append(s.skipped[why], k.test)
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
				s.bad[open.pkg]++
				fmt.Fprint(s.w, strings.Join(out, ""))
				delete(s.output, open)
			}
		}
		fmt.Fprint(s.w, strings.Join(s.output[k], ""))
		if s.bad[e.Package] == 0 {
			s.sum.Broken++
		}
		s.failed = append(s.failed, e.Package)
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

// printSkipped names what was skipped: all tests where they are few, else some of
// those that begin with the same word.
func (s *suite) printSkipped() {
	const shown = 4
	reasons := slices.SortedFunc(maps.Keys(s.skipped), func(a, b skip) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.reason, b.reason))
	})
	for _, r := range reasons {
		names := s.skipped[r]
		slices.Sort(names)
		list := strings.Join(names[:min(shown, len(names))], ", ")
		if more := len(names) - shown; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(s.w, "skip %s: %s [%s]\n", r.pkg, r.reason, list)
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

// printTotal adds the suites up; 1 if any test or anything else failed, or no suite
// ran. Its last line is the verdict on everything.
func printTotal(w io.Writer, dir, failed string) int {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		fmt.Fprintln(w, "no suite has run")
		return 1
	}
	slices.Sort(files)
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
		sum.Broken += c.Broken
		sum.Elapsed += c.Elapsed
	}
	verdict := "ok"
	bad := sum.Failed > 0 || sum.Broken > 0 || failed != ""
	if bad {
		verdict = "FAIL"
	}
	if failed != "" {
		failed = "; failed: " + failed
	}
	fmt.Fprintf(w, "%s all: %s%s\n", verdict, sum, failed)
	if bad {
		return 1
	}
	return 0
}
