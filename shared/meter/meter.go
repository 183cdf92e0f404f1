// Package meter counts what a piece of work costs: billable requests and units,
// carried by a context so that adapters can count without knowing for whom.
//
// Guarantees: counting never fails and never blocks; a context without a meter
// counts nothing; a Meter may be used by many goroutines.
package meter

import (
	"context"
	"maps"
	"sync"
)

// Name is what is counted.
type Name string

// What the adapters and the runner count. Units are the ones AWS bills.
const (
	TableCalls      Name = "dynamodb.calls"
	TableReadUnits  Name = "dynamodb.readUnits"  // half units are possible
	TableWriteUnits Name = "dynamodb.writeUnits" // transactions count twice
	QueueCalls      Name = "sqs.calls"
	BlobPuts        Name = "s3.puts"
	BlobGets        Name = "s3.gets"
	PostCalls       Name = "apigateway.posts"
	PostUnits       Name = "apigateway.messages" // in 32 KB units
	FunctionCalls   Name = "lambda.requests"
	GBSeconds       Name = "lambda.gbSeconds"
)

// Meter is a set of counters; the zero value is ready.
type Meter struct {
	mu     sync.Mutex
	counts map[Name]float64
}

// Add adds n to a counter; a nil meter ignores it.
func (m *Meter) Add(name Name, n float64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = make(map[Name]float64)
	}
	m.counts[name] += n
}

// Counts is a copy of all counters.
func (m *Meter) Counts() map[Name]float64 {
	out := make(map[Name]float64)
	if m == nil {
		return out
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(out, m.counts)
	return out
}

type key struct{}

// With returns a context whose work is counted in m.
func With(ctx context.Context, m *Meter) context.Context { return context.WithValue(ctx, key{}, m) }

// From is the meter of ctx, or nil.
func From(ctx context.Context) *Meter {
	m, _ := ctx.Value(key{}).(*Meter)
	return m
}
