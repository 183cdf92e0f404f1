package main

import (
	"fmt"
	"strings"

	"laneway/shared/cost"
	"laneway/shared/meter"
)

// Names of what a month has beside requests; cost.Of knows their prices.
const (
	standardCalls     meter.Name = "sqs.standardCalls"
	connectionMinutes meter.Name = "apigateway.connectionMinutes"
	alarmMonths       meter.Name = "cloudwatch.alarmMonths"
	metricMonths      meter.Name = "cloudwatch.metricMonths"
	logGB             meter.Name = "cloudwatch.logGB"
	secretMonths      meter.Name = "secretsmanager.secretMonths"
)

// What is the same for everybody, and how much of it AWS gives every month for nothing.
const (
	minutesADay   = 24 * 60
	minutesAMonth = 30 * minutesADay
	// A mapping polls with five receivers that wait for 20 s each.
	pollsAMonth = 5 * 3 * minutesAMonth
	fifoQueues  = 3
	alarms      = 15 // of infra/observability.go
	// What Lambda itself writes about an invocation, in bytes.
	platformLog = 350

	freePolls   = 1_000_000
	freeAlarms  = 10
	freeMetrics = 10
	freeLogGB   = 5
)

// costs is the tables of what turns, connections and idling cost.
func (f *figures) costs() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | USD | DynamoDB units (writes, reads) | SQS | API Gateway messages | GB-seconds |\n|---|---:|---:|---:|---:|---:|\n")
	row := func(name string, counts map[meter.Name]float64) {
		fmt.Fprintf(&b, "| %s | **%.3f** | %.0f, %.0f | %.0f | %.0f | %.0f |\n", name, money(counts),
			counts[meter.TableWriteUnits], counts[meter.TableReadUnits], counts[meter.QueueCalls]+counts[standardCalls],
			counts[meter.PostUnits], counts[meter.GBSeconds])
	}
	row("1,000 plain turns, 2 s of stream each", scaled(mean(f.plain), 1000))
	row(fmt.Sprintf("1,000 turns with %d tool rounds, %d s of stream each", rounds, 2*(rounds+1)), scaled(mean(f.tools), 1000))
	row("1,000 idle connections for a day that connect again when API Gateway cuts them (10 minutes)",
		f.connected(minutesADay/10, 0))
	row("1,000 idle connections for a day that send something every 9 minutes (cut after 2 hours)",
		f.connected(12, minutesADay/9))
	fmt.Fprintf(&b, "\nAn idle month, item by item:\n\n| item | USD | with what AWS gives free |\n|---|---:|---:|\n")
	var sum, free float64
	for _, i := range f.idleMonth() {
		full := money(i.counts)
		rest := money(i.rest)
		sum, free = sum+full, free+rest
		fmt.Fprintf(&b, "| %s | %.2f | %.2f |\n", i.name, full, rest)
	}
	fmt.Fprintf(&b, "| **sum** | **%.2f** | **%.2f** |\n", sum, free)
	fmt.Fprintf(&b, "\nPrices of %s.\n", cost.Of(cost.Used{}).Prices)
	return b.String()
}

func money(counts map[meter.Name]float64) float64 { return cost.Of(cost.Used{Counts: counts}).Cloud }

func scaled(counts map[meter.Name]float64, by float64) map[meter.Name]float64 {
	out := map[meter.Name]float64{}
	for name, n := range counts {
		out[name] = n * by
	}
	return out
}

// connected is a thousand connections over a day. A connect is two events of the
// gateway and one timer, whose queue is a standard one.
func (f *figures) connected(connects, messages float64) map[meter.Name]float64 {
	one := cost.Sum(f.connect, f.disconnect, map[meter.Name]float64{
		meter.PostUnits: 2, // the client's request and its answer
		// The timer is sent, received and deleted; the first was counted as if to a FIFO queue.
		standardCalls: 3, meter.QueueCalls: -1,
	})
	return cost.Sum(
		scaled(one, connects*1000), scaled(f.alive, messages*1000),
		map[meter.Name]float64{connectionMinutes: minutesADay * 1000},
	)
}

// item is a line of the idle month: counts, and what is left of them to be paid.
type item struct {
	name         string
	counts, rest map[meter.Name]float64
}

func (f *figures) idleMonth() []item {
	looks := scaled(f.watchdog, minutesAMonth)
	reads := map[meter.Name]float64{meter.TableReadUnits: looks[meter.TableReadUnits], meter.TableWriteUnits: looks[meter.TableWriteUnits]}
	written := float64(f.watchdogLog+platformLog) * minutesAMonth / 1e9
	fifo, all := float64(fifoQueues*pollsAMonth), float64((fifoQueues+1)*pollsAMonth)
	return []item{
		{
			fmt.Sprintf("polling: %d FIFO queues and the timers, %d receives each", fifoQueues, pollsAMonth),
			map[meter.Name]float64{meter.QueueCalls: fifo, standardCalls: pollsAMonth},
			map[meter.Name]float64{meter.QueueCalls: (all - freePolls) * fifo / all, standardCalls: (all - freePolls) * pollsAMonth / all},
		},
		{fmt.Sprintf("alarms: %d", alarms), count(alarmMonths, alarms), count(alarmMonths, max(0, alarms-freeAlarms))},
		{"secret: 1", count(secretMonths, 1), count(secretMonths, 1)},
		{
			fmt.Sprintf("watchdog: %d looks of %d ms", minutesAMonth, f.watchdogTook.Milliseconds()),
			map[meter.Name]float64{meter.FunctionCalls: minutesAMonth, meter.GBSeconds: looks[meter.GBSeconds]},
			nil,
		},
		{"its reads of DynamoDB", reads, reads},
		{fmt.Sprintf("logs: %.3f GB", written), count(logGB, written), count(logGB, max(0, written-freeLogGB))},
		{
			fmt.Sprintf("metrics that it writes: %d", f.watchdogMetrics), count(metricMonths, f.watchdogMetrics),
			count(metricMonths, max(0, f.watchdogMetrics-freeMetrics)),
		},
		{"backups and storage of nothing", nil, nil},
	}
}

func count[N int | float64](name meter.Name, n N) map[meter.Name]float64 {
	return map[meter.Name]float64{name: float64(n)}
}
