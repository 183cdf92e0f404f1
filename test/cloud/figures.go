package main

import (
	"slices"
	"time"

	"laneway/shared/cost"
	"laneway/shared/meter"
)

// functions are those of a message's way and the watchdog, in the order in which they
// are shown, and memoryMB what cdk.json gives them.
var (
	functions = []string{"gateway", "runner", "notifier", "scheduler", "watchdog"}
	memoryMB  = map[string]float64{"gateway": 512, "runner": 512, "notifier": 256, "scheduler": 256, "watchdog": 256}
)

// figures are what was measured.
type figures struct {
	cold                map[string][]time.Duration
	zip                 map[string]int64
	connect, disconnect map[meter.Name]float64
	alive               map[meter.Name]float64 // a message that keeps a connection
	plain, tools        []turn
	stranger            turn // its gateway knew neither connection nor session
	newcomer            turn // nor was there a session
	watchdog            map[meter.Name]float64
	watchdogTook        time.Duration
	watchdogLog         int // bytes
	watchdogMetrics     int // lines that carry metrics
}

// counts turns requests and invocations into what is billed.
func counts(calls []call, invocations ...invocation) map[meter.Name]float64 {
	out := map[meter.Name]float64{}
	for _, c := range calls {
		switch c.Service {
		case "DynamoDB":
			out[meter.TableCalls]++
			for _, n := range c.Reads {
				out[meter.TableReadUnits] += n
			}
			for _, n := range c.Writes {
				out[meter.TableWriteUnits] += n
			}
		case "AmazonSQS":
			out[meter.QueueCalls]++
		case "S3":
			if c.Op == "PUT" || c.Op == "POST" {
				out[meter.BlobPuts]++
			} else {
				out[meter.BlobGets]++
			}
		}
	}
	posts, messages := units(calls)
	out[meter.PostCalls] += float64(posts)
	out[meter.PostUnits] += messages
	for _, i := range invocations {
		out[meter.FunctionCalls]++
		out[meter.GBSeconds] += i.gb * i.took().Seconds()
	}
	return out
}

// used is what a turn used, with what is not seen on the wire: the frame and its reply,
// and the requests of the mapping.
func (t turn) used() map[meter.Name]float64 {
	return cost.Sum(
		counts(t.acceptCalls, t.accept), counts(t.runCalls, t.run),
		map[meter.Name]float64{meter.PostUnits: 2, meter.QueueCalls: t.deliverAndClear},
	)
}

// mean of what turns used.
func mean(turns []turn) map[meter.Name]float64 {
	out := map[meter.Name]float64{}
	for _, t := range turns {
		for name, n := range t.used() {
			out[name] += n / float64(len(turns))
		}
	}
	return out
}

// byTable is the mean of units of each table.
func byTable(turns []turn, of func(call) map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, t := range turns {
		for _, c := range append(slices.Clone(t.acceptCalls), t.runCalls...) {
			for table, n := range of(c) {
				out[table] += n / float64(len(turns))
			}
		}
	}
	return out
}

func median[T int | float64 | time.Duration](all []T) T {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)/2]
}

// each gives a value of every turn.
func each[T any](turns []turn, of func(turn) T) []T {
	out := make([]T, len(turns))
	for i, t := range turns {
		out[i] = of(t)
	}
	return out
}
