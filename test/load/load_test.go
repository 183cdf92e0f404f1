package main

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"laneway/test/serving"
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

// A hundredth of the measurement, on laneway alone: every step works, every figure is
// there, and nothing is left behind. How good the figures are is not asked here.
//
//nolint:paralleltest // it counts goroutines
func TestMeasurementIsWhole(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("not run: memory and processor time are read from /proc")
	}
	var table, progress strings.Builder
	if err := run(t.Context(), options{laneway: serving.Binary(t), scale: 0.01}, &table, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	for line := range strings.Lines(table.String()) {
		switch {
		case strings.HasPrefix(line, "Failed"):
			t.Error(line)
		case !strings.HasPrefix(line, "| "), strings.HasPrefix(line, "| figure"):
		case strings.Split(line, "|")[3] == " – " && !strings.Contains(line, "turn 200"):
			t.Errorf("not measured: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", table.String(), progress.String())
	}
}
