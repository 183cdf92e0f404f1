// Package e2e uses the product as its users do, on an endpoint that stands for AWS:
// the deployed stack through its WebSocket API, and `laneway serve --backend aws`
// over the same stores.
//
// Guarantees: nothing is looked up that only one endpoint has; what the endpoint at
// hand does not offer is a skipped test with its name, and where the endpoint was
// started for this (scripts/e2e.sh without an address) a failure. Only processes
// that the endpoint started for this stack are killed, by their id.
//
// LANEWAY_E2E switches it on: "all" where everything must be offered, "offered" where
// it is run against an endpoint of somebody's own.
package e2e

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"laneway/test/serving"
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

// on skips what needs an endpoint unless it was asked for.
func on(t *testing.T) {
	t.Helper()
	if os.Getenv("LANEWAY_E2E") == "" {
		t.Skip("needs an endpoint that stands for AWS: make e2e")
	}
}

// lacksf skips a test that the endpoint cannot run, and fails it where it should.
func lacksf(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("LANEWAY_E2E") == "all" {
		t.Fatalf(format, args...)
	}
	t.Skipf("not run: "+format, args...)
}

// cloud is the endpoint, or AWS, with the credentials of the environment.
func cloud(t *testing.T) aws.Config {
	t.Helper()
	c, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// needTables skips where the endpoint has no DynamoDB.
func needTables(t *testing.T, c aws.Config) {
	t.Helper()
	if _, err := dynamodb.NewFromConfig(c).ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		lacksf(t, "the endpoint has no DynamoDB: %v", err)
	}
}

// poll looks every so often until something is so.
func poll(t *testing.T, limit time.Duration, otherwise string, so func() bool) {
	t.Helper()
	ctx := within(t, limit)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after %v: %s", limit, otherwise)
		}
	}
}

var figures sync.Mutex // one writer of the file at a time

// figure notes durations: in the test's log, and in the file that LANEWAY_E2E_FIGURES
// names.
func figure(t *testing.T, level, what string, all []time.Duration) {
	t.Helper()
	slices.Sort(all)
	note(t, fmt.Sprintf("%-9s %-36s median %7.1f ms, longest of %d: %7.1f ms", level, what,
		ms(all[len(all)/2]), len(all), ms(all[len(all)-1])))
}

// note puts a line of figures where figure does.
func note(t *testing.T, line string) {
	t.Helper()
	t.Log(line)
	path := os.Getenv("LANEWAY_E2E_FIGURES")
	if path == "" {
		return
	}
	figures.Lock()
	defer figures.Unlock()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
