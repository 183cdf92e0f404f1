// Command testsum runs `go test` and says briefly what came of it: one line per
// package, the whole output of what failed, every skipped test by name with its
// reason, and a summary line. It keeps the counts of each named suite in a file,
// and -total adds them up.
//
// It never hides a failure: its exit code is that of go test, and a build error or
// a panic is printed as go test prints it.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	name := flag.String("name", "test", "the suite's name, for the summary")
	results := flag.String("results", ".cache/results", "where the counts are kept")
	dir := flag.String("dir", ".", "where to run: the root of a module")
	total := flag.Bool("total", false, "print the sum of all suites and exit")
	failed := flag.String("failed", "", "with -total: what failed beside the tests")
	flag.Parse()
	if *total {
		os.Exit(printTotal(os.Stdout, *results, *failed))
	}
	code, err := runSuite(os.Stdout, *name, *results, *dir, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(2)
	}
	os.Exit(code)
}
