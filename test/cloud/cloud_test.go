package main

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"laneway/shared/meter"
	"laneway/shared/table"
)

// at is a call from one time to another, in ms.
func at(begin, end int) call {
	return call{Begin: time.UnixMilli(int64(begin)), End: time.UnixMilli(int64(end))}
}

func TestChainIsWhatOneWaitsFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		calls  []call
		before int
		want   int
	}{
		{"none", nil, 10, 0},
		{"one after another", []call{at(0, 1), at(1, 2), at(3, 4)}, 10, 3},
		{"beside each other", []call{at(0, 4), at(1, 5), at(2, 6)}, 10, 1},
		{"a pair in the middle", []call{at(0, 1), at(2, 4), at(2, 5), at(6, 7)}, 10, 3},
		{"one that ended too late", []call{at(0, 1), at(2, 11)}, 10, 1},
	} {
		if got := chain(c.calls, time.UnixMilli(int64(c.before))); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestWireCountsAsDynamoDBBills(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"GetItem":            `{"Item":{},"ConsumedCapacity":{"TableName":"x-runs","CapacityUnits":1}}`,
		"Query":              `{"ConsumedCapacity":{"TableName":"x-sessions","CapacityUnits":2.5}}`,
		"UpdateItem":         `{"ConsumedCapacity":{"TableName":"x-sessions","CapacityUnits":3}}`,
		"TransactWriteItems": `{"ConsumedCapacity":[{"TableName":"x-sessions","CapacityUnits":4,"WriteCapacityUnits":4},{"TableName":"x-runs","CapacityUnits":2,"WriteCapacityUnits":2}]}`,
		"SendMessage":        `{}`,
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		_, _ = io.WriteString(w, answers[op])
	}))
	defer service.Close()
	w, err := newWire(service.URL, "x-")
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(w)
	defer front.Close()
	send := func(path, target, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Amz-Target", target)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if _, op, _ := strings.Cut(target, "."); string(got) != answers[op] {
			t.Errorf("%s: the answer became %q", target, got)
		}
	}
	for _, op := range []string{"GetItem", "Query", "UpdateItem"} {
		send("/", "DynamoDB_20120810."+op, "{}")
	}
	// Into one index, and from one place to another in the other one.
	send("/", "DynamoDB_20120810.TransactWriteItems", `{"#a":"activePk","#b":"recentPk"}`)
	send("/", "AmazonSQS.SendMessage", "{}")
	send("/_aws/execute-api/a/live/@connections/c", "", strings.Repeat("x", 33<<10))
	got := counts(w.take(), invocation{begin: time.Unix(0, 0), end: time.Unix(2, 0), gb: 0.5})
	for name, want := range map[meter.Name]float64{
		meter.TableReadUnits: 3.5, meter.TableWriteUnits: 3 + 6 + 3, meter.TableCalls: 4, meter.QueueCalls: 1,
		meter.PostCalls: 1, meter.PostUnits: 2, meter.FunctionCalls: 1, meter.GBSeconds: 1,
	} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if len(w.take()) != 0 {
		t.Error("calls are given twice")
	}
}

func TestBudgetsSayWhatIsOver(t *testing.T) {
	t.Parallel()
	one := turn{
		run:            invocation{begin: time.Unix(0, 0), end: time.Unix(2, 0), gb: 0.5},
		runCalls:       []call{{Service: "DynamoDB", Writes: map[string]float64{table.Runs: 24.5}, Reads: map[string]float64{table.Runs: 8}}},
		beforeAccepted: 2, beforeModel: 4,
	}
	f := &figures{plain: []turn{one}, tools: []turn{one}, stranger: one, newcomer: one, cold: map[string][]time.Duration{}, zip: map[string]int64{}}
	for _, name := range functions {
		f.cold[name] = []time.Duration{10 * time.Millisecond, 61 * time.Millisecond, 62 * time.Millisecond}
		f.zip[name] = 15 << 20
	}
	got := f.budgets()
	for _, line := range []string{
		"gateway knows the connection | 2 | ≤ 2 | met |",
		"before the model request | 4 | ≤ 3 | **not met** |",
		"DynamoDB write units | 24.5 | ≤ 24 | **not met** |",
		"history ≤ 4 KB | 8.0 | ≤ 8 | met |",
		"cold start of the runner, ms (least: 10) | 61 | ≤ 60 | **not met** |",
		"zip of the gateway, MiB | 15.0 | ≤ 15 | met |",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}

func TestIdleMonthAddsUp(t *testing.T) {
	t.Parallel()
	f := &figures{watchdog: map[meter.Name]float64{meter.TableReadUnits: 10, meter.GBSeconds: 0.01}, watchdogLog: 650}
	var full, free float64
	for _, i := range f.idleMonth() {
		full, free = full+money(i.counts), free+money(i.rest)
	}
	// By hand: 3 x 648,000 receives at 0.5 and 648,000 at 0.4 USD a million; 15 alarms;
	// a secret; 43,200 looks of 10 read units, 0.01 GB-s, 1,000 bytes of log.
	want := 0.972 + 0.2592 + 1.5 + 0.4 + 43_200*(10*0.125e-6+0.2e-6+0.01*13.3334e-6+1000*0.5e-9)
	if math.Abs(full-want) > 1e-6 {
		t.Errorf("%v, want %v", full, want)
	}
	if free >= full || free < 0.4 {
		t.Errorf("with what is free %v of %v", free, full)
	}
}
